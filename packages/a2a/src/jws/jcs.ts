import { A2AError } from "../model/index.ts";

/** Maximum nesting of a value: far more than any card has, and safe for the stack. */
const deepest = 128;

/** A surrogate without its other half, which has no form in UTF-8. */
const loneSurrogate = /\p{Surrogate}/u;

/**
 * The canonical text of a JSON value (JCS, RFC 8785). `JSON.stringify` writes numbers and strings as required (§3.2.2), and `sort`
 * orders by UTF-16 code units by default (§3.2.3). Omits members that are `undefined`.
 *
 * @throws A2AError `InvalidParams` for values without a canonical form: numbers that are not finite, half of a surrogate pair, values that
 * are not JSON, and more than 128 levels.
 */
export function canonicalJson(value: unknown, depth = 1): string {
  if (typeof value === "string") return text(value);
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== "object")
    throw refused(`${typeof value === "number" ? String(value) : typeof value} is not JSON`);
  if (depth > deepest) throw refused(`it has more than ${deepest} levels`);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item, depth + 1)).join(",")}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => `${text(name)}:${canonicalJson(member, depth + 1)}`);
  return `{${members.join(",")}}`;
}

function text(value: string): string {
  if (loneSurrogate.test(value)) throw refused("a text has half of a surrogate pair");
  return JSON.stringify(value);
}

function refused(reason: string): A2AError {
  return new A2AError("InvalidParams", `There is no canonical form: ${reason}`);
}
