import { describe, expect, it, onTestFinished } from "vitest";
import { A2AError } from "@parley/server";
import { guardedFetch } from "@parley/a2a/protocol";
import { nodeDialer } from "../src/client/dialer.ts";
import { hostile, type HostileServer, type Misbehave, strange, unending } from "./support/hostile.ts";

/**
 * Tests outgoing calls to servers with arbitrary responses: each call ends within its limits, with a response or an `A2AError`, and leaves
 * no connection open. An error thrown from a callback would end the process, and with it the test run.
 */

async function serve(misbehave: Misbehave): Promise<HostileServer> {
  const server = await hostile(misbehave);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** Returns the outcome of a call: an error code, or `answer`. */
async function outcome(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "answered";
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    return thrown.code;
  }
}

async function closed(server: HostileServer): Promise<void> {
  while (server.open() > 0) await new Promise((resolve) => setTimeout(resolve, 2));
}

describe("the pinned dialer", () => {
  const policy = { allowPrivate: true, maxBytes: 1 << 20 };

  async function read(url: string, timeout: number): Promise<void> {
    const answer = await guardedFetch({ ...policy, timeout }, nodeDialer())(url);
    expect(answer.status).toBeGreaterThanOrEqual(200);
    await answer.arrayBuffer();
  }

  it.each(strange)("survives %s", async (_name, misbehave) => {
    const server = await serve(misbehave);
    expect(["answered", "ConnectionFailed"]).toContain(await outcome(read(server.url, 60_000)));
    await closed(server);
  });

  it.each(unending)("ends %s within its limits", async (_name, misbehave) => {
    const server = await serve(misbehave);
    expect(["answered", "ConnectionFailed", "Timeout", "InvalidResponse"]).toContain(
      await outcome(read(server.url, 300)),
    );
    await closed(server);
  });

  it.each(["999 Odd", "600 Odd", "101 Odd", "099 Odd"])(
    "does not accept %s as an answer (RFC 9110 §15)",
    async (line) => {
      const server = await serve((socket) => void socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\n\r\n`));
      expect(await outcome(read(server.url, 60_000))).toBe("ConnectionFailed");
    },
  );

  it("buffers few bytes for a reader who does not read", async () => {
    let sent = 0;
    const server = await serve((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const piece = new Uint8Array(64 << 10);
      const more = (): void => {
        while (socket.writable && socket.write(piece)) sent += piece.length;
        sent += piece.length;
      };
      socket.on("drain", more);
      more();
    });
    const answer = await guardedFetch({ ...policy, maxBytes: 1 << 30 }, nodeDialer())(server.url);
    // Waits until backpressure stops the server, because the system's buffers take a few megabytes.
    let before = -1;
    while (before !== sent) {
      before = sent;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await answer.body?.cancel();
    expect(sent).toBeLessThan(32 << 20);
  });
});
