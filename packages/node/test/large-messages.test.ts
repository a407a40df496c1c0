import { createHash } from "node:crypto";
import { request, type ClientRequest } from "node:http";
import { defineAgent, type Message, type Part, type Task } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import type { BlobStore } from "@parley/server/store";
import { connect } from "@parley/a2a";
import { grpcBinding } from "@parley/grpc/client";
import { describe, expect, it } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import type { ServeOptions, Server } from "../src/index.ts";
import { folderOfTest, keysOf, serversOfTests, storeOfTest } from "./support/files.ts";

/*
 * Tests messages whose large files are stored while the request body arrives (docs/files.md). For speed, bodies count as large from 100,000 bytes
 * here.
 */

const { serveOne } = serversOfTests();
const large = Buffer.alloc(300_000, "0123456789ü");
const base64 = large.toString("base64");
const digest = createHash("sha256").update(large).digest("hex");
const known = `large.bin 300000 ${digest}`;

/** An agent that reports its files. If the text is "ask", the agent asks for more. */
const about = {
  name: "Digests",
  description: "Says what it got",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["text/plain", "application/octet-stream"],
};

const agent = defineAgent({
  ...about,
  async *onMessage(turn) {
    for (const file of turn.files()) {
      const hash = createHash("sha256");
      for await (const bytes of file.stream()) hash.update(bytes);
      yield turn.artifact({ name: "digest", parts: [{ text: `${file.name} ${file.size} ${hash.digest("hex")}` }] });
    }
    if (turn.text === "ask") yield turn.inputRequired("More?");
  },
});

async function start(
  options: Partial<ServeOptions> = {},
  agents: Parameters<typeof serveOne>[0] = agent,
): Promise<{ server: Server; files: BlobStore }> {
  const files = fileBlobs(await folderOfTest());
  const { limits, blobs, ...others } = options;
  const server = await serveOne(agents, {
    store: await storeOfTest(),
    blobs: { store: files, ...blobs },
    limits: { bodyBytes: 100_000, ...limits },
    ...others,
  });
  return { server, files };
}

let ids = 0;
function messageOf(parts: readonly Part[], more: Partial<Message> = {}): Message {
  ids += 1;
  return { messageId: `m${ids}`, role: "ROLE_USER", parts, ...more };
}

const part = { raw: base64, filename: "large.bin" };

function textsOf(task: Task | undefined): readonly (string | undefined)[] {
  return (task?.artifacts ?? []).map(({ parts }) => parts[0]?.text);
}

interface Post {
  readonly path?: string;
  readonly version?: string;
  readonly headers?: Record<string, string>;
}

async function post(server: Server, body: string | ReadableStream, ask: Post = {}): Promise<[number, string]> {
  const { path = "/message:send", version = "1.0", headers = {} } = ask;
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { "a2a-version": version, "content-type": "application/json", ...headers },
    body,
    ...(typeof body !== "string" && { duplex: "half" }),
  });
  return [response.status, await response.text()];
}

/** Opens a request whose body the test writes. */
function open(server: Server, length: number): ClientRequest {
  const headers = { "a2a-version": "1.0", "content-type": "application/json", "content-length": length };
  const sent = request(`${server.url}/message:send`, { method: "POST", headers });
  sent.on("error", () => {});
  return sent;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  await expect.poll(condition, { interval: 10 }).toBe(true);
}

/** Returns whether the store has neither stored nor unfinished files. */
async function isEmpty(files: BlobStore): Promise<boolean> {
  return (await keysOf(files)).length === 0;
}

describe("a message with a large file", () => {
  const bindings = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
  const versions = ["1.0", "0.3"] as const;
  it("reaches the agent by every binding and version, and is deduplicated when another one repeats it", async () => {
    const { server, files } = await start();
    const message = messageOf([{ text: "Look" }, { ...part, mediaType: "application/octet-stream" }]);
    const tasks = new Set<string>();
    for (const binding of bindings) {
      for (const version of versions) {
        const options = { bindings: [grpcBinding()], binding, version };
        const client = await connect(server.url, binding === "GRPC" ? options : { binding, version });
        const own = await client.sendMessage({ message: messageOf([part, { raw: "AAAA" }, part]) });
        expect(textsOf(own.task)).toEqual([known, expect.stringMatching(/^file.bin 3 /), known]);
        const { task } = await client.sendMessage({ message });
        expect(textsOf(task)).toEqual([known]);
        tasks.add(task?.id ?? "");
        const [, sent] = task?.history?.[0]?.parts ?? [];
        const got = await fetch(sent?.url ?? "");
        expect(
          createHash("sha256")
            .update(Buffer.from(await got.arrayBuffer()))
            .digest("hex"),
        ).toBe(digest);
      }
    }
    expect(tasks.size).toBe(1);
    // Each new message has two files. Only one file of the repeated message is counted, because the files of repetitions are deleted.
    await expect.poll(async () => (await keysOf(files)).length).toBe(6 * 2 + 1);
  });

  it("is the same message if a body is small enough to be in memory", async () => {
    const store = await storeOfTest();
    const files = fileBlobs(await folderOfTest());
    const message = messageOf([part]);
    const tasks = new Set<string | undefined>();
    for (const bodyBytes of [100_000, 10_000_000]) {
      const server = await serveOne(agent, { store, blobs: { store: files }, limits: { bodyBytes } });
      tasks.add((await (await connect(server.url)).sendMessage({ message })).task?.id);
      await server.close();
    }
    expect(tasks.size).toBe(1);
  });

  it("arrives in a body without Content-Length, and in a stream and a follow-up", async () => {
    const { server, files } = await start();
    const body = JSON.stringify({ message: messageOf([{ text: "ask" }, part]) });
    const [, answer] = await post(server, new Blob([body]).stream());
    const { task } = JSON.parse(answer) as { task: Task };
    expect(textsOf(task)).toEqual([known]);
    const client = await connect(server.url);
    const next = await client.sendMessage({ message: messageOf([{ text: "done" }, part], { taskId: task.id }) });
    expect(textsOf(next.task)).toEqual([known, known]);
    for await (const event of client.sendStreamingMessage({ message: messageOf([part]) })) {
      if (event.artifactUpdate) expect(event.artifactUpdate.artifact.parts[0]?.text).toBe(known);
    }
    const keys = await keysOf(files);
    // Each file belongs to its message's task. The follow-up's file belongs to the first task.
    expect(keys.filter((key) => key.includes(`/${task.id}/`))).toHaveLength(2);
    expect(keys).toHaveLength(3);
  });

  it("reaches the agent of its tenant, with separate files", async () => {
    const mounts = ["one", "two"].map((tenant) => ({ agent, tenant }));
    const { server, files } = await start({}, mounts);
    const [, answer] = await post(server, JSON.stringify({ tenant: "two", message: messageOf([part]) }));
    expect(answer).toContain(digest);
    expect(await keysOf(files)).toHaveLength(1);
    const { task } = JSON.parse(answer) as { task: Task };
    const url = task.history?.[0]?.parts[0]?.url ?? "";
    expect((await (await fetch(url)).arrayBuffer()).byteLength).toBe(large.length);
  });
});

