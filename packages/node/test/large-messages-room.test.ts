import { request, type ClientRequest } from "node:http";
import { defineAgent } from "@parley/server";
import type { BlobStore } from "@parley/server/store";
import { connect } from "@parley/a2a";
import { expect, it } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import type { ServeOptions, Server } from "../src/index.ts";
import { folderOfTest, keysOf, serversOfTests, storeOfTest } from "./support/files.ts";

/* The memory that large messages share while the server receives them: `blobs.unfinishedBytes` (docs/files.md). Here, it suffices for one message. */

const { serveOne } = serversOfTests();
const part = { raw: Buffer.alloc(300_000, "0123456789").toString("base64") };
const blobs = { messageBytes: 500_000, unfinishedBytes: 500_000 } as ServeOptions["blobs"] & object;

let release = (): void => {};
const gate = new Promise<void>((resolve) => (release = resolve));

/** An agent that reports the sizes of its files. If the text is "wait", the agent first waits for `gate`. */
const agent = defineAgent({
  name: "Sizes",
  description: "Says what it got",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["text/plain", "application/octet-stream"],
  async *onMessage(turn) {
    if (turn.text === "wait") {
      yield turn.working("Begun");
      await gate;
    }
    const sizes = turn.files().map(({ size }) => size);
    yield turn.artifact({ name: "sizes", parts: [{ text: `sizes ${sizes.join()}` }] });
  },
});

let ids = 0;
function bodyOf(...parts: readonly object[]): string {
  ids += 1;
  return JSON.stringify({ message: { messageId: `m${ids}`, role: "ROLE_USER", parts } });
}

const headers = { "a2a-version": "1.0", "content-type": "application/json" };

async function post(server: Server, body: string): Promise<[number, string]> {
  const response = await fetch(`${server.url}/message:send`, { method: "POST", headers, body });
  return [response.status, await response.text()];
}

/** Opens a request whose body the test writes. */
function open(server: Server, length: number): ClientRequest {
  const method = "POST";
  const sent = request(`${server.url}/message:send`, { method, headers: { ...headers, "content-length": length } });
  return sent.on("error", () => {});
}

it("is released once a message is received, while the agent works on it", async () => {
  const files = fileBlobs(await folderOfTest());
  const server = await serveOne(agent, {
    store: await storeOfTest(),
    limits: { bodyBytes: 100_000 },
    blobs: { ...blobs, store: files },
  });
  const client = await connect(server.url);
  const first = post(server, bodyOf({ text: "wait" }, part));
  await expect.poll(async () => (await client.listTasks({})).tasks.length, { interval: 10 }).toBe(1);
  const [status] = await post(server, bodyOf(part));
  release();
  expect(status).toBe(200);
  expect((await first)[1]).toContain("sizes 300000");
});

it("is waited for: a message without memory is not read before there is some", async () => {
  const files = fileBlobs(await folderOfTest());
  const server = await serveOne(agent, {
    store: await storeOfTest(),
    limits: { bodyBytes: 100_000 },
    blobs: { ...blobs, store: files },
  });
  const body = bodyOf(part, { text: "end" });
  const first = open(server, body.length);
  const answered = new Promise((resolve) => first.on("response", resolve));
  first.write(body.slice(0, -10));
  await expect.poll(async () => (await keysOf(files)).length, { interval: 10 }).toBe(1);
  let second: string | undefined;
  const next = post(server, bodyOf(part)).then(([, text]) => (second = text));
  // The server has answered later requests, so it has had time to handle the large message.
  for (let at = 0; at < 10; at += 1) expect((await post(server, bodyOf({ text: "small" })))[0]).toBe(200);
  expect([(await keysOf(files)).length, second]).toEqual([1, undefined]);
  first.end(body.slice(-10));
  await answered;
  expect(await next).toContain("sizes 300000");
});

it("of copies, if the store cannot move files, is limited like that of uploads", async () => {
  const { move: _, ...files } = fileBlobs(await folderOfTest());
  let [copies, most] = [0, 0];
  const put: BlobStore["put"] = async (key, body) => {
    // The agent is unknown while the body arrives. In keys, agent names are in base64.
    if (key.startsWith(`~${Buffer.from("~~incoming").toString("base64url")}/`)) return files.put(key, body);
    copies += 1;
    most = Math.max(most, copies);
    await files.put(key, body);
    copies -= 1;
  };
  // The memory is enough for one upload. The body contains the tenant, so the agent is known only after the whole body.
  const server = await serveOne(
    ["one", "two"].map((tenant) => ({ agent, tenant })),
    {
      store: await storeOfTest(),
      limits: { bodyBytes: 100_000 },
      blobs: { store: { ...files, put }, uploadBytes: 1 },
    },
  );
  const send = (): Promise<[number, string]> =>
    post(server, JSON.stringify({ tenant: "two", ...(JSON.parse(bodyOf(part)) as object) }));
  const answers = await Promise.all(Array.from({ length: 6 }, send));
  for (const [status, text] of answers) expect([status, text]).toEqual([200, expect.stringContaining("sizes 300000")]);
  expect(most).toBe(1);
  expect(await keysOf(files)).toHaveLength(6);
});
