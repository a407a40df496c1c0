import { describe, expect, it, onTestFinished } from "vitest";
import { createHandler, defineAgent, memoryStore } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { fakeClock } from "@parley/testing";
import { host, RawClient } from "./support/host.ts";

/* Tests the request id of a rejected caller, which the server reads from a socket within limits (JSON-RPC 2.0 §5). */

async function refusing() {
  const clock = fakeClock();
  const agent = defineAgent({
    name: "Closed",
    description: "Lets nobody in.",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply("never"),
  });
  const authenticator = bearer({ secret: { subject: "ann" } });
  const publicUrl = "http://agents.example";
  const handler = createHandler(agent, { publicUrl, store: memoryStore(), clock, authenticator });
  const { port, url, ...server } = await host(handler.handle);
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    await handler.close();
  });
  return { clock, port, url };
}

const json = { "content-type": "application/json" };
const call = (text: string): string =>
  JSON.stringify({ jsonrpc: "2.0", id: "x-1", method: "GetTask", params: { text } });
const head = (...lines: string[]): string =>
  ["POST / HTTP/1.1", "Host: a", "Content-Type: application/json", ...lines].join("\r\n") + "\r\n\r\n";

describe("401 over a connection", () => {
  it("repeats the id, and the connection serves the next request", async () => {
    const { port } = await refusing();
    using client = await RawClient.to(port);
    const body = call("");
    for (const count of [1, 2]) {
      client.socket.write(head(`Content-Length: ${body.length}`) + body);
      const text = await client.until((all) => all.split('"id":"x-1"').length > count);
      expect(text).toContain("HTTP/1.1 401 ");
    }
  });

  it("has no id if the body is too large, announced or not", async () => {
    const { url } = await refusing();
    const body = call("x".repeat(1_000_000));
    const stream = new Blob([body]).stream();
    for (const init of [{ body }, { body: stream, duplex: "half" as const }]) {
      const answer = await fetch(url, { method: "POST", headers: json, ...init });
      expect([answer.status, await answer.json()]).toMatchObject([401, { id: null }]);
    }
  });

  it("is answered without an id if the body stalls", async () => {
    const { port, clock } = await refusing();
    using client = await RawClient.to(port);
    client.socket.write(head("Transfer-Encoding: chunked") + '10\r\n{"jsonrpc":"2.0"\r\n');
    const passing = (): string => {
      clock.advance(1_000);
      return client.text;
    };
    await expect.poll(passing).toContain('"id":null');
    expect(client.text).toContain("HTTP/1.1 401 ");
  });
});
