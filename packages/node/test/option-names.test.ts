import { expect, it } from "vitest";
import { memoryStore } from "@parley/server";
import { serve, type ServeOptions } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";

/* If untyped JavaScript passes an unknown option, the server opens no port, and the error suggests the correct name. */

it.each([
  [{ prt: 4000 }, "prt is not an option of serve(): did you mean port?"],
  [{ prot: 4000 }, "prot is not an option of serve(): did you mean port?"],
  [{ limit: {} }, "limit is not an option of serve(): did you mean limits?"],
  [{ publicURL: "https://a.example" }, "publicURL is not an option of serve(): did you mean publicUrl?"],
  [{ grpc: { ports: 1 } }, "ports is not an option of grpc. The options are port, url"],
  [{ grpc: { host: "a" } }, "host is not an option of grpc. The options are port, url"],
  [{ lease: { maxDeath: 1 } }, "maxDeath is not an option of lease: did you mean maxDeaths?"],
  [
    { push: { net: { allowPrivates: true } } },
    "allowPrivates is not an option of push.net: did you mean allowPrivate?",
  ],
  [{ processes: 2, ports: 4000 }, "ports is not an option of serve(): did you mean port?"],
])("serve() rejects %j", async (options, message) => {
  let opened = false;
  const store = () => ((opened = true), memoryStore());
  await expect(serve(echoAgent(), { port: 0, store, ...options } as ServeOptions)).rejects.toThrow(message);
  expect(opened).toBe(false);
});

it.each([null, "postgres://secret-of-a-store@db", 5])("serve() rejects the store %j", async (store) => {
  const options = { port: 0, store } as unknown as ServeOptions;
  await expect(serve(echoAgent(), options)).rejects.toThrow("The option `store` must be a store, or a function");
});

it.each(["x", 65_536, -1, 1.5])("serve() rejects port %j", async (port) => {
  const options = { port, store: memoryStore() } as unknown as ServeOptions;
  const message = `port must be an integer from 0 to 65535; got ${JSON.stringify(port)}`;
  await expect(serve(echoAgent(), options)).rejects.toThrow(message);
});
