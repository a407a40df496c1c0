import { A2AError, connect } from "@parley/a2a";
import { defineAgent, memoryStore, serve } from "@parley/node";
import { defineExtension, extensionError } from "@parley/a2a/extensions";
import { grpcBinding } from "@parley/grpc/client";
import { describe, expect, onTestFinished, test } from "vitest";

const uri = "https://example.com/extensions/print/v1";
const outOfPaper = extensionError(uri, {
  reason: "OUT_OF_PAPER",
  jsonrpc: -32300,
  code: "InvalidParams",
  http: 404,
  grpc: "NOT_FOUND",
  message: "There is no paper",
});

const print = defineExtension({
  uri,
  description: "Prints",
  onAccept({ message }) {
    throw outOfPaper(`Tray ${message.parts[0]?.text} is empty`, {
      metadata: { tray: "2" },
      cause: new Error("secret"),
    });
  },
});

async function printer() {
  const agent = defineAgent({
    name: "Printer",
    description: "Prints",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply("Printed"),
  });
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    signals: false,
    store: memoryStore(),
    logger: false,
    extensions: [print],
    versions: ["1.0", "0.3"],
  });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

const interfaces = ["JSONRPC", "HTTP+JSON", "GRPC"].flatMap((binding) =>
  ["1.0", "0.3"].map((version) => ({ binding, version })),
);

describe("an error that an extension defines", () => {
  test.each(interfaces)("is recognized over $binding of $version (A2A 1.0 §4.6.2)", async ({ binding, version }) => {
    const server = await printer();
    const client = await connect(server.agents[0]?.card ?? "", {
      binding,
      version,
      extensions: [uri],
      bindings: [grpcBinding()],
    });
    for (const call of [
      () => client.sendMessage("2"),
      async () => {
        for await (const event of client.sendStreamingMessage("2")) expect(event).toBeUndefined();
      },
    ]) {
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(outOfPaper.is(error)).toBe(true);
      expect(error).toBeInstanceOf(A2AError);
      expect((error as A2AError).message).toContain("Tray 2 is empty");
      expect(JSON.stringify(error)).not.toContain("secret");
      // A 0.3 JSON-RPC error has only a number and a message.
      if (binding === "JSONRPC" && version === "0.3") continue;
      expect(error).toMatchObject({ code: "InvalidParams", metadata: { tray: "2" } });
    }
    // If the extension is not active, its hooks do not run, and the server rejects no call.
    const plain = await connect(server.agents[0]?.card ?? "", { binding, version, bindings: [grpcBinding()] });
    expect((await plain.sendMessage("2")).message?.parts[0]?.text).toBe("Printed");
  });

  test("has its own numbers on the wire of JSON-RPC and REST (§9.5, §11.6)", async () => {
    const { url } = await printer();
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "2" }] };
    const headers = { "content-type": "application/json", "a2a-version": "1.0", "a2a-extensions": uri };
    const info = {
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: "OUT_OF_PAPER",
      domain: uri,
    };
    const rpc = await fetch(url, {
      method: "POST",
      headers,
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } }),
    });
    expect(rpc.status).toBe(200);
    const { error } = (await rpc.json()) as { error: { code: number; message: string; data: unknown[] } };
    expect(error).toMatchObject({ code: -32300, message: "Tray 2 is empty" });
    expect(error.data).toContainEqual(info);

    const rest = await fetch(`${url}/message:send`, { method: "POST", headers, body: JSON.stringify({ message }) });
    expect(rest.status).toBe(404);
    const body = (await rest.json()) as { error: { details: unknown[] } };
    expect(body.error).toMatchObject({ code: 404, status: "NOT_FOUND", message: "Tray 2 is empty" });
    expect(body.error.details).toContainEqual(info);
  });

  test("is not mistaken for another one", () => {
    const other = extensionError(uri, { ...outOfPaper.definition, reason: "OUT_OF_INK", jsonrpc: -32301 });
    const elsewhere = extensionError("https://example.com/extensions/print/v2", outOfPaper.definition);
    expect(outOfPaper.is(outOfPaper())).toBe(true);
    expect(other.is(outOfPaper())).toBe(false);
    expect(elsewhere.is(outOfPaper())).toBe(false);
    expect(outOfPaper.is(new A2AError("InvalidParams"))).toBe(false);
    expect(outOfPaper.is(new Error("There is no paper"))).toBe(false);
    expect(outOfPaper().message).toBe("There is no paper");
  });

  test("cannot have a code of JSON-RPC or A2A, or names that bindings cannot carry", () => {
    const wrong = (change: object) => () => extensionError(uri, { ...outOfPaper.definition, ...change });
    expect(wrong({ jsonrpc: -32001 })).toThrow(/jsonrpc must be/);
    expect(wrong({ jsonrpc: 1.5 })).toThrow(/jsonrpc must be/);
    expect(wrong({ reason: "out of paper" })).toThrow(/reason must be/);
    expect(wrong({ reason: "A".repeat(64) })).toThrow(/reason must be/);
    expect(wrong({ http: 200 })).toThrow(/http must be/);
    expect(wrong({ grpc: "OK" })).toThrow(/grpc must be/);
    expect(wrong({ code: "Timeout" })).toThrow(/code must be/);
    expect(() => extensionError("", outOfPaper.definition)).toThrow(/uri must be/);
  });
});
