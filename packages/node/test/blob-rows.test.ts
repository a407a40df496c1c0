import { createHash } from "node:crypto";
import { defineAgent, memoryStore, type Agent, type Part } from "@parley/server";
import { connect, type Client } from "@parley/a2a";
import { fakeClock, testAgent } from "@parley/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import type { ServeOptions } from "../src/index.ts";
import { folderOfTest, serversOfTests, storeOfTest } from "./support/files.ts";

const { servers, serveOne } = serversOfTests();

const minute = 60_000;

function agentOf(onMessage: Parameters<typeof defineAgent>[0]["onMessage"], resumable = false): Agent {
  const defaultInputModes = ["text/plain", "application/octet-stream", "application/json"];
  const about = { name: "Rows", description: "Has files", version: "1.0.0", skills: [], defaultInputModes };
  return defineAgent({ ...about, resumable, onMessage });
}

async function start(agent: Agent, options: Partial<ServeOptions>): Promise<Client> {
  const server = await serveOne(agent, { ...options });
  return connect(server.url);
}

/** Returns a function whose calls never return, and a promise for the first call. */
function halted(): { readonly waits: Promise<void>; readonly halt: () => Promise<never> } {
  let arrived: () => void = () => {};
  const waits = new Promise<void>((resolve) => (arrived = resolve));
  return { waits, halt: () => (arrived(), new Promise<never>(() => {})) };
}

/** Returns a file that consists of one letter. */
function file(letter: string, size = 300_000): Part {
  return { raw: Buffer.alloc(size, letter).toString("base64"), filename: letter };
}

function message(...parts: Part[]): { messageId: string; role: "ROLE_USER"; parts: Part[] } {
  return { messageId: crypto.randomUUID(), role: "ROLE_USER", parts };
}

const echo = agentOf(async function* (turn) {
  yield turn.artifact({ artifactId: "first", parts: turn.message.parts.slice(0, 1) });
});

describe("the rows of files", () => {
  it("refer only to stored files: claims in a message change nothing", async () => {
    const store = await storeOfTest();
    const blobs = { store: fileBlobs(await folderOfTest()) };
    const client = await start(echo, { store, blobs });
    const owner = createHash("sha256").update("").digest("base64url").slice(0, 32);
    const forged = [
      "parley-blob:a.1/a/:e30",
      `parley-blob:a.1/${"k".repeat(700)}:e30`,
      ...Array.from({ length: 400 }, (_, at) => `parley-blob:a.1/~Lw/${owner}/task/${"i".repeat(20)}${1000 + at}:e30`),
    ];
    const data = { data: forged.map((url) => ({ url })) };
    const { task } = await client.sendMessage({ message: message(data, file("a")) });
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.artifacts?.[0]?.parts[0]?.data).toEqual(forged.map(() => ({ url: "about:blank#unavailable" })));
    const rows = await store.features({ agent: "/" }, task?.id ?? "", "blob");
    const { blobs: stored } = await blobs.store.list({ prefix: "", limit: 10 });
    expect(rows.map(({ key }) => key)).toEqual(stored.map(({ key }) => key.split("/").at(-1)));
    expect(JSON.parse(rows[0]?.value ?? "")).toMatchObject({ bytes: 300_000 });
  });

  it("stay when a later record refers to one of several files: none of them is deleted", async () => {
    const clock = fakeClock(Date.now());
    const files = fileBlobs(await folderOfTest());
    const blobs = { store: files, keepUnused: 3 * minute, interval: minute };
    const client = await start(echo, { store: await storeOfTest(), clock, blobs });
    const { task } = await client.sendMessage({ message: message(file("a"), file("b")) });
    const left = (await files.list({ prefix: "", limit: 1 })).blobs[0]?.key.replace(/[^/]+$/, "l".repeat(24)) ?? "";
    await files.put(left, bytesOf("x"));
    const keys = async (): Promise<string[]> => {
      clock.advance(minute);
      return (await files.list({ prefix: "", limit: 10 })).blobs.map(({ key }) => key);
    };
    // Once this file is deleted, the collector has run.
    await expect.poll(keys).not.toContain(left);
    const { history = [], artifacts = [] } = await client.getTask(task?.id ?? "");
    const parts = [...(history[0]?.parts ?? []), ...(artifacts[0]?.parts ?? [])];
    const statuses = await Promise.all(
      parts.map(async ({ url }) => (await fetch(url ?? "", { method: "HEAD" })).status),
    );
    expect(statuses).toEqual([200, 200, 200]);
  });
});

