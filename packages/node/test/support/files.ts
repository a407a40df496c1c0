import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BlobStore, Store } from "@parley/server/store";
import { afterEach, onTestFinished } from "vitest";
import { placeOfTest, stores } from "../../../../test/behaviour/stores.ts";
import { serve, type ServeOptions, type Server } from "../../src/index.ts";

/* The setup for tests of large files: a folder, and servers that are closed after their test. */

/** Creates a folder that is removed after its test. */
export async function folderOfTest(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "blobs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens a store that is closed after its test: in memory, or on PostgreSQL in the project `postgres`. */
export async function storeOfTest(): Promise<Store> {
  const store = await (await placeOfTest(stores[0] ?? "memory")).open();
  onTestFinished(() => store.close());
  return store;
}

/** Servers that are closed after their test. */
export interface TestServers {
  /** The servers of the current test. */
  readonly servers: Server[];
  serveOne(agents: Parameters<typeof serve>[0], options: Partial<ServeOptions>): Promise<Server>;
}

/** Creates the servers of a test file. Call this function once per file. */
export function serversOfTests(): TestServers {
  const servers: Server[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close({ grace: 0 })));
  });
  return {
    servers,
    async serveOne(agents, options) {
      const server = await serve(agents, { port: 0, grpc: true, signals: false, logger: false, ...options });
      servers.push(server);
      return server;
    },
  };
}

/** Returns the keys of all blobs. */
export async function keysOf(store: BlobStore): Promise<readonly string[]> {
  return (await store.list({ prefix: "", limit: 100 })).blobs.map(({ key }) => key);
}
