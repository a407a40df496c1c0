import { utf8Length } from "../base/index.ts";
import type { FieldViolation } from "../model/index.ts";

/* What the checks of a definition share. */

export type Problems = readonly FieldViolation[];

/** A problem of a field, where there is one. */
export function about(field: string, description: string | undefined | false): Problems {
  return description === undefined || description === false ? [] : [{ field, description }];
}

export const noFlag = "must be true or false";

export function isNoFlag(value: unknown): boolean {
  return value !== undefined && typeof value !== "boolean";
}

/** Longest URI of an extension, in bytes. A header of a request has to carry several. */
const maxUriBytes = 2048;
/** An absolute URI (RFC 3986), in a form that fits into a list of URIs in a header: without commas and spaces. */
const absoluteUri = /^[a-z][a-z\d+.-]*:(?:[\w\-.~:/?#[\]@!$&'()*+;=]|%[\da-f]{2})+$/i;

/** Why a text cannot be the URI of an extension; `undefined` where it can. */
export function uriProblem(uri: unknown): string | undefined {
  if (typeof uri !== "string" || uri === "") return "must be a URI";
  if (utf8Length(uri) > maxUriBytes) return `must not take more than ${maxUriBytes} bytes`;
  return absoluteUri.test(uri) ? undefined : "must be an absolute URI without commas and spaces";
}
