import { createHandler } from "../handler.ts";
import { memoryStore } from "../store/index.ts";
import type { FetchLike } from "../transport/client/binding.ts";
import { jsonRpcBinding as jsonRpcClient } from "../transport/jsonrpc/client.ts";
import { jsonRpcBinding as jsonRpcServer } from "../transport/jsonrpc/handler.ts";
import { restBinding as restClient } from "../transport/rest/client.ts";
import { restBinding as restServer } from "../transport/rest/handler.ts";
import type { ServerBinding } from "../transport/server/binding.ts";
import { wires } from "../wires.ts";
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
