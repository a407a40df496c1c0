import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, file, type A2AError } from "@parley/a2a";
import { defineAgent, fileBlobs, memoryStore, serve } from "@parley/node";
import { guardedFetch } from "@parley/a2a/protocol";
import type { FileContent } from "@parley/a2a/internal/protocol/index";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parleyHere } from "./support/in-process.ts";

const large = "0123456789".repeat(40_000);
let folder = "";
let url = "";
let task = "";
let elsewhere = "";
/** Requests to the other origin, with their headers. */
const asked: unknown[] = [];
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-links-"));
  const other = createServer((request, response) => {
    asked.push(request.headers.authorization);
    response.end("elsewhere");
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}/secret.txt`;
  const agent = defineAgent({
    name: "Files",
    description: "Sends files",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      const own = { filename: "large.txt", mediaType: "text/plain" };
      yield turn.artifact({ artifactId: "own", parts: [file(new TextEncoder().encode(large), own)] });
      yield turn.artifact({ artifactId: "other", parts: [file(new URL(elsewhere), { filename: "other.txt" })] });
    },
  });
  const blobs = { store: fileBlobs(join(folder, "blobs")) };
  const server = await serve(agent, { port: 0, store: memoryStore(), blobs, signals: false, logger: false });
  ({ url } = server);
  task = (await (await connect(url)).sendMessage("go")).task?.id ?? "";
  closing.push(
    () => server.close({ grace: 0 }),
    () => new Promise((resolve) => other.close(resolve)),
  );
});
afterAll(async () => {
  for (const close of closing) await close();
  await rm(folder, { recursive: true });
});

async function only(files: AsyncIterable<FileContent>): Promise<string> {
  let text = "";
  for await (const each of files) text += await each.text();
  return text;
}

const errorOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

test("client.download() reads a link at the agent's own origin without options, under both names of this machine", async () => {
  const { port } = new URL(url);
  for (const at of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    const client = await connect(at, { headers: { authorization: "Bearer of-the-user" } });
    const { artifacts = [] } = await client.getTask(task);
    expect(artifacts[0]?.parts[0]).toMatchObject({ url: expect.stringContaining(`:${port}/`) as string });
    expect(await only(client.download({ taskId: task, artifactId: "own" }))).toBe(large);
  }
});

test("client.download() reads a link elsewhere only with the given fetch, and the error says so", async () => {
  const client = await connect(url, { headers: { authorization: "Bearer of-the-user" } });
  const other = { taskId: task, artifactId: "other" };
  const refused = await errorOf(only(client.download(other)));
  expect(refused).toMatchObject({ code: "UnsupportedOperation", metadata: { url: elsewhere } });
  expect((refused as A2AError).message).toMatch(/not at the agent's own origin: pass a fetch/);
  expect(asked).toEqual([]);
  const guarded = await errorOf(only(client.download(other, { fetch: guardedFetch() })));
  expect((guarded as A2AError).message).toContain("for local work, pass { allowLoopback: true } to guardedFetch()");
  expect(asked).toEqual([]);
  const fetch = guardedFetch({ allowLoopback: true });
  expect(await only(client.download(other, { fetch }))).toBe("elsewhere");
  expect(asked.splice(0)).toEqual([undefined]);
  // The guard for other links does not apply to the agent's own.
  const own = { taskId: task, artifactId: "own" };
  expect(await only(client.download(own, { fetch: guardedFetch() }))).toBe(large);
});

test("parley send --out saves a link at the agent's own origin, names --fetch-urls for another, and saves that with it", async () => {
  const saved = await parleyHere(["send", url, "go", "--out", "files"], { cwd: folder });
  expect(saved.code).toBe(0);
  expect(saved.err).toContain("saved files/large.txt");
  expect(saved.err).toContain(
    `not saved: other.txt is at ${elsewhere}: it is on another origin than the agent; pass --fetch-urls to download it`,
  );
  expect(await readdir(join(folder, "files"))).toEqual(["large.txt"]);
  expect(await readFile(join(folder, "files", "large.txt"), "utf8")).toBe(large);
  expect(asked).toEqual([]);
  const all = await parleyHere(["task", url, task, "--out", "all", "--fetch-urls"], { cwd: folder });
  expect(all.code).toBe(0);
  expect(await readFile(join(folder, "all", "other.txt"), "utf8")).toBe("elsewhere");
  expect((await readdir(join(folder, "all"))).toSorted()).toEqual(["large.txt", "other.txt"]);
});
