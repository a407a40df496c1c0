import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore, type Store } from "@parley/server";
import { postgresStore } from "@parley/sql/postgres";
import { sqliteStore } from "@parley/sql/sqlite";
import pg from "pg";
import { inject, onTestFinished } from "vitest";

/* The stores of a test: memory and SQLite. The project `postgres` runs the same files with PostgreSQL and a server. */

export type StoreName = "memory" | "SQLite" | "PostgreSQL";

/** The URL of the server that the project `postgres` has started, or `undefined` in other projects. */
const server: string | undefined = inject("postgres") as string | undefined;

/** The stores with which each test file runs. */
export const stores: readonly StoreName[] = server === undefined ? ["memory", "SQLite"] : ["PostgreSQL"];

/** The location of a store's data. The data can be reopened there. */
export interface Place {
  /** Opens the store, which the caller must close. In memory, every call returns the same store. */
  open(): Promise<Store>;
  /** Returns everything that was written, as text: all bytes of SQLite's files, or all rows of PostgreSQL. Empty in memory. */
  written(): Promise<string>;
  /** Deletes everything. The caller must have closed all stores. */
  remove(): Promise<void>;
}

/** Creates a separate location for the data of a store. */
export async function placeOf(name: StoreName): Promise<Place> {
  if (name === "memory") return memory();
  return name === "SQLite" ? sqlite() : postgres();
}

/** Creates a location that is deleted when the test ends. */
export async function placeOfTest(name: StoreName): Promise<Place> {
  const place = await placeOf(name);
  onTestFinished(() => place.remove());
  return place;
}

function memory(): Place {
  const store = memoryStore();
  return {
    open: () => Promise.resolve(store),
    written: () => Promise.resolve(""),
    remove: () => Promise.resolve(),
  };
}

async function sqlite(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "parley-behaviour-"));
  return {
    open: () => sqliteStore({ path: join(folder, "tasks.db") }),
    async written() {
      const files = await readdir(folder);
      return (await Promise.all(files.map((file) => readFile(join(folder, file), "latin1")))).join("");
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Creates a separate schema. */
function postgres(): Place {
  const database = server ?? "";
  const schema = `behaviour_${randomUUID().replaceAll("-", "")}`;
  const ask = async (text: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text)).rows;
    } finally {
      await client.end();
    }
  };
  return {
    open: () => postgresStore({ database, schema, connections: 4 }),
    async written() {
      const tables = await ask(`SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'`);
      const rows = tables.map(({ tablename }) =>
        ask(`SELECT t::text AS row FROM "${schema}"."${String(tablename)}" t`),
      );
      return (await Promise.all(rows)).flatMap((table) => table.map(({ row }) => String(row))).join("\n");
    },
    async remove() {
      await ask(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
    },
  };
}
