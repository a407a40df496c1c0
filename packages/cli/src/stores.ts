import { access, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { blobsBelongTo, deleteBlobsOf, deleteIncomingBlobs } from "@parley/server/internal/blobs/deletion";
import { withBlobs } from "@parley/server/internal/blobs/deliver";
import type { BlobStore } from "@parley/server/internal/blobs/port";
import type { Store } from "@parley/server/internal/store/index";
import type * as sqlite from "@parley/sql/sqlite";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";

/* The stores of servers: their databases, and the large files outside of them. */

/** Opens a store on a file. `name`: the file as the user named it, for the error. */
export async function openFile(name: string, open: (module: typeof sqlite) => Promise<Store>): Promise<Store> {
  try {
    return await open(await import("@parley/sql/sqlite"));
  } catch (cause) {
    throw new CommandError(`cannot open the store ${name}: ${fileReason(cause)}`, { cause });
  }
}

/** Opens the file that a server has made. It must exist: a new one would have no tasks. `hint`: what to pass if it does not. */
export async function openServed(io: Io, name: string, hint: string): Promise<Store> {
  if (name === "memory")
    throw new UsageError("a store in memory can be seen by its server alone: --store takes a file");
  const path = resolve(io.cwd, name);
  try {
    await access(path);
  } catch (cause) {
    throw new CommandError(`cannot open the store ${name}: ${fileReason(cause)}. ${hint}`, { cause });
  }
  // A thread takes longer to start than all that a command does.
  return openFile(name, ({ sqliteStore }) => sqliteStore({ path, create: false, thread: false }));
}

const methods = ["put", "get", "delete", "list"] as const;

function isBlobStore(value: unknown): value is BlobStore {
  return typeof value === "object" && value !== null && methods.every((name) => name in value);
}

/** Files of a server that are outside of its database. */
interface StoredFiles {
  /** Deletes those that an owner has with agents, and what its messages have brought, and returns how many there were. */
  deleteOf(owner: string, agents: readonly string[]): Promise<number>;
  /** The pieces of an export with the files of its owner in them. */
  putInto(pieces: AsyncIterable<string>, owner: string): AsyncIterable<string>;
}

/** Opens those in a folder, or in what a module exports. They must be those of this database. */
export async function openFiles(where: string, cwd: string, store: Store): Promise<StoredFiles> {
  const files = await filesAt(where, cwd);
  if ((await blobsBelongTo(files, store)) === false) {
    throw new CommandError(`the files at ${where} belong to another database. Pass --files with those of this one`);
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
  throw new CommandError(`${where} exports no store of files. Write "export default s3Blobs(client)"`);
}
