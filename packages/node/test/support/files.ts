import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Agent } from "@parley/a2a";
import type { BlobStore } from "@parley/a2a/blobs";
import { afterEach, onTestFinished } from "vitest";
import { serve, type ServeOptions, type Server } from "../../src/index.ts";

/* What the tests of large files begin with: a folder, and servers that end with their test. */

/** A folder that ends with its test. */
export async function folderOfTest(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "blobs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts servers that end with their test. */
export function servers(): (
  agents: Parameters<typeof serve>[0] | Agent,
  options: Partial<ServeOptions>,
) => Promise<Server> {
  const started: Server[] = [];
  afterEach(async () => {
    await Promise.all(started.splice(0).map((server) => server.close({ grace: 0 })));
  });
  return async (agents, options) => {
    const server = await serve(agents, { port: 0, signals: false, logger: false, ...options });
    started.push(server);
    return server;
  };
}

/** The keys of all blobs. */
export async function keysOf(store: BlobStore): Promise<readonly string[]> {
  return (await store.list({ prefix: "", limit: 100 })).blobs.map(({ key }) => key);
}