describe("files of rejected messages", () => {
  it.each([
    ["JSON that is broken after the file", `{"message":{"messageId":"b","parts":[{"raw":"${base64}"}]`, "INVALID"],
    ["a message that is not valid", JSON.stringify({ message: { ...messageOf([part]), role: "X" } }), "role"],
    ["a missing task", JSON.stringify({ message: messageOf([part], { taskId: "none" }) }), "TASK_NOT_FOUND"],
    [
      "a media type that the agent does not read",
      JSON.stringify({ message: messageOf([{ ...part, mediaType: "image/png" }]) }),
      "CONTENT_TYPE_NOT_SUPPORTED",
    ],
    [
      "base64 that ends wrongly",
      JSON.stringify({ message: messageOf([{ raw: `${base64.slice(0, -1)}*` }]) }),
      "base64",
    ],
    ["too many parts", JSON.stringify({ message: messageOf([part, ...Array<Part>(5).fill({ text: "a" })]) }), "parts"],
    [
      "too much text beside the file",
      JSON.stringify({ message: messageOf([part, { text: "a".repeat(100_001) }]) }),
      "without its large files",
    ],
    ["a forged reference", JSON.stringify({ message: messageOf([part, { url: "parley-blob:a.1/b:c" }]) }), "scheme"],
    [
      "a file above the limit of a file",
      JSON.stringify({ message: messageOf([part, { raw: base64 + base64 }]) }),
      "larger than 500000 bytes",
    ],
    ["a body that is too large", JSON.stringify({ message: messageOf(Array<Part>(4).fill(part)) }), "messageBytes"],
  ])("are deleted: %s", async (_what, body, expected) => {
    const { server, files } = await start({
      limits: { messageParts: 5 },
      blobs: { messageBytes: 1_500_000, fileBytes: 500_000 } as ServeOptions["blobs"] & object,
    });
    const [status, text] = await post(server, body);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(text).toContain(expected);
    await until(() => isEmpty(files));
  });

  it.each([1e5, 1e7])("are too large for the client, even if bodies up to %i bytes are buffered", async (bodyBytes) => {
    const few = { fileBytes: 200_000 } as ServeOptions["blobs"] & object;
    const { server } = await start({ limits: { bodyBytes }, blobs: few });
    const [status, text] = await post(server, JSON.stringify({ message: messageOf([part]) }));
    expect([status, text]).toEqual([413, expect.stringContaining("200000")]);
  });

  it("are deleted if the operation allows no files, where a placeholder would be misread", async () => {
    const { server, files } = await start();
    const params = { id: "x", message: { parts: [part] } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "GetTask", params });
    expect((await post(server, body, { path: "/" }))[1]).toContain("Only messages may be this large");
    await until(() => isEmpty(files));
  });

  it("are the reason to reject: an equally large body without files is read up to `limits.bodyBytes`", async () => {
    const { server } = await start({ limits: { bodyBytes: 12 << 20 } });
    const params = { id: "x", note: "a".repeat(11 << 20) };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "GetTask", params });
    expect((await post(server, body, { path: "/" }))[1]).toContain("TASK_NOT_FOUND");
  });

  it("are deleted: a client that disconnects in the middle of the file, or after it", async () => {
    const { server, files } = await start();
    const body = JSON.stringify({ message: messageOf([part, { text: "end" }]) });
    for (const end of [200_000, body.length - 5]) {
      const sent = open(server, body.length);
      sent.write(body.slice(0, end));
      // Waits until the first file is unfinished or complete.
      if (end > base64.length) await until(async () => !(await isEmpty(files)));
      sent.destroy();
      await until(() => isEmpty(files));
    }
    // The server has kept no data of the two messages, so this message is new.
    expect((await post(server, body))[1]).toContain(digest);
  });

  it("are never stored if the caller is rejected, and nothing of the body is read", async () => {
    const { server, files } = await start({ authenticator: bearer(() => undefined) });
    const sent = open(server, 1_000_000);
    const status = new Promise((resolve) => sent.on("response", ({ statusCode }) => resolve(statusCode)));
    sent.flushHeaders();
    expect(await status).toBe(401);
    sent.destroy();
    expect(await keysOf(files)).toEqual([]);
  });
});
