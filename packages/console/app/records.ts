import type { RequestRecord, WireRecord } from "../src/api.ts";

/* Records of the wire from session files, which may be hostile. */

/** Whether a value is a record, as the screens and `asCurl()` need it. */
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

/** A curl command that sends the request again. The user must fill in masked headers. */
export function asCurl({ method, url, headers, body }: RequestRecord): string {
  const lines = [
    // Otherwise a URL that begins with a hyphen would be an option.
    `curl --url ${quoted(url)}`,
    ...(method === "GET" ? [] : [`-X ${quoted(method)}`]),
    ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body.bytes === 0 ? [] : [`--data-raw ${quoted(body.text)}`]),
  ];
  return lines.join(" \\\n  ");
}

/**
 * Quotes a word for a POSIX shell. Writes control characters as escapes: a terminal acts on them when the command is pasted, so that the
 * rest of the word would be a command. An argument cannot contain NUL.
 */
function quoted(text: string): string {
  const escaped = text
    .replaceAll("\0", "")
    .replaceAll("'", "'\\''")
    .replaceAll(/[^\P{Cc}\n]+/gu, (found) => `'"$(printf '${octal(found)}')"'`);
  return `'${escaped}'`;
}

function octal(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}
