import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { A2AError, connect, type StreamResponse } from "@parley/a2a";
import { defineAgent, type Artifact, type Part, type Task } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { fakeClock } from "@parley/testing";
import { grpcBinding } from "@parley/grpc/client";
import { sqliteStore } from "@parley/sql/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import type { ServeOptions, Server } from "../src/index.ts";
import { folderOfTest, serversOfTests, storeOfTest } from "./support/files.ts";

const { servers, serveOne } = serversOfTests();

const inline = "urn:parley:extension:inline-files:v1";
const size = 400_000;
const large = Buffer.alloc(size, "0123456789");
const largeBase64 = large.toString("base64");

/** An agent that sends back the file of the message, a large file, and a small file. */
const agent = defineAgent({
  name: "Files",
  description: "Sends files",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["text/plain", "application/octet-stream", "application/pdf", "application/json"],
  async *onMessage(turn) {
    if (turn.text === "direct") {
      yield turn.reply([{ raw: largeBase64 }]);
      return;
    }
    for (const file of turn.files()) {
      const hash = createHash("sha256");
      for await (const bytes of file.stream()) hash.update(bytes);
      yield turn.artifact({ name: "digest", parts: [{ text: `${file.name} ${file.size} ${hash.digest("hex")}` }] });
    }
    if (turn.text === "break") throw new Error("broken");
    const about = { filename: "Übersicht (1).pdf", mediaType: "application/pdf" };
    yield turn.artifact({ artifactId: "large", parts: [{ raw: largeBase64, ...about }, { raw: "AAAA" }] });
    yield* turn.file(pieces(), { name: "streamed.bin", artifactId: "streamed" });
    yield* turn.file(Buffer.alloc(1000, "s"), { name: "small.bin", artifactId: "small" });
    yield turn.completed([{ text: "Done" }, { raw: largeBase64 }]);
  },
});

async function* pieces(): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; at += 1000) yield await Promise.resolve(large.subarray(at, at + 1000));
}

async function start(options: Partial<ServeOptions> = {}): Promise<{ server: Server; folder: string }> {
  const folder = await folderOfTest();
  const server = await serveOne(agent, {
    store: await storeOfTest(),
    blobs: { store: fileBlobs(folder) },
    ...options,
  });
  return { server, folder };
}

interface Ask {
  readonly version?: string;
  readonly asks?: boolean;
  readonly token?: string;
}

function headersOf({ version = "1.0", asks = false, token }: Ask): Record<string, string> {
  return {
    "a2a-version": version,
    "content-type": "application/json",
    ...(asks && { "a2a-extensions": inline }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
}

async function rpc<T>(url: string, method: string, params: unknown, ask: Ask = {}): Promise<T> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: headersOf(ask), body });
  if (ask.asks === true) expect(response.headers.get("a2a-extensions")).toContain(inline);
  const { result, error } = (await response.json()) as { result?: T; error?: unknown };
  if (result === undefined) throw new Error(JSON.stringify(error));
  return result;
}

let ids = 0;
function messageOf(...parts: Part[]): object {
  ids += 1;
  return { message: { messageId: `m${ids}`, role: "ROLE_USER", parts: parts.length > 0 ? parts : [{ text: "Go" }] } };
}

async function send(server: Server, ask: Ask = {}, ...parts: Part[]): Promise<Task> {
  return (await rpc<{ task: Task }>(server.url, "SendMessage", messageOf(...parts), ask)).task;
}

const isLink = /^http:\/\/[^/]+\/\.well-known\/parley\/file\?link=[\w.%+-]+$/;

/** Removes a task's links, which differ between reads. */
function withoutLinks(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replace(/"http[^"]*\/parley\/file\?link=[^"]*"/g, '"LINK"'));
}

async function eventsOf(server: Server, task: Task, ask: Ask = {}): Promise<StreamResponse[]> {
  const headers = { ...headersOf(ask), "last-event-id": "0", accept: "text/event-stream" };
  const response = await fetch(`${server.url}/tasks/${task.id}:subscribe`, { method: "POST", headers });
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => JSON.parse(line.slice(6)) as StreamResponse);
}

function partsOf({ artifacts = [] }: Task, id: string): readonly Part[] {
  return artifacts.find(({ artifactId }) => artifactId === id)?.parts ?? [];
}

