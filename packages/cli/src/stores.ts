import { access, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { A2AError } from "@parley/a2a/internal/model/index";
import { blobsBelongTo, deleteBlobsOf, deleteIncomingBlobs } from "@parley/server/internal/blobs/deletion";
import { withBlobs } from "@parley/server/internal/blobs/deliver";
import type { BlobStore } from "@parley/server/internal/blobs/port";
import type { Store } from "@parley/server/internal/store/index";
import type * as sqlite from "@parley/sql/sqlite";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";
import { defaultStore } from "./options.ts";

/* The stores of servers: their databases, and the large files outside of them. */

/** Opens a store on a file. `name`: the file as the user named it, for the error. */
export async function openFile(name: string, open: (module: typeof sqlite) => Promise<Store>): Promise<Store> {
  try {
    return await open(await import("@parley/sql/sqlite"));
  } catch (cause) {
    throw new CommandError(`cannot open the store ${name}: ${fileReason(cause)}`, { cause });
  }
}

/** Opens the existing file of a server. `hint`: what to pass if the file does not exist. */
export async function openServed(io: Io, name: string, hint: string): Promise<Store> {
  if (name === "memory") throw new UsageError("--store must be a file; only its server can read a store in memory");
  const path = resolve(io.cwd, name);
  try {
    await access(path);
  } catch (cause) {
    throw new CommandError(`cannot open the store ${name}: ${fileReason(cause)}. ${hint}`, { cause });
  }
  // Starting a thread takes longer than the whole command.
  return openFile(name, ({ sqliteStore }) => sqliteStore({ path, create: false, thread: false }));
}

/** Where a database is. */
export interface PlaceOptions {
  readonly store?: string;
  readonly databaseUrl?: string;
  readonly schema: string;
  readonly verbose?: boolean;
}

/** Opens the file of `--store`, else PostgreSQL if there is a URL, else the default file. */
export async function openStore<T>(io: Io, options: PlaceOptions, run: (store: Store) => Promise<T>): Promise<T> {
  const url = options.databaseUrl ?? (options.store === undefined ? io.env["DATABASE_URL"] : undefined);
  if (options.store !== undefined && options.databaseUrl !== undefined) {
    throw new UsageError("pass either --store, an SQLite file, or --database-url, a PostgreSQL database");
  }
  const hint = "Pass --store with the file of the server, or --database-url";
  const isFile = url === undefined || url === "";
  let store: Store | undefined;
  try {
    store = isFile
      ? await openServed(io, options.store ?? defaultStore, hint)
      : await openPostgres(url, options.schema);
    return await run(store);
  } catch (cause) {
    if (!(cause instanceof A2AError) || cause.code !== "Unavailable") throw cause;
    // Not an A2AError: users would read Unavailable as the answer of an agent.
    throw new CommandError(cause.message, { cause });
  } finally {
    await store?.close();
  }
}

async function openPostgres(database: string, schema: string): Promise<Store> {
  const { postgresStore } = await import("@parley/sql/postgres");
  return postgresStore({ database, schema, migrate: false, connections: 3 });
}

const methods = ["put", "get", "delete", "list"] as const;

function isBlobStore(value: unknown): value is BlobStore {
  return typeof value === "object" && value !== null && methods.every((name) => name in value);
}

/** The files of a server outside its database. */
interface StoredFiles {
  /** Deletes the files of an owner with these agents, and returns how many there were. */
  deleteOf(owner: string, agents: readonly string[]): Promise<number>;
  /** Adds the files of the owner to the pieces of an export. */
  putInto(pieces: AsyncIterable<string>, owner: string): AsyncIterable<string>;
}

/** Opens the files in a folder, or in the BlobStore that a module exports. They must belong to the database. */
export async function openFiles(where: string, cwd: string, store: Store): Promise<StoredFiles> {
  const files = await filesAt(where, cwd);
  if ((await blobsBelongTo(files, store)) === false) {
    throw new CommandError(`the files at ${where} belong to another database. Pass --files for this one`);
  }
  return {
    async deleteOf(owner, agents) {
      let deleted = await deleteIncomingBlobs(files, owner);
      for (const agent of agents) deleted += await deleteBlobsOf(files, { agent, owner });
      return deleted;
    },
    putInto: (pieces, owner) => withBlobs(pieces, files, owner),
  };
}

async function filesAt(where: string, cwd: string): Promise<BlobStore> {
  const path = resolve(cwd, where);
  let isFolder: boolean;
  try {
    isFolder = (await stat(path)).isDirectory();
  } catch (cause) {
    throw new UsageError(`cannot read ${where}: ${fileReason(cause)}`, { cause });
  }
  if (isFolder) return (await import("@parley/node")).fileBlobs(path);
  const value = await (await import("./modules.ts")).loadDefault(where, cwd, isBlobStore);
  if (isBlobStore(value)) return value;
  throw new CommandError(`${where} must export a BlobStore, such as "export default s3Blobs(client)"`);
}
