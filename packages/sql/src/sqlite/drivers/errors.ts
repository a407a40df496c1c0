/** SQLite's result codes by number (sqlite.org/rescode.html); the upper bytes of an extended code only say more. */
const names: Readonly<Record<number, string>> = {
  1: "SQLITE_ERROR",
  2: "SQLITE_INTERNAL",
  3: "SQLITE_PERM",
  4: "SQLITE_ABORT",
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  7: "SQLITE_NOMEM",
  8: "SQLITE_READONLY",
  9: "SQLITE_INTERRUPT",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  12: "SQLITE_NOTFOUND",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  15: "SQLITE_PROTOCOL",
  16: "SQLITE_EMPTY",
  17: "SQLITE_SCHEMA",
  18: "SQLITE_TOOBIG",
  19: "SQLITE_CONSTRAINT",
  20: "SQLITE_MISMATCH",
  21: "SQLITE_MISUSE",
  22: "SQLITE_NOLFS",
  23: "SQLITE_AUTH",
  25: "SQLITE_RANGE",
  26: "SQLITE_NOTADB",
};

/** An error of `node:sqlite`, which has a number, with the code that errors of the other libraries have; others as they are. */
export function withCode(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return thrown;
  const code = names[thrown.errcode & 0xff] ?? "SQLITE_ERROR";
  return Object.assign(new Error(thrown.message, { cause: thrown }), { code });
}
