/** Readers of cells. Each returns `undefined` for a text that it does not know. */

/** Longest number or date in characters. No pattern is tried on longer texts, because some take long to fail. */
const longest = 64;

function short(text: string): string {
  return text.length > longest ? "" : text.trim();
}

const missing = new Set(["", "na", "n/a", "#n/a", "nan", "null", "-", "--"]);

export function isMissing(text: string): boolean {
  return text.length <= 5 && missing.has(text.trim().toLowerCase());
}

const plain = /^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const thousands = /^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/;
const withComma = /^[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+$/;
const decorated = /^([+-]?)\s*[$€£]\s*(\S.*)$|^(.*\S)\s*[%€]$/;

/** A number: `12`, `1.5e3`, `1,234.5`, `$12`, `7 %`; `1.234,5` if the decimal sign is a comma. No number: `007`, a code. */
export function readNumber(text: string, decimalComma: boolean): number | undefined {
  const value = short(text);
  if (plain.test(value)) return /^[+-]?0\d/.test(value) ? undefined : finite(value);
  if (decimalComma && withComma.test(value)) return finite(value.replaceAll(".", "").replace(",", "."));
  if (!decimalComma && thousands.test(value)) return finite(value.replaceAll(",", ""));
  const inner = decorated.exec(value);
  if (inner === null) return undefined;
  const bare = inner[3] ?? `${inner[1] ?? ""}${inner[2] ?? ""}`;
  return decorated.test(bare) ? undefined : readNumber(bare, decimalComma);
}

function finite(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

export function readBoolean(text: string): boolean | undefined {
  const value = short(text).toLowerCase();
  if (value === "true" || value === "yes" || value === "t" || value === "y") return true;
  if (value === "false" || value === "no" || value === "f" || value === "n") return false;
  return undefined;
}

/** Milliseconds since the epoch; a time without a zone is read as UTC, so no answer depends on the server's time zone. */
export type DateReader = (text: string) => number | undefined;

const time = String.raw`(?:[T ]+(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d\d:?\d\d)?)?`;
const isoDate = new RegExp(String.raw`^(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2})${time})?$`);
const slashed = new RegExp(String.raw`^(\d{1,2})([/.-])(\d{1,2})\2(\d{4})${time}$`);
const dayMonth = /^(\d{1,2})[ -]([a-z]{3,9})\.?[ ,-]+(\d{4})$/i;
const monthDay = /^([a-z]{3,9})\.? +(?:(\d{1,2}),? +)?(\d{4})$/i;
const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** `2012-01-31`, `2012/1/31`, `2012-01`, with or without a time and a zone. */
export const readIso: DateReader = (text) => {
  const found = isoDate.exec(short(text));
  if (found === null) return undefined;
  return instant(Number(found[1]), Number(found[2]), Number(found[3] ?? 1), found.slice(4));
};

/** `1/31/2012`, as the United States write it. */
export const readMonthFirst: DateReader = (text) => {
  const found = slashed.exec(short(text));
  return found === null ? undefined : instant(Number(found[4]), Number(found[1]), Number(found[3]), found.slice(5));
};

/** `31/1/2012` or `31.1.2012`, as most others do. */
export const readDayFirst: DateReader = (text) => {
  const found = slashed.exec(short(text));
  return found === null ? undefined : instant(Number(found[4]), Number(found[3]), Number(found[1]), found.slice(5));
};

/** `Jan 1 2000`, `1 January 2000`, `March 2004`. */
export const readNamedMonth: DateReader = (text) => {
  const value = short(text);
  const [, day, name, year] = dayMonth.exec(value) ?? [];
  if (name !== undefined) return instant(Number(year), monthOf(name), Number(day), []);
  const found = monthDay.exec(value);
  return found === null ? undefined : instant(Number(found[3]), monthOf(found[1] ?? ""), Number(found[2] ?? 1), []);
};

/** `1987`. Used only for columns whose name says that they hold years. */
export const readYear: DateReader = (text) => {
  const value = short(text);
  return /^[12]\d{3}$/.test(value) ? Date.UTC(Number(value), 0, 1) : undefined;
};

/** By any of the readers that need no hint. */
export function readDate(text: string): number | undefined {
  return readIso(text) ?? readMonthFirst(text) ?? readDayFirst(text) ?? readNamedMonth(text);
}

function monthOf(name: string): number {
  return months.indexOf(name.slice(0, 3).toLowerCase()) + 1;
}

function instant(year: number, month: number, day: number, clock: readonly (string | undefined)[]): number | undefined {
  const [hours = "0", minutes = "0", seconds = "0", fraction = "0", zone] = clock;
  const at = new Date(0);
  at.setUTCFullYear(year, month - 1, day);
  // `Date` reads dates that do not exist, such as the 31st of June, as later ones.
  if (at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day || Number(hours) > 24) return undefined;
  at.setUTCHours(Number(hours), Number(minutes), Number(seconds), Number(`0.${fraction}`) * 1000);
  return at.getTime() - offsetOf(zone);
}

function offsetOf(zone: string | undefined): number {
  if (zone === undefined || zone === "Z") return 0;
  const digits = zone.slice(1).replace(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return (zone.startsWith("-") ? -1 : 1) * minutes * 60_000;
}
