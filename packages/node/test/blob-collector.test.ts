import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineAgent, memoryStore, type Store } from "@parley/server";
import type { BlobStore } from "@parley/server/store";
import { connect } from "@parley/a2a";
import { fakeClock, type FakeClock } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";
import { describe, expect, it } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import { folderOfTest, serversOfTests, storeOfTest } from "./support/files.ts";

const { serveOne } = serversOfTests();

const minute = 60_000;
const left = `~Lw/${"o".repeat(32)}/task/${"l".repeat(24)}`;

async function* bytesOf(text: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

const agent = defineAgent({
  name: "Files",
  description: "Sends a file",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield* turn.file([Buffer.alloc(300_000)], { name: "one.bin" });
  },
});

interface Started {
  readonly lines: string[];
  /** Advances the clock by a minute, and lists the files. */
  readonly passes: () => Promise<readonly string[]>;
  readonly send: () => Promise<void>;
}

async function start(store: Store, files: BlobStore, clock: FakeClock = fakeClock(Date.now())): Promise<Started> {
  const lines: string[] = [];
  const log = (line: string): void => void lines.push(line);
  const logger = { debug: log, info: log, warn: log, error: log };
  const blobs = { store: files, keepUnused: 10 * minute, interval: minute };
  const server = await serveOne(agent, { logger, store, clock, blobs });
  const passes = async (): Promise<readonly string[]> => {
    clock.advance(minute);
    return keysOf(files);
  };
  return { lines, passes, send: async () => void (await (await connect(server.url)).sendMessage("Go")) };
}

async function keysOf(files: BlobStore): Promise<readonly string[]> {
  const { blobs } = await files.list({ prefix: "", limit: 100 });
  return blobs.map(({ key }) => key).filter((key) => !key.startsWith("~~"));
}

/** Counts how often the collector has scanned the whole store. */
function counted(files: BlobStore): { readonly files: BlobStore; readonly searches: () => number } {
  let searches = 0;
  const list: BlobStore["list"] = (query) => {
    if (query.prefix === "" && query.limit > 100) searches += 1;
    return files.list(query);
  };
  return { files: { ...files, list }, searches: () => searches };
}

const stores: Readonly<Record<string, () => Promise<Store>>> = {
  memory: async () => memoryStore(),
  SQLite: () => sqliteStore({ path: ":memory:" }),
};

describe("the collector of files", () => {
  it.each(Object.keys(stores))("deletes nothing of another database (%s), and says so", async (name) => {
    const files = fileBlobs(await folderOfTest());
    const [one, other] = [await stores[name]!(), await stores[name]!()];
    const first = await start(one, files);
    await first.send();
    await files.put(left, bytesOf("x"));
    await expect.poll(first.passes).toHaveLength(1);
    expect(first.lines).toContain("Deleted unused files");
    const second = await start(other, files);
    const message = "Files belong to another database; unused files are not deleted";
    const warned = async (): Promise<boolean> => (await second.passes(), second.lines.includes(message));
    for (let at = 0; at < 20; at += 1) await second.passes();
    await expect.poll(warned).toBe(true);
    expect(await second.passes()).toHaveLength(1);
    // The first collector continues, and so does the collector of another process on its database.
    for (const own of [first, await start(one, files)]) {
      await files.put(left, bytesOf("x"));
      await expect.poll(own.passes).not.toContain(left);
    }
    expect(await keysOf(files)).toHaveLength(1);
  });

  it("deletes nothing after a wall clock jump, until `keepUnused` has passed on the monotonic clock", async () => {
    // The clock is half a day behind the files, so the files count as old only once the clock is set.
    const clock = fakeClock(Date.now() - 12 * 60 * minute);
    const { files, searches } = counted(fileBlobs(await folderOfTest()));
    const { lines, passes, send } = await start(await storeOfTest(), files, clock);
    await send();
    await expect.poll(async () => (await passes(), searches())).toBeGreaterThan(0);
    await files.put(left, bytesOf("an upload whose record is not stored yet"));
    clock.jump(24 * 60 * minute);
    await expect
      .poll(async () => (await passes(), lines))
      .toContain("Wall clock jumped; unused files are deleted later");
    expect(await keysOf(files)).toContain(left);
    await expect.poll(passes).not.toContain(left);
  });

  it("nor after a jump while the collector was working", async () => {
    const files = fileBlobs(await folderOfTest());
    const clock = fakeClock(Date.now() - 12 * 60 * minute);
    let jumps = 0;
    // The clock jumps when the collector first reads the file store (to read its mark), after the collector has read the clock.
    const slow: BlobStore = {
      ...files,
      list: (query) => {
        if (query.prefix !== "" && jumps++ === 0) clock.jump(24 * 60 * minute);
        return files.list(query);
      },
    };
    await files.put(left, bytesOf("an upload whose record is not stored yet"));
    const { lines, passes } = await start(await storeOfTest(), slow, clock);
    await expect
      .poll(async () => (await passes(), lines))
      .toContain("Wall clock jumped; unused files are deleted later");
    expect(jumps).toBeGreaterThan(0);
    expect(await keysOf(files)).toContain(left);
  });

  it("keeps anything that is not a file of a server, and continues after it", async () => {
    const folder = await folderOfTest();
    const files = fileBlobs(folder);
    const foreign = ["a/b/c/d.txt", "a/b/c/d", "lost+found/x/y/z", ".git/a/b/c", "note"];
    for (const name of foreign) {
      await mkdir(join(folder, name, ".."), { recursive: true });
      await writeFile(join(folder, name), "not ours");
    }
    await files.put(left, bytesOf("x"));
    expect((await files.list({ prefix: "", limit: 10 })).blobs.map(({ key }) => key)).toEqual([
      "a/b/c/d",
      "note",
      left,
    ]);
    const { passes } = await start(await storeOfTest(), files);
    await expect.poll(passes).toEqual(["a/b/c/d", "note"]);
  });

  it("continues with the pages after one that it could not delete", async () => {
    const files = fileBlobs(await folderOfTest());
    const last = left.replace("/task/", "/z/");
    await files.put(left, bytesOf("x"));
    await files.put(last, bytesOf("x"));
    const fails: BlobStore = {
      ...files,
      list: (query) => files.list({ ...query, limit: Math.min(query.limit, 1) }),
      delete: (keys) => (keys.includes(left) ? Promise.reject(new Error("locked")) : files.delete(keys)),
    };
    const { passes } = await start(await storeOfTest(), fails);
    await expect.poll(async () => (await passes(), keysOf(files))).toEqual([left]);
  });

  it("must keep files for a minute at least: a server with less is rejected", async () => {
    const blobs = { store: fileBlobs(await folderOfTest()), keepUnused: 0 };
    const started = serveOne(agent, { store: memoryStore(), blobs });
    await expect(started).rejects.toThrow("blobs.keepUnused");
  });
});

it("ends the search if a store lists the same page again and again, and the next search starts over", async () => {
  const files = fileBlobs(join(await folderOfTest(), "blobs"));
  let lists = 0;
  const list: BlobStore["list"] = async (query) => {
    if (query.prefix !== "" || query.limit <= 100) return files.list(query);
    if ((lists += 1) > 50) throw new Error("It does not end");
    return { ...(await files.list(query)), next: "again" };
  };
  const { passes } = await start(memoryStore(), { ...files, list });
  await expect
    .poll(async () => {
      await passes();
      return lists;
    })
    .toBeGreaterThan(2);
  expect(lists).toBeLessThan(40);
});