async function bytesAt(part: Part | undefined): Promise<Buffer> {
  const response = await fetch(part?.url ?? "about:blank");
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

describe("files over `blobs.inlineBytes` (A2A 1.0 §4.1.6)", () => {
  it("are links in every answer, and not in the database", async () => {
    const store = await storeOfTest();
    const { server, folder } = await start({ store });
    const task = await send(server);
    const [part, small] = partsOf(task, "large");
    expect(part).toEqual({
      filename: "Übersicht (1).pdf",
      mediaType: "application/pdf",
      url: expect.stringMatching(isLink) as string,
    });
    expect(small).toEqual({ raw: "AAAA" });
    expect(partsOf(task, "streamed")).toEqual([
      { filename: "streamed.bin", url: expect.stringMatching(isLink) as string },
    ]);
    expect(partsOf(task, "small")[0]?.raw).toBe(Buffer.alloc(1000, "s").toString("base64"));
    expect((await bytesAt(part)).equals(large)).toBe(true);
    expect((await bytesAt(partsOf(task, "streamed")[0])).equals(large)).toBe(true);
    expect((await bytesAt(task.status.message?.parts[1])).equals(large)).toBe(true);
    const head = await store.head({ agent: "/" }, task.id);
    expect(head?.bytes).toBeLessThan(8192);
    const files = await readdir(folder, { recursive: true, withFileTypes: true });
    expect(files.filter((file) => file.isFile()).length).toBe(3);
  });

  it("are the same parts in the send, the task, the list, the stream, over each binding and version", async () => {
    const { server } = await start();
    const sent = await send(server);
    const wanted = withoutLinks(sent);
    expect(withoutLinks(await rpc(server.url, "GetTask", { id: sent.id }))).toEqual(wanted);
    const rest = await fetch(`${server.url}/tasks/${sent.id}`, { headers: headersOf({}) });
    expect(withoutLinks(await rest.json())).toEqual(wanted);
    const listed = await rpc<{ tasks: Task[] }>(server.url, "ListTasks", { includeArtifacts: true });
    expect(withoutLinks(listed.tasks)).toEqual([wanted]);
    const events = await eventsOf(server, sent);
    const chunks = events.flatMap(({ artifactUpdate }) => artifactUpdate?.artifact ?? []);
    expect(withoutLinks(chunks.map(({ parts }) => parts))).toEqual(
      (wanted as Task).artifacts?.map(({ parts }: Artifact) => parts),
    );
    const grpc = await connect(server.agents[0]?.card ?? "", { bindings: [grpcBinding()], binding: "GRPC" });
    expect(withoutLinks(await grpc.getTask(sent.id))).toEqual(wanted);
    const old = await rpc<OldTask>(server.url, "tasks/get", { id: sent.id }, { version: "0.3" });
    const file = old.artifacts[0]?.parts[0]?.file;
    expect(file).toEqual({
      name: "Übersicht (1).pdf",
      mimeType: "application/pdf",
      uri: expect.stringMatching(isLink) as string,
    });
    const draft = await rpc<Task>(server.url, "GetTask", { id: sent.id }, { version: "1.1" });
    expect(partsOf(draft, "large")[0]?.url).toMatch(isLink);
  });

  it("are bytes in the parts if a request has the extension, over JSON-RPC and REST, in each version", async () => {
    const { server } = await start();
    const task = await send(server, { asks: true });
    const check = (found: Task): void => {
      const [part] = partsOf(found, "large");
      expect(part?.raw === largeBase64).toBe(true);
      expect(part?.url).toBeUndefined();
      expect(partsOf(found, "streamed")[0]?.raw === largeBase64).toBe(true);
      expect(found.status.message?.parts[1]?.raw === largeBase64).toBe(true);
    };
    check(task);
    check(await rpc(server.url, "GetTask", { id: task.id }, { asks: true }));
    check(await rpc(server.url, "GetTask", { id: task.id }, { asks: true, version: "1.1" }));
    const rest = await fetch(`${server.url}/tasks/${task.id}`, { headers: headersOf({ asks: true }) });
    check((await rest.json()) as Task);
    const listed = await rpc<{ tasks: Task[] }>(server.url, "ListTasks", { includeArtifacts: true }, { asks: true });
    check(listed.tasks[0] as Task);
    const events = await eventsOf(server, task, { asks: true });
    const update = events.find(({ artifactUpdate }) => artifactUpdate?.artifact.artifactId === "streamed");
    expect(update?.artifactUpdate?.artifact.parts[0]?.raw === largeBase64).toBe(true);
    const old = await rpc<OldTask>(server.url, "tasks/get", { id: task.id }, { asks: true, version: "0.3" });
    expect(old.artifacts[0]?.parts[0]?.file["bytes"] === largeBase64).toBe(true);
    const oldRest = await fetch(`${server.url}/v1/tasks/${task.id}`, {
      headers: headersOf({ asks: true, version: "0.3" }),
    });
    expect((await oldRest.text()).includes(`"${largeBase64}"`)).toBe(true);
  });

  it("of messages are links in the history, and the agent reads them with turn.files()", async () => {
    const { server } = await start();
    const about = { filename: "sent.bin", mediaType: "application/octet-stream" };
    const task = await send(server, {}, { text: "Look" }, { raw: largeBase64, ...about });
    const digest = createHash("sha256").update(large).digest("hex");
    expect(partsOf(task, task.artifacts?.[0]?.artifactId ?? "")[0]?.text).toBe(`sent.bin ${size} ${digest}`);
    const [message] = task.history ?? [];
    expect(message?.parts[1]).toEqual({ ...about, url: expect.stringMatching(isLink) as string });
    expect((await bytesAt(message?.parts[1])).equals(large)).toBe(true);
  });

  it("of a repeated message join the first one, and are stored once", async () => {
    const { server, folder } = await start();
    const message = messageOf({ raw: largeBase64 });
    const one = await rpc<{ task: Task }>(server.url, "SendMessage", message);
    const count = async (): Promise<number> => (await readdir(folder, { recursive: true })).length;
    const before = await count();
    const other = await rpc<{ task: Task }>(server.url, "SendMessage", message);
    expect(other.task.id).toBe(one.task.id);
    expect(await count()).toBe(before);
  });

  it("stay in a direct reply, which has no task", async () => {
    const { server } = await start();
    const { message } = await rpc<{ message: { parts: Part[] } }>(
      server.url,
      "SendMessage",
      messageOf({ text: "direct" }),
    );
    expect(message.parts[0]?.raw === largeBase64).toBe(true);
  });
});

interface OldTask {
  readonly artifacts: readonly { readonly parts: readonly { readonly file: Record<string, string> }[] }[];
}

describe("a link to a file", () => {
  it("is read without credentials, whole or in ranges (RFC 9110 §14), and no browser executes it", async () => {
    const { server } = await start();
    const [part] = partsOf(await send(server), "large");
    const url = part?.url ?? "";
    const whole = await fetch(url);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      "content-type": "application/pdf",
      "content-length": String(size),
      "content-disposition": "attachment; filename*=UTF-8''%C3%9Cbersicht%20%281%29.pdf",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
      "accept-ranges": "bytes",
    });
    await whole.body?.cancel();
    const range = async (value: string): Promise<[number, string | null, string]> => {
      const response = await fetch(url, { headers: { range: value } });
      const text = await response.text();
      return [response.status, response.headers.get("content-range"), text.length > 20 ? `${text.length}` : text];
    };
    expect(await range("bytes=0-4")).toEqual([206, `bytes 0-4/${size}`, "01234"]);
    expect(await range(`bytes=${size - 3}-`)).toEqual([206, `bytes ${size - 3}-${size - 1}/${size}`, "789"]);
    expect(await range("bytes=-2")).toEqual([206, `bytes ${size - 2}-${size - 1}/${size}`, "89"]);
    expect(await range(`bytes=${size}-`)).toEqual([416, `bytes */${size}`, ""]);
    expect(await range("bytes=5-2")).toEqual([200, null, String(size)]);
    expect(await range("lines=1-2")).toEqual([200, null, String(size)]);
    const head = await fetch(url, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, String(size), ""]);
    expect((await fetch(url, { method: "POST" })).status).toBe(405);
  });

  it("cannot be changed, and expires: the next answer has a new one", async () => {
    const clock = fakeClock();
    const { server } = await start({ clock });
    const sending = send(server);
    const task = await sending;
    const url = new URL(partsOf(task, "large")[0]?.url ?? "");
    const link = url.searchParams.get("link") ?? "";
    for (const changed of [
      "",
      "x",
      `${link}x`,
      link.slice(0, -6),
      link.replace(/\..{4}/, ".AAAA"),
      "a.b.c",
      "x".repeat(20_000),
    ]) {
      url.searchParams.set("link", changed);
      const response = await fetch(url);
      expect([response.status === 404 || response.status === 414 || response.status === 431, changed.length]).toEqual([
        true,
        changed.length,
      ]);
      await response.body?.cancel();
    }
    url.searchParams.set("link", link);
    expect((await fetch(url, { method: "HEAD" })).status).toBe(200);
    clock.advance(15 * 60_000 + 1);
    expect((await fetch(url)).status).toBe(410);
    const again = await rpc<Task>(server.url, "GetTask", { id: task.id });
    expect((await bytesAt(partsOf(again, "large")[0])).equals(large)).toBe(true);
  });

  it("contains neither key nor owner, and nobody can get one for another owner's file", async () => {
    const tokens = { ada: "secret-of-ada-0123456789", bob: "secret-of-bob-0123456789" };
    // A random id never contains this name.
    const subject = "ada@example.com";
    const authenticator = bearer({ [tokens.ada]: { subject }, [tokens.bob]: { subject: "bob" } });
    const { server, folder } = await start({ authenticator });
    const task = await send(server, { token: tokens.ada });
    const { url = "" } = partsOf(task, "large")[0] ?? {};
    const files = (await readdir(folder, { recursive: true })).filter((name) => name.includes(task.id));
    for (const name of files) for (const segment of name.split("/")) expect(url).not.toContain(segment);
    expect(files.join()).not.toContain("example");
    const [key = ""] = files.filter((name) => name.split("/").length === 4);
    // Even if the secret log leaked, a part or data with references from the log would get no link.
    const ref = `parley-blob:0123456789abcdef.${size}/${key}:e30`;
    await expect(send(server, { token: tokens.bob }, { url: ref })).rejects.toThrow(
      "must not have a scheme of the server",
    );
    const forged = await send(server, { token: tokens.bob }, { text: "Go" }, { data: { url: ref } });
    expect(forged.history?.[0]?.parts[1]).toEqual({ data: { url: "about:blank#unavailable" } });
    const got = await rpc<Task>(server.url, "GetTask", { id: forged.id }, { token: tokens.bob, asks: true });
    expect(got.history?.[0]?.parts[1]).toEqual({ data: { url: "about:blank#unavailable" } });
    await expect(rpc(server.url, "GetTask", { id: task.id }, { token: tokens.bob })).rejects.toThrow("TASK_NOT_FOUND");
  });

  it("works after a restart with the same keys, and on another process of the same store", async () => {
    const folder = await folderOfTest();
    const keys = [Buffer.alloc(32, 7).toString("base64")];
    const options = async () => ({
      store: await sqliteStore({ path: join(folder, "tasks.db") }),
      blobs: { store: fileBlobs(join(folder, "files")), keys },
    });
    const before = await options();
    const one = (await start(before)).server;
    const task = await send(one);
    const url = new URL(partsOf(task, "large")[0]?.url ?? "");
    await servers.splice(0)[0]?.close();
    await before.store.close();
    const after = await options();
    const other = (await start(after)).server;
    onTestFinished(() => after.store.close());
    url.port = new URL(other.url).port;
    expect((await fetch(url, { method: "HEAD" })).status).toBe(200);
    const again = await rpc<Task>(other.url, "GetTask", { id: task.id });
    expect((await bytesAt(partsOf(again, "streamed")[0])).equals(large)).toBe(true);
  });
});

