import { describe, it, type TestContext } from "vitest";
import { A2AError, connect, type AgentCard, type Client, type ConnectOptions } from "@parley/a2a";
import { hostile, type HostileServer, type Misbehave, strange, unending } from "./support/hostile.ts";

/**
 * Tests the client against servers with arbitrary responses: each call ends within its limits, with an `A2AError` and no other error. The
 * tests wait for these limits, so they run in parallel.
 */

async function serve(misbehave: Misbehave, context: TestContext): Promise<HostileServer> {
  const server = await hostile(misbehave);
  context.onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** Returns the error code of a call. Fails if the call succeeds. */
async function outcome(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => new Error("It was answered"),
    (error: unknown) => error,
  );
  if (!(thrown instanceof A2AError)) throw thrown;
  return thrown.code;
}

async function closed(server: HostileServer): Promise<void> {
  while (server.open() > 0) await new Promise((resolve) => setTimeout(resolve, 2));
}

describe.concurrent("the client", () => {
  const limits: ConnectOptions = { retry: false, reconnect: false, maxResponseBytes: 1 << 20 };
  const short: ConnectOptions = { ...limits, timeout: 300 };
  const cardFor = (url: string, protocolBinding: string): AgentCard => ({
    name: "Odd",
    description: "",
    version: "1.0.0",
    supportedInterfaces: [{ url, protocolBinding, protocolVersion: "1.0" }],
    capabilities: { streaming: true },
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
  });
  const each: readonly (readonly [string, (client: Client) => Promise<unknown>])[] = [
    ["a call", (client) => client.getTask("t")],
    ["a send", (client) => client.sendMessage("hi")],
    ["a stream", (client) => client.subscribeToTask("t")[Symbol.asyncIterator]().next()],
  ];

  it.for(strange)("survives %s, for a card and over each binding", async ([, misbehave], context) => {
    const { expect } = context;
    const server = await serve(misbehave, context);
    expect(await outcome(connect(server.url, limits))).toMatch(/^[A-Z]/);
    for (const binding of ["JSONRPC", "HTTP+JSON"]) {
      const client = await connect(cardFor(server.url, binding), limits);
      for (const [, run] of each) expect(await outcome(run(client))).toMatch(/^[A-Z]/);
    }
  });

  it.for(unending)(
    "ends %s within its limits, for a card and over each binding",
    async ([name, misbehave], context) => {
      const { expect } = context;
      const server = await serve(misbehave, context);
      expect(await outcome(connect(server.url, short))).toMatch(/^(Timeout|InvalidResponse|ConnectionLost)$/);
      for (const binding of ["JSONRPC", "HTTP+JSON"]) {
        const client = await connect(cardFor(server.url, binding), short);
        const ends = await Promise.all(each.map(([, run]) => outcome(run(client))));
        for (const end of ends) expect(end).toMatch(/^(Timeout|InvalidResponse|ConnectionLost)$/);
      }
      // Since Node 26, such a response has no body to cancel, so `fetch` keeps the connection.
      const isKept = name === "a body for a status without one" && Number.parseInt(process.versions.node) >= 26;
      if (!isKept) await closed(server);
    },
  );
});
