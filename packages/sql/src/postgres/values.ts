import type { Value } from "./driver.ts";

/** How `pg` reads the columns of a row: as text, by the type of the column (`pg_type.oid`). */
export interface TypeParsers {
  getTypeParser(oid: number, format?: "text" | "binary"): (text: string) => Value;
}

/**
 * Parsers of our own, whatever the program has set for its pool: integers of 8 bytes are numbers, and JSON and times stay text.
 * They are passed with each statement.
 */
export const typeParsers: TypeParsers = {
  getTypeParser: (oid, format) => (format === "binary" ? refuse : (parsers[oid] ?? asText)),
};

const parsers: Readonly<Record<number, (text: string) => Value>> = {
  16: (text) => text === "t",
  17: bytes,
  20: integer, // int8, also of count()
  21: integer, // int2
  23: integer, // int4
  26: integer, // oid
  700: Number, // float4
  701: Number, // float8
  1700: Number, // numeric, also of sum(int8)
  1005: integers, // int2[]
  1007: integers, // int4[]
  1016: integers, // int8[]
  1009: texts, // text[]
  1015: texts, // varchar[]
  2951: texts, // uuid[]
};

function refuse(): never {
  throw new TypeError("The pool must not have the option `binary`");
}

function asText(text: string): string {
  return text;
}

function integer(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError("An integer of the database is too large for a number");
  return value;
}

function bytes(text: string): Uint8Array {
  // `bytea_output = escape` is of the time before 9.0.
  if (!text.startsWith("\\x")) throw new RangeError("The database must have bytea_output = hex");
  return Buffer.from(text.slice(2), "hex");
}

function integers(text: string): readonly Value[] {
  return elements(text).map((element) => (element === null ? null : integer(element)));
}

function texts(text: string): readonly Value[] {
  return elements(text);
}

/** The elements of an array of one dimension: `{a,"b \"c\"",NULL}` (PostgreSQL §8.15.6). */
function elements(text: string): readonly (string | null)[] {
  const found: (string | null)[] = [];
  const element = /"((?:[^"\\]|\\.)*)"|([^,{}"]+)/gs;
  for (const [, inQuotes, bare] of text.matchAll(element)) {
    if (inQuotes !== undefined) found.push(inQuotes.replaceAll(/\\(.)/gs, "$1"));
    else found.push(bare === "NULL" ? null : (bare ?? ""));
  }
  return found;
}
