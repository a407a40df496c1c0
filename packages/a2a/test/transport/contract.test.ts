import { describe, expect, test } from "vitest";
import { createHandler, type ServerBinding } from "@parley/server/internal/handler";
import { memoryStore } from "@parley/server/internal/store/index";
import { bindingContract, type BindingContractOptions } from "@parley/testing";
import { jsonRpcBinding as jsonRpcServer } from "../../src/transport/jsonrpc/handler.ts";
import { jsonRpcBinding as jsonRpcClient } from "../../src/transport/jsonrpc/client.ts";
import { restBinding as restServer } from "../../src/transport/rest/handler.ts";
import { restBinding as restClient } from "../../src/transport/rest/client.ts";
import { codecV11, wires } from "../../src/wires.ts";

/** Runs the binding contract for JSON-RPC and REST in every version, without a network. Authors of custom bindings can do the same. */

const codecs = [wires["1.0"], codecV11, wires["0.3"]];

const serving =
  (binding: ServerBinding): BindingContractOptions["serve"] =>
  (agents, options) => {
    const publicUrl = "http://agents.example";
    const handler = createHandler(agents, { ...options, store: memoryStore(), publicUrl, bindings: [binding] });
    return Promise.resolve({
      cards: handler.agents.map(({ card }) => card),
      fetch: (url, init) => handler.fetch(new Request(url, init as RequestInit)),
      close: () => handler.close({ grace: 0 }),
    });
  };

const runner = { describe, it: test, expect };

describe.each(["1.0", "1.1"])("JSON-RPC %s", (version) => {
  bindingContract(runner, { serve: serving(jsonRpcServer()), client: jsonRpcClient(codecs), version });
});

describe.each(["1.0", "1.1"])("REST %s", (version) => {
  bindingContract(runner, { serve: serving(restServer()), client: restClient(codecs), version });
});

describe("JSON-RPC 0.3", () => {
  bindingContract(runner, {
    serve: serving(jsonRpcServer()),
    client: jsonRpcClient(codecs),
    version: "0.3",
    without: ["list", "details"],
  });
});

describe("REST 0.3", () => {
  bindingContract(runner, { serve: serving(restServer()), client: restClient(codecs), version: "0.3" });
});
