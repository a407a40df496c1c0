import { jsonRpcBinding as jsonRpcServer, memoryStore, restBinding as restServer, serve } from "@parley/node";
import { jsonRpcBinding as jsonRpcClient, restBinding as restClient } from "@parley/a2a";
import type { ExtensionContractBinding } from "@parley/testing";
import { wires } from "@parley/a2a/protocol";
import { grpcBinding as grpcServer } from "@parley/grpc";
import { grpcBinding as grpcClient } from "@parley/grpc/client";

/** Returns every binding of this project over real sockets, in 1.0 and 0.3, for `extensionContract()`. */
export function everyBinding(): readonly ExtensionContractBinding[] {
  const codecs = Object.values(wires);
  const pairs = [
    [jsonRpcServer, jsonRpcClient(codecs)],
    [restServer, restClient(codecs)],
    [grpcServer, grpcClient(codecs)],
  ] as const;
  return pairs.map(([binding, client]) => ({
    client,
    async serve(agent, options) {
      const store = memoryStore();
      const server = await serve(agent, { ...options, port: 0, signals: false, store, bindings: [binding()] });
      return {
        cards: server.agents.map(({ card }) => card),
        async close() {
          await server.close({ grace: 0 });
          await store.close();
        },
      };
    },
  }));
}
