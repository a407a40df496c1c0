import { createHandler, defineAgent } from "@parley/server";
import { expect, it, onTestFinished } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import { folderOfTest, keysOf, storeOfTest } from "./support/files.ts";

/* Tests messages with large files on a Fetch API host (docs/files.md). Here, bodies count as large from 100,000 bytes. */

const agent = defineAgent({
  name: "Sizes",
  description: "Says what it got",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["text/plain", "application/octet-stream"],
  async *onMessage(turn) {
    const sizes = turn.files().map(({ size }) => size);
    yield turn.artifact({ parts: [{ text: `sizes ${sizes.join()}` }] });
  },
});

async function start() {
  const files = fileBlobs(await folderOfTest());
  const handler = createHandler(agent, {
    publicUrl: "http://127.0.0.1:1",
    store: await storeOfTest(),
    limits: { bodyBytes: 100_000 },
    blobs: { store: files, messageBytes: 500_000 },
  });
  onTestFinished(() => handler.close());
  return { handler, files };
}

/** Creates a request whose body arrives in pieces, without a content length. `canceled`: whether the handler has released the body. */
function streamed(pieces: Iterator<string>) {
  const seen = { canceled: false };
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(new TextEncoder().encode(value));
    },
    cancel: () => void (seen.canceled = true),
  });
  const headers = { "a2a-version": "1.0", "content-type": "application/json" };
  const init = { method: "POST", headers, body, duplex: "half" as const };
  return { seen, request: new Request("http://127.0.0.1:1/message:send", init) };
}

function* message(raw: Iterable<string>): Generator<string, void, void> {
  yield '{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"';
  yield* raw;
  yield '"}]}}';
}

function* zeros(pieces: number): Generator<string, void, void> {
  for (let at = 0; at < pieces; at += 1) yield "A".repeat(40_000);
}

it("reaches the agent, and is read to its end", async () => {
  const { handler, files } = await start();
  const { request, seen } = streamed(message(zeros(10)));
  const response = await handler.fetch(request);
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("sizes 300000")]);
  expect(seen.canceled).toBe(false);
  expect(await keysOf(files)).toHaveLength(1);
});

it("that is too large is rejected while it arrives, the runtime stops receiving it, and nothing of it stays", async () => {
  const { handler, files } = await start();
  const { request, seen } = streamed(message(zeros(Infinity)));
  const response = await handler.fetch(request);
  expect(response.status).toBe(413);
  await expect.poll(() => seen.canceled).toBe(true);
  await expect.poll(() => keysOf(files)).toEqual([]);
});