describe("files without a task", () => {
  it("are deleted after `keepUnused` if unused, and with their task; files of other tasks stay", async () => {
    const folder = await folderOfTest();
    const clock = fakeClock(Date.now());
    const store = await storeOfTest();
    const minute = 60_000;
    const { server } = await start({
      store,
      clock,
      blobs: { store: fileBlobs(folder), keepUnused: 3 * minute, interval: minute },
      retention: { terminal: 10 * minute },
    });
    const task = await send(server);
    const orphan = fileBlobs(folder);
    const [name = ""] = (await readdir(folder, { recursive: true })).filter((each) => each.includes(`${task.id}/`));
    // Simulates a process that died after it had written the file, but before it had written the record.
    const left = name.replace(/[^/]+$/, "left-behind-0123456789ab");
    await orphan.put(left, pieces() as never);
    const names = async (): Promise<string[]> =>
      (await orphan.list({ prefix: "", limit: 100 })).blobs
        .map(({ key }) => key)
        .filter((key) => !key.startsWith("~~"));
    expect((await names()).length).toBe(4);
    const passes = async (ms: number): Promise<string[]> => {
      clock.advance(ms);
      return names();
    };
    await passes(2 * minute);
    // The file is too new to be deleted, because a turn may still store its record.
    expect(await names()).toContain(left);
    await expect.poll(() => passes(minute / 4)).not.toContain(left);
    expect((await names()).length).toBe(3);
    expect((await bytesAt(partsOf(await rpc<Task>(server.url, "GetTask", { id: task.id }), "large")[0])).length).toBe(
      size,
    );
    clock.advance(10 * minute);
    await expect.poll(() => passes(minute)).toEqual([]);
  });
});

