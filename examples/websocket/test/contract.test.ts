import { memoryStore, serve } from "@parley/node";
import { bindingContract, type BindingContractOptions } from "@parley/testing";
import { describe, expect, it } from "vitest";
import { webSocketBinding as webSocketClient } from "../src/client.ts";
import { webSocketBinding } from "../src/server.ts";

/** The contract of bindings, for both sides of this one. */

const serving: BindingContractOptions["serve"] = async (agents, options) => {
  const server = await serve(agents, {
    ...options,
    port: 0,
    signals: false,
    logger: false,
    store: memoryStore(),
    bindings: [webSocketBinding()],
  });
  return { cards: server.agents.map(({ card }) => card), close: () => server.close({ grace: 0 }) };
};

describe.each(["1.0", "1.1", "0.3"])("WebSocket, A2A %s", (version) => {
  // Calls are frames, not HTTP requests. Versions before 1.0 cannot list tasks, and have no error details.
  const without = version === "0.3" ? (["http", "list", "details"] as const) : (["http"] as const);
  bindingContract({ describe, it, expect }, { serve: serving, client: webSocketClient(), version, without });
});
