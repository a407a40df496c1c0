import type { WireRecord } from "../src/api.ts";

/* Checks of the wire records in session files, which may be hostile. */

/** Whether a value is a valid record. The screens and `asCurl()` rely on this check. */
export function isRecord(value: unknown): value is WireRecord {
  if (!isObject(value)) return false;
  const { kind } = value;
  const isNumbered = ["n", "exchange", "at"].every((name) => typeof value[name] === "number");
  return isNumbered && typeof kind === "string" && Object.hasOwn(shapes, kind) && shapes[kind]?.(value) === true;
}

export type Json = Readonly<Record<string, unknown>>;

/** A method of HTTP, or an operation of a call that does not use HTTP, such as `SendMessage`. */
const methodPattern = /^[A-Za-z]{1,64}$/;

/** A token (RFC 9110, section 5.6.2). curl reads files for names that begin with `@`. */
const headerNamePattern = /^[!#$%&'*+.^`|~\w-]+$/;

const shapes: Readonly<Record<string, (value: Json) => boolean>> = {
  request: ({ agent, method, url, headers, body }) =>
    [agent, method, url].every((each) => typeof each === "string") &&
    methodPattern.test(String(method)) &&
    isHeaders(headers) &&
    isBody(body),
  response: ({ status, headers }) => typeof status === "number" && isHeaders(headers),
  piece: ({ body }) => isBody(body),
  end: ({ error }) => error === undefined || typeof error === "string",
};

function isBody(value: unknown): boolean {
  return isObject(value) && typeof value["bytes"] === "number" && typeof value["text"] === "string";
}

function isHeaders(value: unknown): boolean {
  const isPair = (one: unknown): boolean =>
    Array.isArray(one) &&
    one.length === 2 &&
    one.every((each) => typeof each === "string") &&
    headerNamePattern.test(String(one[0]));
  return Array.isArray(value) && value.every(isPair);
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