describe("files of an owner whose data is deleted", () => {
  it("are gone at once, and those of others stay", async () => {
    const tokens = { ada: "secret-of-ada-0123456789", bob: "secret-of-bob-0123456789" };
    const authenticator = bearer({ [tokens.ada]: { subject: "ada" }, [tokens.bob]: { subject: "bob" } });
    const { server, folder } = await start({ authenticator });
    const [ada, bob] = [await send(server, { token: tokens.ada }), await send(server, { token: tokens.bob })];
    await server.deleteOwner({ subject: "ada" });
    const { blobs } = await fileBlobs(folder).list({ prefix: "", limit: 100 });
    expect(blobs.filter(({ key }) => key.includes(ada.id))).toEqual([]);
    expect(blobs.filter(({ key }) => key.includes(bob.id))).toHaveLength(3);
  });
});

describe("files of an owner whose data is exported", () => {
  it("are in the export, but no files of others", async () => {
    const tokens = { ada: "secret-of-ada-0123456789", bob: "secret-of-bob-0123456789" };
    const authenticator = bearer({ [tokens.ada]: { subject: "ada" }, [tokens.bob]: { subject: "bob" } });
    const { server, folder } = await start({ authenticator });
    const task = await send(server, { token: tokens.ada });
    const [key = ""] = (await fileBlobs(folder).list({ prefix: "", limit: 1 })).blobs.map((blob) => blob.key);
    await send(server, { token: tokens.bob }, { text: "Go" }, { data: { url: `parley-blob:a.${size}/${key}:e30` } });
    const lines = async (subject: string): Promise<string[]> => {
      let text = "";
      for await (const piece of server.exportOwner({ subject })) text += piece;
      return text.trim().split("\n");
    };
    const exported = (await lines("ada")).map((line) => JSON.parse(line) as { type: string; task: Task });
    const found = exported.find(({ type }) => type === "task")?.task;
    expect(found?.id).toBe(task.id);
    expect(partsOf(found as Task, "large")[0]?.raw === largeBase64).toBe(true);
    expect(partsOf(found as Task, "streamed")[0]?.raw === largeBase64).toBe(true);
    const other = (await lines("bob")).join("\n");
    expect(other).toContain('{"data":{"url":"about:blank#unavailable"}}');
    expect(other).not.toContain("parley-blob");
  });
});

