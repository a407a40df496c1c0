/*
 * Splits well-formed JSON text without parsing it, at a cost that depends on the structure, not the content. The benchmark rows
 * `task-memory`, `get-task` and `list` need it (docs/decisions/hot-path.md).
 */

/** The members of an object by name, each value as its original text. If a name occurs twice, the last member counts. */
export function membersOf(json: string): Map<string, string> {
  const found = new Map<string, string>();
  let at = afterSpace(json, json.indexOf("{") + 1);
  while (at < json.length && json[at] !== "}") {
    const keyEnd = afterString(json, at + 1);
    const key = json.slice(at + 1, keyEnd - 1);
    const start = afterSpace(json, json.indexOf(":", keyEnd) + 1);
    const end = afterValue(json, start);
    found.set(unescaped(key), json.slice(start, end).trimEnd());
    at = afterSpace(json, json[end] === "," ? end + 1 : end);
  }
  return found;
}

/** The elements of an array, each as its original text. */
export function elementsOf(json: string): string[] {
  const found: string[] = [];
  let at = afterSpace(json, json.indexOf("[") + 1);
  while (at < json.length && json[at] !== "]") {
    const end = afterValue(json, at);
    found.push(json.slice(at, end).trimEnd());
    at = afterSpace(json, json[end] === "," ? end + 1 : end);
  }
  return found;
}

/** The text between the brackets of an array, or between the quotes of a string. */
export function insideOf(json: string): string {
  return json.slice(1, -1);
}

/** Writes an object from members whose values are JSON text. */
export function objectOf(members: Iterable<readonly [string, string]>): string {
  return `${openObjectOf(members)}}`;
}

/** Like `objectOf`, but without the closing brace, so that more members can follow. */
export function openObjectOf(members: Iterable<readonly [string, string]>): string {
  const texts: string[] = [];
  for (const [name, value] of members) texts.push(`${JSON.stringify(name)}:${value}`);
  return `{${texts.join(",")}`;
}

/** A text, or the pieces of a large text, which is never joined. */
export type JsonText = string | readonly string[];

/** An object with one member, whose name needs no escapes. */
export function wrapped(name: string, value: JsonText): JsonText {
  return typeof value === "string" ? `{"${name}":${value}}` : [`{"${name}":`, ...value, "}"];
}

/** Adds a first member to an object that has other members. `brace`: the position of its opening brace in the text. */
export function withFirstMember(json: string, brace: number, name: string, value: string): string {
  return `${json.slice(0, brace + 1)}"${name}":${value},${json.slice(brace + 1)}`;
}

/** A text as the content of a JSON string. Most texts need no escapes. */
export function escaped(text: string): string {
  return special.test(text) ? insideOf(JSON.stringify(text)) : text;
}

/** The reverse of `escaped`. */
export function unescaped(text: string): string {
  return text.includes("\\") ? String(JSON.parse(`"${text}"`)) : text;
}

/** The same JSON in text that UTF-8 can encode: lone surrogates, which only strings contain, are escaped. */
export function wellFormed(json: string): string {
  if (!loneSurrogate.test(json)) return json;
  return json.replace(/\p{Surrogate}/gu, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
}

// eslint-disable-next-line no-control-regex -- it searches for control characters
const special = /[\u0000-\u001f"\\\p{Surrogate}]/u;
const loneSurrogate = /\p{Surrogate}/u;

/**
 * Whether JSON text, valid or not, nests deeper than `limit`. Checked before parsing: a megabyte of brackets costs a parser hundreds of
 * megabytes.
 */
export function nestsDeeper(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at++);
    if (code === 0x22) at = afterString(text, at);
    // In ASCII a bracket and a brace differ in one bit.
    else if ((code | 0x20) === 0x7d) depth--;
    else if ((code | 0x20) === 0x7b && ++depth > limit) return true;
  }
  return false;
}

/** Maximum nesting of values from agents and extensions. Clients read 512 levels, and a task adds a few around its events. */
const deepestJson = 500;

/**
 * Serializes a value. Throws TypeError or RangeError if it is not JSON or nests too deeply. JavaScript engines have different
 * nesting limits; this limit is below all of them.
 */
export function jsonTextOf(value: unknown): string {
  const text: string | undefined = JSON.stringify(value);
  // A text nests no deeper than half of its length, because each level takes two brackets.
  if (text !== undefined && text.length > 2 * deepestJson && nestsDeeper(text, deepestJson)) {
    throw new RangeError(`it has more than ${deepestJson} levels of arrays and objects`);
  }
  return text;
}

/** Parses trusted text that this project has written, such as a record of a store. */
export function writtenValue<T>(json: string): T {
  return JSON.parse(json) as T;
}

/** The position after the closing quote of a string. `start`: after its opening quote. */
function afterString(json: string, start: number): number {
  for (let at = start; (at = json.indexOf('"', at) + 1) > 0;) {
    let escapes = at - 1;
    while (json.charCodeAt(escapes - 1) === 0x5c) escapes--;
    if ((at - escapes) % 2 === 1) return at;
  }
  return json.length;
}

function afterSpace(json: string, at: number): number {
  while (json.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

/** The position of the comma or bracket that ends a value. `at`: the start of the value. */
function afterValue(json: string, at: number): number {
  let depth = 0;
  while (at < json.length) {
    switch (json[at]) {
      case '"':
        at = afterString(json, at + 1);
        continue;
      case "{":
      case "[":
        depth += 1;
        break;
      case "}":
      case "]":
        if (depth === 0) return at;
        depth -= 1;
        break;
      case ",":
        if (depth === 0) return at;
        break;
      default:
        break;
    }
    at += 1;
  }
  return at;
}
