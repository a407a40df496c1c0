import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { defineAgent, memoryStore, silentLogger } from "@parley/server";
import { guardedFetch, type GuardedFetch } from "@parley/a2a/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { connect } from "../src/client/connect.ts";
import { nodeDialer } from "../src/client/dialer.ts";
import { serve } from "../src/serve.ts";

/** If an agent's URL is untrusted, the client uses the guard as its `fetch`. */

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/** Creates a guard that resolves every name to this machine, and allows calls to servers at `ports`. */
function guardTo(...ports: readonly number[]): GuardedFetch {
  const resolve = async () => [{ address: "127.0.0.1", family: 4 as const }];
  const allow = ports.map((port) => `stranger.example:${port}`);
  return guardedFetch({ allow }, nodeDialer({ resolve }));
}

const cardAt = (url: string): object => ({
  name: "Stranger",
  description: "Sends clients elsewhere",
  version: "1",
  supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: {},
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
});

describe("a client with a guard", () => {
  it("calls an agent, and follows its stream", async () => {
    const agent = defineAgent({
      name: "Echo",
      description: "Says it again",
      version: "1",
      skills: [],
      async *onMessage(turn) {
        yield turn.artifact({ parts: [{ text: turn.text }] });
      },
    });
    const server = await serve(agent, { port: 0, store: memoryStore(), logger: silentLogger });
    onTestFinished(() => server.close({ grace: 0 }));
    const { port } = new URL(server.url);
    const guarded = guardedFetch({ allow: [`127.0.0.1:${port}`] }, nodeDialer());
    for (const binding of ["JSONRPC", "HTTP+JSON"]) {
      const client = await connect(server.url, { binding, fetch: guarded });
      const states: unknown[] = [];
      for await (const { statusUpdate } of client.sendStreamingMessage("hi")) states.push(statusUpdate?.status.state);
      expect(states.at(-1)).toBe("TASK_STATE_COMPLETED");
    }
  });

  it("sends nothing to an address of this machine that a card names", async () => {
    const reached: string[] = [];
    const inside = await listen((request, response) => {
      reached.push(request.url ?? "");
      response.end("{}");
    });
    for (const url of [
      `http://127.0.0.1:${inside}/`,
      `http://rebind.example:${inside}/`,
      `http://[::ffff:7f00:1]:${inside}/`,
    ]) {
      const port = await listen((_request, response) => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(cardAt(url)));
      });
      const client = await connect(`http://stranger.example:${port}`, { fetch: guardTo(port), retry: false });
      await expect(client.sendMessage("hi")).rejects.toMatchObject({ code: "InvalidParams" });
    }
    expect(reached).toEqual([]);
  });

  it("does not follow a redirect of a card to this machine", async () => {
    const reached: string[] = [];
    const inside = await listen((request, response) => {
      reached.push(request.url ?? "");
      response.end("{}");
    });
    const port = await listen((_request, response) => {
      response.writeHead(302, { location: `http://127.0.0.1:${inside}/admin` });
      response.end();
    });
    const refused = connect(`http://stranger.example:${port}`, { fetch: guardTo(port), retry: false });
    await expect(refused).rejects.toMatchObject({ code: "InvalidResponse" });
    expect(reached).toEqual([]);
  });
});
