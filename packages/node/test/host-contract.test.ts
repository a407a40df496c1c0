import { createHost, memoryStore } from "@parley/server";
import { mountsContract, routesContract, serviceHostContract, type HostContractOptions } from "@parley/testing";
import { describe, expect, it } from "vitest";
import { serve } from "../src/index.ts";
import { fetchOver2 } from "./support/fetch-over-2.ts";
import { host as listening } from "./support/host.ts";

/* Runs the host contracts over both versions of HTTP, with and without an engine, and through the Fetch API. */

const common = { port: 0, signals: false, logger: false } as const;

const served =
  (more: Parameters<typeof serve>[1] = {}): HostContractOptions["serve"] =>
  async (mounts, options) => {
    // Even without a mount, a server has an engine, which needs a store.
    const server = await serve(mounts, {
      ...common,
      ...(mounts.length === 0 && { store: memoryStore() }),
      ...options,
      ...more,
    });
    return { url: server.url, mounts: server.mounts, close: (closing) => server.close(closing) };
  };

const over2: HostContractOptions["serve"] = async (mounts, options) => {
  const server = await served()(mounts, options);
  const { fetch, end } = await fetchOver2(server.url);
  return {
    ...server,
    fetch,
    async close(closing) {
      await server.close(closing);
      end();
    },
  };
};

const byFetch: HostContractOptions["serve"] = async (mounts, options) => {
  const url = "http://localhost:4000";
  const host = createHost(mounts, { publicUrl: url, ...options });
  return {
    url,
    mounts: host.mounts,
    fetch: (address, init) => host.fetch(new Request(address, init)),
    close: (closing) => host.close(closing),
  };
};

const inServerOfNode: HostContractOptions["serve"] = async (mounts, options) => {
  const made: ReturnType<typeof createHost>[] = [];
  const node = await listening((request) => {
    const [host] = made;
    if (host === undefined) throw new Error("There is no host yet");
    return host.handle(request);
  });
  const host = createHost(mounts, { publicUrl: node.url, ...options });
  made.push(host);
  return {
    url: node.url,
    mounts: host.mounts,
    async close(closing) {
      await host.close(closing);
      await node[Symbol.asyncDispose]();
    },
  };
};

describe.each([
  ["serve() over HTTP/1.1", served()],
  ["serve() over HTTP/2", over2],
  ["serve() with an engine", served({ store: memoryStore() })],
  ["createHost() by the Fetch API", byFetch],
  ["createHost() in a server of Node", inServerOfNode],
])("%s", (_, serving) => {
  const runner = { describe, it, expect };
  serviceHostContract(runner, { serve: serving });
  mountsContract(runner, { serve: serving });
  routesContract(runner, { serve: serving });
});
