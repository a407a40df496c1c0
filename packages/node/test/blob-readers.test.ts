import { mkdtemp, rm } from "node:fs/promises";
import { connect as connectSocket, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, memoryStore } from "@parley/server";
import { connect } from "@parley/a2a";
import { fakeClock } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import { serve } from "../src/index.ts";

const size = 24 << 20;

const agent = defineAgent({
  name: "Files",
  description: "Sends a file",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield* turn.file([Buffer.alloc(size)], { name: "large.bin" });
  },
});

it("a link that nobody reads is closed when others wait for memory of limits.answerBytes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "blobs-"));
  const clock = fakeClock(Date.now());
  const blobs = { store: fileBlobs(folder) };
  // One owner gets half of this memory, which is enough for one reader.
  const limits = { answerBytes: 256 << 10 };
  const server = await serve(agent, {
    port: 0,
    signals: false,
    logger: false,
    store: memoryStore(),
    clock,
    blobs,
    limits,
  });
  onTestFinished(async () => {
    await server.close({ grace: 0 });
    await rm(folder, { recursive: true, force: true });
  });
  const { task } = await (await connect(server.url)).sendMessage("Go");
  const link = new URL(task?.artifacts?.[0]?.parts[0]?.url ?? "");
  const idle = await readingNothing(link);
  const closed = new Promise<void>((resolve) => idle.once("close", () => resolve()));
  const answers = async (): Promise<readonly [number, number]> => {
    // Repeats the advance, because the server may not yet recognize the idle reader as slow.
    const late = setInterval(() => clock.advance(5_000), 50);
    const response = await fetch(link);
    const { byteLength } = await response.arrayBuffer();
    clearInterval(late);
    return [response.status, byteLength];
  };
  await expect.poll(answers).toEqual([200, size]);
  idle.resume();
  await closed;
  expect(idle.bytesRead).toBeLessThan(size);
});

/** Reads the start of a response, and then stops reading. */
async function readingNothing({ hostname, port, pathname, search, host }: URL): Promise<Socket> {
  const socket = connectSocket(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  return socket.pause();
}
