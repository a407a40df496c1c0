/**
 * Raw members of JSON text that is known to be well formed: what a store has kept can be put together again without
 * parsing it. Strings are skipped by searching for their end, so the price is that of structure, not of content.
 */

/** The members of an object, each value as the text that it was. */
export function members(json: string): Map<string, string> {
  const found = new Map<string, string>();
  let at = skipSpace(json, json.indexOf("{") + 1);
  while (at < json.length && json[at] !== "}") {
    const keyEnd = skipString(json, at);
    const key = json.slice(at + 1, keyEnd - 1);
    const start = skipSpace(json, json.indexOf(":", keyEnd) + 1);
    const end = skipValue(json, start);
    found.set(key.includes("\\") ? (JSON.parse(`"${key}"`) as string) : key, json.slice(start, end).trimEnd());
    at = skipSpace(json, json[end] === "," ? end + 1 : end);
  }
  return found;
}

/** The elements of an array, each as the text that it was. */
export function elements(json: string): string[] {
  const found: string[] = [];
  let at = skipSpace(json, json.indexOf("[") + 1);
  while (at < json.length && json[at] !== "]") {
    const end = skipValue(json, at);
    found.push(json.slice(at, end).trimEnd());
    at = skipSpace(json, json[end] === "," ? end + 1 : end);
  }
  return found;
}

/** An object of raw members. */
export function object(entries: Iterable<readonly [string, string]>): string {
  const texts: string[] = [];
  for (const [key, value] of entries) texts.push(`${JSON.stringify(key)}:${value}`);
  return `{${texts.join(",")}}`;
}

function skipSpace(json: string, at: number): number {
  while (json.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

/** From an opening quote to behind the closing one. */
function skipString(json: string, at: number): number {
  for (let end = json.indexOf('"', at + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return json.length;
}

/** From the start of a value to the comma or bracket that ends it. */
function skipValue(json: string, at: number): number {
  let depth = 0;
  while (at < json.length) {
    switch (json[at]) {
      case '"':
        at = skipString(json, at);
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
