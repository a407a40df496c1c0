/**
 * SQLite's text is UTF-8 that some libraries cut at a NUL; JavaScript's text is neither. Names therefore stand in the
 * tables as the inside of a JSON string, which for nearly all of them is the name itself.
 */

// eslint-disable-next-line no-control-regex -- control characters are what this looks for
const special = /[\u0000-\u001f"\\\p{Surrogate}]/u;
const loneSurrogate = /\p{Surrogate}/u;

export function encodeName(name: string): string {
  return special.test(name) ? JSON.stringify(name).slice(1, -1) : name;
}

export function decodeName(text: string): string {
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}

/** The same JSON in text that UTF-8 can hold: a lone surrogate, which stands inside of a string, as its escape. */
export function encodeJson(json: string): string {
  if (!loneSurrogate.test(json)) return json;
  return json.replace(/\p{Surrogate}/gu, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
}
