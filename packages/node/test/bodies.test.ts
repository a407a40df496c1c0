import { once } from "node:events";
import type { Socket } from "node:net";
import { createHandler, memoryStore, type HandlerLimits } from "@parley/server";
import { fakeClock } from "@parley/testing";
import { expect, it, vi } from "vitest";
import { echoAgent } from "./support/agents.ts";
import { deferred, RawClient } from "./support/host.ts";
import { answerOf, Http2Client } from "./support/http2.ts";
import { liveMemory } from "../../../test/heap.ts";
import { openPort } from "./support/port.ts";

/** Tests the memory of request bodies that are incomplete, or whose senders are not authenticated yet. */

const mib = 1024 * 1024;

/** Returns the process's memory on and outside of the heap, in bytes. */
function held(): number {
  const { heapUsed, arrayBuffers } = liveMemory();
  return heapUsed + arrayBuffers;
}

async function serving(limits: HandlerLimits = {}) {
  const clock = fakeClock();
  const handler = createHandler(echoAgent(), {
    store: memoryStore(),
    publicUrl: "http://127.0.0.1",
    limits,
    clock,
  });
  const port = await openPort(handler.handle);
  const sockets: Socket[] = [];
  const { connections } = port.main;
  const accept = connections.accept.bind(connections);
  connections.accept = (socket) => {
    sockets.push(socket);
    accept(socket);
  };
  return {
    ...port,
    clock,
    sockets,
    async [Symbol.asyncDispose]() {
      await handler.close({ grace: 0 });
      await port[Symbol.asyncDispose]();
    },
  };
}

const head = (more: string): string =>
  `POST /message:send HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;
const message = (text: string): string =>
  JSON.stringify({ message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] } });

it("a body in one-byte chunks takes little more memory than its size (HTTP/1.1)", async () => {
  await using server = await serving();
  using client = await RawClient.to(server.port);
  client.socket.write(head("transfer-encoding: chunked"));
  const before = held();
  const chunks = Buffer.from("1\r\n \r\n".repeat(mib / 4));
  client.socket.write(chunks);
  await vi.waitFor(() => expect(server.sockets[0]!.bytesRead).toBeGreaterThanOrEqual(chunks.length), 10_000);
  expect(held() - before).toBeLessThan(4 * mib);
});

it("a body in one-byte frames takes little more memory than its size (HTTP/2)", async () => {
  await using server = await serving();
  using client = await Http2Client.to(server.origin);
  const before = held();
  const headers = { ":method": "POST", "content-type": "application/json" };
  const streams = Array.from({ length: 8 }, () => client.begin("/message:send", headers));
  for (let piece = 0; piece < 5_000; piece++) {
    for (const stream of streams) stream.write(" ");
    // Waits, because writes in the same turn of the event loop would be sent as one frame.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await vi.waitFor(() => expect(server.sockets[0]!.bytesRead).toBeGreaterThanOrEqual(10 * 8 * 5_000), 10_000);
  expect(held() - before).toBeLessThan(4 * mib);
});

it("answers others while 200 large bodies are unfinished, and reads waiting bodies when stalled ones are rejected", async () => {
  await using server = await serving({ bodyBytes: mib, unfinishedBytes: 8 * mib });
  const before = held();
  const body = Buffer.alloc(0.95 * mib, " ");
  const clients = await Promise.all(Array.from({ length: 200 }, () => RawClient.to(server.port)));
  for (const { socket } of clients) {
    socket.write(head(`content-length: ${mib}`));
    socket.write(body);
  }
  await vi.waitFor(
    () => expect(server.sockets.filter(({ bytesRead }) => bytesRead >= body.length)).toHaveLength(5),
    10_000,
  );
  using client = await Http2Client.to(server.origin);
  const json = { "content-type": "application/json" };
  const small = await client.post("/message:send", message("hi"), json);
  expect(small.status).toBe(200);
  // The server may hold the budget, and Node's buffers for each connection that it does not read.
  expect(held() - before).toBeLessThan(8 * mib + 200 * 0.2 * mib);
  const text = message("x".repeat(mib / 2));
  const large = client.post("/message:send", text, { ...json, "content-length": text.length });
  // Before the body is admitted, the server reads as much as fits into its window.
  await vi.waitFor(() => expect(server.sockets[200]!.bytesRead).toBeGreaterThan(200_000), 10_000);
  server.clock.advance(4_000);
  expect((await large).status).toBe(200);
  await vi.waitFor(() => {
    server.clock.advance(1_000);
    expect(
      clients.filter(({ text }) => /^HTTP\/1\.1 503 .*\r\n[^]*retry-after: 5\r\n/i.test(text)).length,
    ).toBeGreaterThan(190);
  }, 20_000);
  for (const each of clients) each[Symbol.dispose]();
});

it("stops reading a connection whose request is not read (HTTP/1.1)", async () => {
  const waiting = deferred();
  await using port = await openPort(async (request) => {
    await waiting.promise;
    return { status: 200, headers: {}, body: String((await request.text(20 * mib)).length) };
  });
  const server: Socket[] = [];
  const accept = port.main.connections.accept.bind(port.main.connections);
  port.main.connections.accept = (socket) => {
    server.push(socket);
    accept(socket);
  };
  using client = await RawClient.to(port.port);
  client.socket.write(head(`content-length: ${8 * mib}`));
  const sent = once(client.socket, "drain");
  client.socket.write(Buffer.alloc(8 * mib, " "));
  using other = await RawClient.to(port.port);
  other.socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await vi.waitFor(() => expect(server[1]?.bytesRead).toBeGreaterThan(0));
  await new Promise((resolve) => setImmediate(resolve));
  expect(server[0]!.bytesRead).toBeLessThan(mib);
  waiting.resolve();
  await sent;
  await client.until((text) => text.endsWith(String(8 * mib)));
});

it("rejects a body by its announced length before it is sent (HTTP/2)", async () => {
  await using server = await serving({ bodyBytes: mib });
  using client = await Http2Client.to(server.origin);
  const headers = { ":method": "POST", "content-type": "application/json", "content-length": 2 * mib };
  expect((await answerOf(client.begin("/message:send", headers))).status).toBe(413);
});
