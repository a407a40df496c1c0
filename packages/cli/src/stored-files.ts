import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { blobsBelongTo } from "@parley/server/internal/blobs/mark";
import { deleteBlobsOf, deleteIncomingBlobs } from "@parley/server/internal/blobs/delete";
import { withBlobs } from "@parley/server/internal/blobs/deliver";
import type { BlobStore } from "@parley/server/internal/blobs/port";
import type { Store } from "@parley/server/internal/store/index";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";

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
