import { createHandler } from "@parley/server/internal/handler";
import { memoryStore } from "@parley/server/internal/store/index";
import type { FetchLike } from "@parley/a2a/internal/transport/client/binding";
import { jsonRpcBinding as jsonRpcClient } from "@parley/a2a/internal/transport/jsonrpc/client";
import { jsonRpcBinding as jsonRpcServer } from "@parley/a2a/internal/transport/jsonrpc/handler";
import { restBinding as restClient } from "@parley/a2a/internal/transport/rest/client";
import { restBinding as restServer } from "@parley/a2a/internal/transport/rest/handler";
import type { ServerBinding } from "@parley/a2a/internal/transport/server/binding";
import { wires } from "@parley/a2a/internal/wires";
import type { ExtensionContractBinding } from "./extension-contract.ts";

/** JSON-RPC and REST in this process. */
export function localBindings(): readonly ExtensionContractBinding[] {
  const codecs = Object.values(wires);
  const serving =
    (binding: () => ServerBinding): ExtensionContractBinding["serve"] =>
    (agent, options) => {
      const publicUrl = "http://agents.example";
      const handler = createHandler(agent, { ...options, store: memoryStore(), publicUrl, bindings: [binding()] });
      const fetch: FetchLike = (url, init) => handler.fetch(new Request(url, init));
      return Promise.resolve({
        cards: handler.agents.map(({ card }) => card),
        fetch,
        close: () => handler.close({ grace: 0 }),
      });
    };
  return [
    { serve: serving(jsonRpcServer), client: jsonRpcClient(codecs) },
    { serve: serving(restServer), client: restClient(codecs) },
  ];
}
