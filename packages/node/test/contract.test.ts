import { jsonRpcBinding as jsonRpcServer, memoryStore, restBinding as restServer } from "@parley/server";
import { codecV11, wires, type ServerBinding } from "@parley/a2a/protocol";
import { jsonRpcBinding as jsonRpcClient, restBinding as restClient, type ClientBinding } from "@parley/a2a";
import { bindingContract, type BindingContractOptions } from "@parley/testing";
import { grpcBinding as grpcServer } from "@parley/grpc";
import { grpcBinding as grpcClient } from "@parley/grpc/client";
import { grpcWebBinding } from "@parley/grpc/web";
import { describe, expect, it } from "vitest";
import { serve } from "../src/index.ts";

/** Tests every binding of this project over real sockets, each on its own server. */

const codecs = [wires["1.0"], codecV11, wires["0.3"]];

const serving =
  (binding: () => ServerBinding): BindingContractOptions["serve"] =>
  async (agents, options) => {
    const store = memoryStore();
    const common = { port: 0, signals: false, logger: false, store, bindings: [binding()] } as const;
    const server = await serve(agents, { ...options, ...common });
    return {
      cards: server.agents.map(({ card }) => card),
      async close() {
        await server.close({ grace: 0 });
        await store.close();
      },
    };
  };

const runner = { describe, it, expect };
const pairs: readonly (readonly [string, () => ServerBinding, ClientBinding, BindingContractOptions["without"]])[] = [
  ["JSON-RPC", jsonRpcServer, jsonRpcClient(codecs), []],
  ["REST", restServer, restClient(codecs), []],
  // gRPC messages have no field for an event's seq, and browsers send a preflight request before every gRPC call.
  ["gRPC", grpcServer, grpcClient(codecs), ["resume", "http"]],
  ["gRPC-Web", grpcServer, grpcWebBinding(codecs), ["resume", "http"]],
];

describe.each(pairs)("%s", (_, server, client, without = []) => {
  bindingContract(runner, { serve: serving(server), client, version: "1.0", without });
});

describe("gRPC 0.3", () => {
  bindingContract(runner, {
    serve: serving(grpcServer),
    client: grpcClient(codecs),
    version: "0.3",
    without: ["resume", "http", "list"],
  });
});
