import type { Json } from "../acts/format.ts";
import { isMap } from "../acts/path.ts";

/** The words that tables of shapes are written in. */

export type Kind = (value: Json) => string | undefined;

export interface Field {
  readonly kind: Kind | string;
  readonly list?: boolean;
  readonly map?: boolean;
  readonly required?: boolean;
  /** Whether a required list may be empty. */
  readonly mayBeEmpty?: boolean;
}

export interface Shape {
  readonly fields: Readonly<Record<string, Field>>;
  /** Exactly one of these members has to be set. */
  readonly oneOf?: readonly string[];
  /** Names of shapes by the value of the member `kind`; the one that fits is used in place of this shape. */
  readonly byKind?: Readonly<Record<string, string>>;
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

export const text: Kind = (value) => (typeof value === "string" ? undefined : "text");
export const nonEmpty: Kind = (value) =>
  typeof value === "string" && value !== "" ? undefined : "text that is not empty";
export const flag: Kind = (value) => (typeof value === "boolean" ? undefined : "true or false");
export const integer: Kind = (value) =>
  typeof value === "number" && Number.isInteger(value) ? undefined : "a whole number";
export const object: Kind = (value) => (isMap(value) ? undefined : "an object");
export const any: Kind = () => undefined;
export const url: Kind = (value) => (typeof value === "string" && URL.canParse(value) ? undefined : "an absolute URL");
/** The address of an interface: gRPC addresses commonly have no scheme. */
export const address: Kind = (value) =>
  typeof value === "string" && /^[^\s/]+(?::\d+$|:\/\/)/.test(value) ? undefined : "an address";
export const bytes: Kind = (value) =>
  typeof value === "string" && base64.test(value) ? undefined : "base64 (RFC 4648 §4)";
export const timestamp: Kind = (value) =>
  typeof value === "string" && time.test(value) && !Number.isNaN(Date.parse(value))
    ? undefined
    : "a time in UTC, such as 2026-01-31T12:00:00.000Z (§5.6.1)";
export const oneOf =
  (...names: readonly string[]): Kind =>
  (value) =>
    typeof value === "string" && names.includes(value) ? undefined : `one of ${names.join(", ")}`;

export const required = (kind: Kind | string): Field => ({ kind, required: true });
export const optional = (kind: Kind | string): Field => ({ kind });
export const requiredList = (kind: Kind | string): Field => ({ kind, list: true, required: true });
export const optionalList = (kind: Kind | string): Field => ({ kind, list: true });
export const optionalMap = (kind: Kind | string): Field => ({ kind, map: true });
