import { expect, it } from "vitest";
import { memoryStore } from "@parley/server";
import { serve, type ServeOptions } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";

/* Options that there are not, as JavaScript can pass them: nothing is opened, and the error names the one that was meant. */

it.each([
  [{ prt: 4000 }, "prt is not an option of serve(): port is meant"],
  [{ prot: 4000 }, "prot is not an option of serve(): port is meant"],
  [{ limit: {} }, "limit is not an option of serve(): limits is meant"],
  [{ publicURL: "https://a.example" }, "publicURL is not an option of serve(): publicUrl is meant"],
  [{ grpc: { ports: 1 } }, "ports is not an option of grpc. There are port, url"],
  [{ grpc: { host: "a" } }, "host is not an option of grpc. There are port, url"],
  [{ lease: { maxDeath: 1 } }, "maxDeath is not an option of lease: maxDeaths is meant"],
  [{ push: { net: { allowPrivates: true } } }, "allowPrivates is not an option of push.net: allowPrivate is meant"],
  [{ processes: 2, ports: 4000 }, "ports is not an option of serve(): port is meant"],
])("serve() rejects %j", async (options, message) => {
  let opened = false;
  const store = () => ((opened = true), memoryStore());
  await expect(serve(echoAgent(), { port: 0, store, ...options } as ServeOptions)).rejects.toThrow(message);
  expect(opened).toBe(false);
});
