import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, memoryStore, type Interceptor } from "@parley/server";
import { connect } from "@parley/a2a";
import { defineExtension } from "@parley/a2a/extensions";
import { grpcBinding } from "@parley/grpc/client";
import { serve, type Server } from "../src/index.ts";

/** The server echoes active extensions on every binding, version and stream, in the header that the request used (A2A 1.0 §4.6, 0.3 §3.2.6). */

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const first = defineExtension({ uri: "https://example.com/extensions/first/v1" });
const second = defineExtension({ uri: "https://example.com/extensions/second/v1", requires: [first.uri] });
const must = defineExtension({ uri: "https://example.com/extensions/must/v1", kind: "profile", required: true });

async function start(extensions: readonly (typeof first | typeof second | typeof must)[]): Promise<Server> {
  const agent = defineAgent({
    name: "Echo",
    description: "Says which extensions are active.",
    version: "1.0.0",
    skills: [],
    extensions,
    async *onMessage(turn) {
      yield turn.completed(turn.extensions.join(" "));
    },
  });
  const server = await serve(agent, { port: 0, grpc: true, signals: false, logger: false, store: memoryStore() });
  closers.push(() => server.close({ grace: 0 }));
  return server;
}

const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hi" }] };
const message03 = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "hi" }] };
const rpc = (method: string, params: object) => ({ path: "/", body: { jsonrpc: "2.0", id: 1, method, params } });

/** Each method that sends a message, and each method that streams its events. */
const ways = [
  ["JSON-RPC 1.0", "1.0", rpc("SendMessage", { message })],
  ["JSON-RPC 1.0, a stream", "1.0", rpc("SendStreamingMessage", { message })],
  ["REST 1.0", "1.0", { path: "/message:send", body: { message } }],
  ["REST 1.0, a stream", "1.0", { path: "/message:stream", body: { message } }],
  ["JSON-RPC 0.3", "0.3", rpc("message/send", { message: message03 })],
  ["JSON-RPC 0.3, a stream", "0.3", rpc("message/stream", { message: message03 })],
  [
    "REST 0.3",
    "0.3",
    { path: "/v1/message:send", body: { message: { messageId: "m", role: "ROLE_USER", content: [{ text: "hi" }] } } },
  ],
  [
    "REST 0.3, a stream",
    "0.3",
    { path: "/v1/message:stream", body: { message: { messageId: "m", role: "ROLE_USER", content: [{ text: "hi" }] } } },
  ],
] as const;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function post(
  server: Server,
  { path, body }: { path: string; body: object },
  headers: Record<string, string>,
): Promise<Answer> {
  const response = await fetch(new URL(path, server.url), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe.each(ways)("%s", (_, version, way) => {
  test.each(["a2a-extensions", "x-a2a-extensions"])("echoes activated extensions in %s", async (name) => {
    const server = await start([first, second]);
    const asked = `urn:unknown, ${second.uri},${first.uri},${first.uri}/, ,not a uri, ${first.uri}`;
    const { headers, text } = await post(server, way, { "a2a-version": version, [name]: asked });
    expect(headers.get(name)).toBe(`${first.uri}, ${second.uri}`);
    expect(headers.get(name === "a2a-extensions" ? "x-a2a-extensions" : "a2a-extensions")).toBeNull();
    expect(text).toContain(`${first.uri} ${second.uri}`);
    const plain = await post(server, way, { "a2a-version": version });
    expect([plain.headers.get("a2a-extensions"), plain.headers.get("x-a2a-extensions")]).toEqual([null, null]);
  });

  test("leaves out an extension without its dependency, and rejects a call without a required extension", async () => {
    const lax = await start([first, second]);
    const { headers } = await post(lax, way, { "a2a-version": version, "a2a-extensions": second.uri });
    expect(headers.get("a2a-extensions")).toBeNull();
    const strict = await start([first, must]);
    const refused = await post(strict, way, { "a2a-version": version, "a2a-extensions": first.uri });
    expect(refused.text).toContain(must.uri);
    expect(refused.text).toMatch(
      version === "1.0" ? /EXTENSION_SUPPORT_REQUIRED/ : /Required extensions were not requested/,
    );
    const { text } = await post(strict, way, { "a2a-version": version, "a2a-extensions": must.uri });
    expect(text).not.toContain("EXTENSION_SUPPORT_REQUIRED");
  });
});

test("gRPC echoes it too, in answers and streams", async () => {
  const server = await start([first, second]);
  const echoed: unknown[] = [];
  const watching: Interceptor = (next) => ({
    async call(operation, request, context) {
      const reply = await next.call(operation, request, context);
      echoed.push([operation, reply.extensions]);
      return reply;
    },
    async stream(operation, request, context) {
      const reply = await next.stream(operation, request, context);
      echoed.push([operation, reply.extensions]);
      return reply;
    },
  });
  const client = await connect(server.url, {
    bindings: [grpcBinding()],
    extensions: ["urn:unknown", second.uri, first.uri],
    interceptors: [watching],
  });
  await client.sendMessage("hi");
  const events: unknown[] = [];
  for await (const event of client.sendStreamingMessage("hi")) events.push(event);
  expect(events.length).toBeGreaterThan(0);
  expect(echoed).toEqual([
    ["SendMessage", [first.uri, second.uri]],
    ["SendStreamingMessage", [first.uri, second.uri]],
  ]);
});

/** Returns URIs that no card declares. */
const strangers = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `https://example.com/extensions/stranger-${index}/v1`);

test.each(["JSONRPC", "HTTP+JSON", "GRPC"])("a client may ask for hundreds of extensions over %s", async (binding) => {
  const server = await start([first]);
  const client = await connect(server.url, {
    binding,
    bindings: [grpcBinding()],
    extensions: [...strangers(250), first.uri],
  });
  const { task } = await client.sendMessage("hi");
  expect(task?.status.message?.parts[0]?.text).toBe(first.uri);
});

test("a client that asks for more than an HTTP/1.1 server accepts gets an error, and is not sent to another interface", async () => {
  const server = await start([first]);
  const client = await connect(server.url, { extensions: strangers(1000) });
  await expect(client.sendMessage("hi")).rejects.toMatchObject({
    code: "RequestTooLarge",
    message: `${server.url} does not accept headers of this size (HTTP 431)`,
  });
});
