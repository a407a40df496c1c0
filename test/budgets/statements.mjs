// Prints what an operation asks of SQLite: statements and transactions, by operation.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStore } from "@parley/sql/sqlite";
import Database from "libsql";
import { caller, chunked, minOf, operations } from "./agent.mjs";

let statements = 0;
let transactions = 0;

/**
 * What is counted of libsql: its own types are too broad for parameters.
 * @typedef {(...values: unknown[]) => unknown} Ask
 * @typedef {{ exec(sql: string): unknown, prepare(sql: string): Record<"run" | "get" | "all", Ask> }} Asked
 */
const asked = /** @type {Asked} */ (/** @type {unknown} */ (Database.prototype));
const { prepare, exec } = asked;
asked.exec = function counted(sql) {
  if (sql.startsWith("BEGIN")) transactions += 1;
  else if (sql !== "COMMIT") statements += 1;
  return exec.call(this, sql);
};
asked.prepare = function counted(sql) {
  const statement = prepare.call(this, sql);
  for (const name of /** @type {const} */ (["run", "get", "all"])) {
    const ask = statement[name].bind(statement);
    statement[name] = (...values) => {
      statements += 1;
      return ask(...values);
    };
  }
  return statement;
};

const folder = mkdtempSync(join(tmpdir(), "parley-budget-"));
// In one thread, so everything is counted here.
const store = await sqliteStore({ path: join(folder, "tasks.db"), driver: "libsql", thread: false });
const { call, close } = caller(store);
/** @param {() => Promise<unknown>} operate */
async function statementsOf(operate) {
  statements = 0;
  await operate();
  return statements;
}

/** @param {() => Promise<unknown>} operate */
async function transactionsOf(operate) {
  transactions = 0;
  await operate();
  return transactions;
}

/** @type {Record<string, number>} */
const counts = {};
for (const [name, operate] of Object.entries(await operations(call))) {
  await operate();
  counts[`statements of ${name}`] = await minOf(20, () => statementsOf(operate));
  counts[`transactions of ${name}`] = await minOf(20, () => transactionsOf(operate));
}
counts["statements of chunk"] = await chunked(call, statementsOf);
counts["transactions of chunk"] = await chunked(call, transactionsOf);
await close();
await store.close();
rmSync(folder, { recursive: true });
process.stdout.write(JSON.stringify(counts));
