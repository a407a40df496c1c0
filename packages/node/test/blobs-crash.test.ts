import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, memoryStore, type Agent, type Task } from "@parley/server";
import { s3Blobs } from "@parley/server/store";
import { connect } from "@parley/a2a";
import { testAgent } from "@parley/testing";
import { afterEach, expect, it, onTestFinished } from "vitest";
import { openBucket } from "../../server/test/blobs/support/s3.ts";
import { fileBlobs } from "../src/blobs.ts";
import { serve, type Server } from "../src/index.ts";

const large = Buffer.alloc(400_000, "0123456789");

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close({ grace: 0 })));
});

function sending(wait: () => Promise<void>): Agent {
  return defineAgent({
    name: "Files",
    description: "Sends files",
    version: "1.0.0",
    skills: [],
    resumable: true,
    async *onMessage(turn) {
      yield* turn.file([large], { name: "one.bin", artifactId: "one" });
      yield turn.artifact({ artifactId: "two", parts: [{ raw: large.toString("base64") }] });
      await turn.flush();
      await wait();
      yield turn.artifact({ artifactId: "three", parts: [{ text: "3" }] });
    },
  });
}

it("a lost run that resumes stores the same files once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "blobs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  let arrived: () => void = () => {};
  const waits = new Promise<void>((resolve) => (arrived = resolve));
  const hangs = (): Promise<void> => (arrived(), new Promise<never>(() => {}));
  const store = memoryStore();
  const files = fileBlobs(folder);
  const process = await testAgent(sending(hangs), { store, blobs: { store: files } });
  onTestFinished(() => process.close());
  const { task } = await process.client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
  const id = task?.id ?? "";
  await waits;
  await process.crash();
  await process.restart(sending(() => Promise.resolve()));
  const done = await process.client.waitFor(id);
  expect(done.artifacts?.map(({ artifactId, parts }) => [artifactId, parts.length])).toEqual([
    ["one", 1],
    ["two", 1],
    ["three", 1],
  ]);
  const rows = await store.features({ agent: "/" }, id, "blob");
  const all = (await files.list({ prefix: "", limit: 10 })).blobs.map(({ key }) => key.split("/").at(-1));
  expect(new Set(all)).toEqual(new Set(rows.map(({ key }) => key)));
  expect(all).toHaveLength(2);
});

it("links lead to the bucket, with a signature that expires, or to the server if configured", async () => {
  const bucket = await openBucket();
  onTestFinished(() => bucket.close());
  const task = async (links: "store" | "server"): Promise<Task> => {
    const blobs = { store: s3Blobs(bucket.client), links, linkTime: 60_000 };
    const agent = sending(() => Promise.resolve());
    const server = await serve(agent, { port: 0, signals: false, logger: false, store: memoryStore(), blobs });
    servers.push(server);
    const { task: sent } = await (await connect(server.url)).sendMessage("Go");
    return sent as Task;
  };
  const urlOf = ({ artifacts = [] }: Task): URL => new URL(artifacts[0]?.parts[0]?.url ?? "");
  const direct = urlOf(await task("store"));
  expect(direct.origin).toBe(bucket.server?.url ?? direct.origin);
  expect(direct.searchParams.get("X-Amz-Expires")).toBe("60");
  const through = urlOf(await task("server"));
  expect(through.pathname).toBe("/.well-known/parley/file");
  for (const url of [direct, through]) {
    const response = await fetch(url);
    expect(response.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''one.bin");
    expect(Buffer.from(await response.arrayBuffer()).equals(large)).toBe(true);
  }
});

it("webhooks have links, which the receiver can read", async () => {
  const folder = await mkdtemp(join(tmpdir(), "blobs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const bodies: string[] = [];
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => (bodies.push(body), response.end()));
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void receiver.close());
  const server = await serve(
    sending(() => Promise.resolve()),
    {
      port: 0,
      signals: false,
      logger: false,
      store: memoryStore(),
      push: { events: "all" },
      blobs: { store: fileBlobs(folder) },
    },
  );
  servers.push(server);
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const configuration = { taskPushNotificationConfig: { url } };
  await (await connect(server.url)).sendMessage({ message: "Go", configuration });
  await expect.poll(() => bodies.some((body) => body.includes('"artifactId":"one"'))).toBe(true);
  const [link = ""] = /http:[^"]*\/parley\/file\?link=[^"]*/.exec(bodies.join()) ?? [];
  expect(Buffer.from(await (await fetch(link)).arrayBuffer()).equals(large)).toBe(true);
  expect(bodies.join()).not.toContain("parley-blob");
});
