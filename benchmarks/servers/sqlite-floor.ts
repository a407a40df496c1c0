import { rmSync } from "node:fs";
import { createHandler, defineAgent } from "@parley/server";
import { defaultDriver, sqliteStore } from "@parley/sql/sqlite";
import libsql from "libsql";
import { answerParent } from "../ipc.ts";
import { artifactText } from "./commands.ts";

// SQLite's own cost for Parley's tasks: node sqlite-floor.js FILE.
// Records the store's statements with their values once, and repeats them without any other work.

export interface FloorRound {
  readonly tasks: number;
  readonly seconds: number;
  /** CPU time of all tasks, in microseconds. */
  readonly cpu: number;
}

/** The used methods of both libraries. */
interface Database {
  exec(sql: string): unknown;
  prepare(sql: string): Statement;
  close(): void;
}
interface Statement extends Record<"run" | "get" | "all", (...values: readonly unknown[]) => unknown> {
  /** Only in `libsql`: whether the statement returns rows. `raw()` makes them arrays. */
  readonly reader?: boolean;
  raw?(): void;
  /** The equivalent in `node:sqlite`. */
  setReturnArrays?(enabled: boolean): void;
}
type OpenDatabase = new (path: string) => Database;

/** One call. `how` is absent for SQL that is executed as it is. */
interface Step {
  readonly sql: string;
  readonly how?: "run" | "get" | "all";
  readonly values: readonly unknown[];
}

const tasks = 4000;
/** The number of tasks per transaction: about as many as in a server with 32 connections. */
const together = 16;

const [path = "floor.db"] = process.argv.slice(2);
const sqlite = process.getBuiltinModule("node:sqlite") as { readonly DatabaseSync: unknown } | undefined;
const Opened = (defaultDriver() === "node:sqlite" ? sqlite?.DatabaseSync : libsql) as OpenDatabase;

/** Runs `body`, and returns its recorded calls. */
async function recorded(body: () => Promise<void>): Promise<readonly Step[]> {
  const steps: Step[] = [];
  const { prototype } = Opened as unknown as { readonly prototype: Database };
  const { exec, prepare } = prototype;
  prototype.exec = function recordExec(this: Database, sql) {
    steps.push({ sql, values: [] });
    return exec.call(this, sql);
  };
  prototype.prepare = function recordPrepare(this: Database, sql) {
    const statement = prepare.call(this, sql);
    for (const how of ["run", "get", "all"] as const) {
      const original = statement[how].bind(statement);
      statement[how] = (...values) => {
        steps.push({ sql, how, values });
        return original(...values);
      };
    }
    return statement;
  };
  await body();
  Object.assign(prototype, { exec, prepare });
  return steps;
}

/** Completes tasks of one artifact, as a server does. */
async function completeTasks(): Promise<void> {
  const store = await sqliteStore({ path, thread: false });
  const agent = defineAgent({
    name: "Floor",
    description: "Completes a task",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      yield turn.artifact({ parts: [{ text: artifactText }] });
    },
  });
  const handler = createHandler(agent, { publicUrl: "http://localhost", store });
  const { signal } = new AbortController();
  const headers: Readonly<Record<string, string>> = { "content-type": "application/json", "a2a-version": "1.0" };
  const send = async (number: number): Promise<void> => {
    const message = {
      messageId: `floor-${String(number).padStart(16, "0")}`,
      role: "ROLE_USER",
      parts: [{ text: "task" }],
    };
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } });
    const { status } = await handler.handle({
      method: "POST",
      url: "/",
      header: (name) => headers[name],
      text: async () => text,
      signal,
    });
    if (status !== 200) throw new Error(`a task was answered with ${status}`);
  };
  for (let number = 0; number < tasks; number += together) {
    await Promise.all(Array.from({ length: together }, (_, at) => send(number + at)));
  }
  await handler.close({ grace: 0 });
  await store.close();
}

function run(steps: readonly Step[]): FloorRound {
  removeFiles();
  const database = new Opened(path);
  const statements = new Map<string, Statement>();
  const before = process.cpuUsage();
  const start = performance.now();
  for (const { sql, how, values } of steps) {
    if (how === undefined) database.exec(sql);
    else {
      let statement = statements.get(sql);
      if (statement === undefined) {
        statement = prepared(database, sql);
        statements.set(sql, statement);
      }
      statement[how](...values);
    }
  }
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(before);
  database.close();
  return { tasks, seconds, cpu: user + system };
}

function removeFiles(): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

function prepared(database: Database, sql: string): Statement {
  const statement = database.prepare(sql);
  statement.setReturnArrays?.(true);
  if (statement.reader === true) statement.raw?.();
  return statement;
}

removeFiles();
const steps = await recorded(completeTasks);
answerParent({ run: () => run(steps) });