async function* bytesOf(text: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

/* Runs only in memory, where the test's clock reveals a crash. On PostgreSQL, the database's clock would be needed for this. */
describe("a lost run", () => {
  it("has no second share of `blobs.taskBytes`: the next run reuses the stored files", async () => {
    const store = memoryStore();
    const files = fileBlobs(await folderOfTest());
    const sending = (wait: () => Promise<void>): Agent =>
      agentOf(async function* (turn) {
        yield* turn.file([Buffer.alloc(400_000, "1")], { name: "one.bin", artifactId: "one" });
        yield turn.artifact({ artifactId: "two", parts: [file("2", 400_000)] });
        await turn.flush();
        await wait();
        yield turn.artifact({ artifactId: "three", parts: [file("3", 200_000)] });
      }, true);
    const { waits, halt } = halted();
    const blobs = { store: files, taskBytes: 1_000_000, inlineBytes: 100_000 };
    const process = await testAgent(sending(halt), { store, blobs });
    onTestFinished(() => process.close());
    const { task } = await process.client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    await waits;
    await process.crash();
    await process.restart(sending(() => Promise.resolve()));
    const done = await process.client.waitFor(task?.id ?? "");
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    expect(done.artifacts?.map(({ parts }) => parts.length)).toEqual([1, 1, 1]);
    expect((await files.list({ prefix: "", limit: 10 })).blobs).toHaveLength(3);
  });

  it("may refer to an unused file, which is kept once a record refers to it", async () => {
    const store = memoryStore();
    const files = fileBlobs(await folderOfTest());
    const rendering = (wait: () => Promise<void>): Agent =>
      agentOf(async function* (turn) {
        const url = await turn.step("render", async () => {
          for await (const event of turn.file([Buffer.alloc(300_000, "1")], { name: "one.bin" })) {
            if (event.kind === "artifact") return event.artifact.parts[0]?.url ?? "";
          }
          return "";
        });
        await wait();
        yield turn.artifact({ parts: [{ url, filename: "one.bin" }] });
      }, true);
    const { waits, halt } = halted();
    const process = await testAgent(rendering(halt), { store, blobs: { store: files } });
    onTestFinished(() => process.close());
    const { task } = await process.client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    const id = task?.id ?? "";
    await waits;
    await process.crash();
    await process.restart(rendering(() => Promise.resolve()));
    expect((await process.client.waitFor(id)).artifacts).toHaveLength(1);
    const rows = await store.features({ agent: "/" }, id, "blob");
    const { blobs } = await files.list({ prefix: "", limit: 10 });
    expect(rows.map(({ key }) => key)).toEqual(blobs.map(({ key }) => key.split("/").at(-1)));
  });
});

/** Returns the error for a rejected message. Does not use our client, because our client would retry. */
async function refusalOf(message: object): Promise<string> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } });
  const headers = { "content-type": "application/json", "a2a-version": "1.0" };
  const response = await fetch(servers[0]?.url ?? "", { method: "POST", headers, body });
  const answer = (await response.json()) as { error?: unknown };
  return JSON.stringify(answer.error);
}

describe("a message with large files", () => {
  it("counts towards `limits.totalBytes` while its files are stored", async () => {
    const files = fileBlobs(await folderOfTest());
    let [now, most] = [0, 0];
    const put: typeof files.put = async (key, body) => {
      most = Math.max(most, (now += 1));
      await new Promise((resolve) => setTimeout(resolve, 20));
      await files.put(key, body).finally(() => (now -= 1));
    };
    const limits = { totalBytes: 1 << 20 };
    const client = await start(echo, { store: await storeOfTest(), limits, blobs: { store: { ...files, put } } });
    const sends = Array.from({ length: 4 }, () => client.sendMessage({ message: message(file("a", 400_000)) }));
    const states = (await Promise.all(sends)).map(({ task }) => task?.status.state);
    expect(new Set(states)).toEqual(new Set(["TASK_STATE_COMPLETED"]));
    expect(most).toBe(1);
  });

  it("that is rejected stores none of them: the caller has too many tasks, or the task is terminal", async () => {
    const files = fileBlobs(await folderOfTest());
    const [{ waits: works, halt: arrived }, { waits: goes, halt: go }] = [halted(), halted()];
    const agent = agentOf(async function* (turn) {
      yield turn.working();
      if (turn.text !== "wait") return;
      void arrived();
      await goes;
    });
    const limits = { tasksPerCaller: 1 };
    const client = await start(agent, { store: await storeOfTest(), limits, blobs: { store: files } });
    const { task } = await client.sendMessage({ message: message({ text: "over" }) });
    const waiting = client.sendMessage({ message: message({ text: "wait" }) });
    await works;
    expect(await refusalOf(message(file("a")))).toContain("Agents work on 1 tasks of this caller already");
    void go();
    await waiting;
    const late = { ...message(file("b")), taskId: task?.id ?? "" };
    expect(await refusalOf(late)).toContain("TASK_STATE_COMPLETED");
    expect((await files.list({ prefix: "", limit: 10 })).blobs).toEqual([]);
  });
});