describe("a blob store that fails", () => {
  it("fails a turn or rejects a message with a file, and no record refers to a missing file", async () => {
    const folder = await folderOfTest();
    const files = fileBlobs(folder);
    const put = (): Promise<never> => Promise.reject(new A2AError("Unavailable"));
    const { server } = await start({ blobs: { store: { ...files, put } } });
    const task = await send(server);
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(task)).not.toContain("parley-blob");
    await expect(send(server, {}, { raw: largeBase64 })).rejects.toThrow("UNAVAILABLE");
  });

  it("that lost a file returns no bytes for its part, the rest of the answer stays, and the links are 404", async () => {
    const { server, folder } = await start();
    const task = await send(server);
    const [part] = partsOf(task, "large");
    await rm(folder, { recursive: true });
    expect((await fetch(part?.url ?? "")).status).toBe(404);
    const inlined = await rpc<Task>(server.url, "GetTask", { id: task.id }, { asks: true });
    expect(partsOf(inlined, "large")[0]).toEqual({ ...part, url: "about:blank#unavailable" });
    const events = JSON.stringify(await eventsOf(server, task, { asks: true }));
    expect(events).toContain("about:blank#unavailable");
    expect((await rpc<Task>(server.url, "GetTask", { id: task.id })).id).toBe(task.id);
  });
});