describe("a message without a record", () => {
  const direct = agentOf(async (turn) => {
    const history = await turn.context.history({ bytes: 4 << 20 });
    const said = history.flatMap(({ parts }) => parts.map(({ raw, url, text }) => raw?.length ?? url ?? text));
    return turn.reply([{ text: JSON.stringify(said) }, ...turn.message.parts.filter(({ url }) => url !== undefined)]);
  });

  it("that gets a direct reply leaves no file: the conversation and the reply have its bytes", async () => {
    const files = fileBlobs(await folderOfTest());
    const client = await start(direct, { store: await storeOfTest(), blobs: { store: files } });
    const { message: reply } = await client.sendMessage({ message: message(file("a")) });
    expect(reply?.parts[1]).toMatchObject({ raw: file("a").raw, filename: "a" });
    const { contextId = "" } = reply ?? {};
    const later = await client.sendMessage({ message: { ...message({ text: "Again" }), contextId } });
    const [first] = JSON.parse(later.message?.parts[0]?.text ?? "[]") as readonly unknown[];
    expect(first).toBe(400_000);
    await expect.poll(() => keysOf(files)).toEqual([]);
  });

  it("that is rejected, or was sent before, leaves no file", async () => {
    const files = fileBlobs(await folderOfTest());
    const asking = agentOf(async function* (turn) {
      yield turn.text === "end" ? turn.completed() : turn.inputRequired("More?");
    });
    const limits = { taskBytes: 200_000, totalBytes: 1 << 26 };
    const client = await start(asking, { store: await storeOfTest(), limits, blobs: { store: files } });
    const { task } = await client.sendMessage({ message: message({ text: "Go" }, file("a")) });
    const taskId = task?.id ?? "";
    const own = await keysOf(files);
    expect(own).toHaveLength(1);
    expect(await refusalOf({ ...message(file("b")), taskId, contextId: "another" })).toContain("contextId");
    // The task has no space for the text.
    expect(await refusalOf({ ...message(file("c"), { text: "x".repeat(300_000) }), taskId })).toContain("full");
    await expect.poll(() => keysOf(files)).toEqual(own);
  });
});

describe("a file of another task", () => {
  it("is copied if an agent sends it on, so it stays when the other task is deleted", async () => {
    const store = await storeOfTest();
    const files = fileBlobs(await folderOfTest());
    const passing = agentOf(async function* (turn) {
      const parts = (await turn.context.history()).flatMap((said) => said.parts).filter(({ url }) => url !== undefined);
      yield turn.artifact({ parts: [...parts, ...parts] });
    });
    const client = await start(passing, { store, blobs: { store: files } });
    const { task: first } = await client.sendMessage({ message: message(file("a")) });
    const { contextId = "" } = first ?? {};
    const { task: second } = await client.sendMessage({ message: { ...message({ text: "Again" }), contextId } });
    await store.upkeep?.remove({ agent: "/", before: Date.now() + minute, states: ["TASK_STATE_COMPLETED"] }, 1);
    const gone = await Promise.all(
      [first, second].map((task) => client.getTask(task?.id ?? "").catch(() => undefined)),
    );
    expect(gone.map((task) => task?.id)).toEqual([undefined, second?.id]);
    for (const key of await keysOf(files)) {
      if (key.includes(`/${first?.id}/`)) await files.delete([key]);
    }
    const parts = gone[1]?.artifacts?.[0]?.parts ?? [];
    expect(parts.length).toBeGreaterThan(1);
    for (const { url } of parts) {
      const response = await fetch(url ?? "");
      expect([response.status, (await response.arrayBuffer()).byteLength]).toEqual([200, 300_000]);
    }
    // The store has only one copy, although the file was forwarded more than once.
    expect(await keysOf(files)).toHaveLength(1);
  });
});

async function keysOf(files: ReturnType<typeof fileBlobs>): Promise<string[]> {
  return (await files.list({ prefix: "", limit: 20 })).blobs.map(({ key }) => key);
}
