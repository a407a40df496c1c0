import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, fileBlobs, type Store } from "@parley/node";
import type { TaskState } from "@parley/a2a/model";
import type * as stores from "@parley/server/internal/store/index";
import { testAgent } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { run } from "../src/program.ts";
import { recordedIo } from "./support/io.ts";

/** `parley db purge`, `erase` and `export`, on a file that a server has open (docs/retention.md). */

const exporting = vi.hoisted(() => ({ fails: false }));
vi.mock("@parley/server/internal/store/index", async (original) => {
  const real = await original<typeof stores>();
  async function* broken(): AsyncGenerator<string> {
    yield "{}\n".repeat(100_000);
    throw new Error("The database went away");
  }
  return {
    ...real,
    exportOwner: (...of: Parameters<typeof real.exportOwner>) => (exporting.fails ? broken() : real.exportOwner(...of)),
  };
});

let folder = "";
let files = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-db-"));
});
afterAll(() => rm(folder, { recursive: true }));

const ada = JSON.stringify([null, "ada"]);
const bob = JSON.stringify(["acme", "bob"]);
const hour = 3_600_000;

async function put(store: Store, taskId: string, state: TaskState, age: number, owner = ada): Promise<void> {
  const time = Date.now() - age;
  const status = { state, timestamp: new Date(time).toISOString() };
  const json = JSON.stringify({ id: taskId, contextId: "c", status, history: [] });
  const record = { kind: "task", state, json, time, actor: "user", turn: 1, attempt: 1 } as const;
  await store.append([{ task: { agent: "/", owner, taskId }, create: { contextId: "c" }, records: [record] }]);
}

/** A file that stays open, like a running server's. */
async function given() {
  const path = join(folder, `${(files += 1)}.db`);
  const store = await sqliteStore({ path, thread: false });
  onTestFinished(() => store.close());
  await put(store, "old", "TASK_STATE_COMPLETED", 48 * hour);
  await put(store, "old-failed", "TASK_STATE_FAILED", 48 * hour);
  await put(store, "young", "TASK_STATE_COMPLETED", hour);
  await put(store, "of-bob", "TASK_STATE_COMPLETED", 48 * hour, bob);
  await put(store, "asks", "TASK_STATE_INPUT_REQUIRED", 48 * hour);
  await put(store, "works", "TASK_STATE_WORKING", 48 * hour);
  const left = async (): Promise<readonly string[]> =>
    (await store.list({ agent: "/" }, { limit: 99, artifacts: false })).tasks.map(({ task }) => task.id).sort();
  return { path, store, left };
}

async function db(path: string, args: readonly string[], answer?: string) {
  const { io, out, err } = recordedIo({ cwd: folder });
  const asked: string[] = [];
  const ask = async (question: string): Promise<string | undefined> => {
    asked.push(question);
    return answer;
  };
  const stderr = answer === undefined ? io.stderr : { ...io.stderr, terminal: true };
  const code = await run(["db", ...args, "--store", path], { ...io, stderr, ask });
  return { code, out: out(), err: err(), asked };
}

describe("parley db purge", () => {
  test("counts first, then deletes the counted tasks while the file is in use, and keeps active tasks", async () => {
    const { path, left } = await given();
    const args = ["purge", "--before", "1d", "--json"];
    expect(await db(path, [...args, "--dry-run"])).toMatchObject({
      code: 0,
      out: '{"found":3,"deleted":0,"conversations":0,"dryRun":true}\n',
    });
    expect((await left()).length).toBe(6);
    expect(await db(path, [...args, "--yes"])).toMatchObject({
      code: 0,
      out: '{"found":3,"deleted":3,"conversations":1,"dryRun":false}\n',
    });
    expect(await left()).toEqual(["asks", "works", "young"]);
  });

  test("deletes by state, owner and agent", async () => {
    const { path, left } = await given();
    expect((await db(path, ["purge", "--state", "failed", "--yes"])).out).toBe(
      "1 task and 0 conversations without tasks deleted.\n",
    );
    expect((await db(path, ["purge", "--subject", "bob", "--organization", "acme", "--yes"])).out).toBe(
      "1 task and 1 conversation without tasks deleted.\n",
    );
    expect((await db(path, ["purge", "--agent", "/other", "--yes"])).out).toMatch(/^0 tasks and 0 conversations/);
    expect((await db(path, ["purge", "--owner", ada, "--state", "input-required", "--yes"])).out).toMatch(/^1 task /);
    expect(await left()).toEqual(["old", "works", "young"]);
  });

  test("asks on a terminal, and elsewhere deletes nothing without --yes", async () => {
    const { path, left } = await given();
    const args = ["purge", "--before", "0d"];
    expect(await db(path, args)).toMatchObject({ code: 2, err: expect.stringContaining("pass --yes") });
    expect(await db(path, args, "n")).toMatchObject({ code: 1, asked: [expect.stringContaining("Delete 4 tasks")] });
    expect((await left()).length).toBe(6);
    expect(await db(path, args, "y")).toMatchObject({ code: 0, err: expect.stringContaining("Deleted 4 of 4 tasks") });
    expect(await left()).toEqual(["asks", "works"]);
  });

  test("leaves no row of a conversation without tasks", async () => {
    const { path, store } = await given();
    const talked = { agent: "/", owner: ada, contextId: "talked" };
    const answer = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hi" }] };
    const said = { effect: "contextMessage", json: JSON.stringify(answer), time: 1 } as const;
    for (let at = 0; at < 250; at += 1) {
      await store.append([{ context: { ...talked, contextId: `talked ${at}` }, effects: [said] }]);
    }
    const purge = ["purge", "--before", "0d", "--yes", "--json"];
    expect(JSON.parse((await db(path, purge)).out)).toMatchObject({ found: 4, deleted: 4, conversations: 251 });
    expect(JSON.parse((await db(path, purge)).out)).toMatchObject({ found: 0, deleted: 0, conversations: 0 });
    // The rest has unfinished tasks.
    const contexts = (await store.upkeep?.contexts(talked, { limit: 999 })) ?? [];
    expect(contexts.map(({ contextId }) => contextId)).toEqual(["c"]);
  });

  test("refuses to delete everything by mistake, and active tasks", async () => {
    const { path, left } = await given();
    expect(await db(path, ["purge", "--yes"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("no tasks selected"),
    });
    expect(await db(path, ["purge", "--state", "working", "--yes"])).toMatchObject({ code: 2 });
    expect(await db(join(folder, "missing.db"), ["purge", "--before", "1d", "--yes"])).toMatchObject({ code: 1 });
    expect((await left()).length).toBe(6);
  });
});

describe("parley db export and erase", () => {
  test("write all data of an owner into a file, then delete the data and the owner's name", async () => {
    const { path, left, store } = await given();
    const out = join(folder, `${files}.jsonl`);
    expect(await db(path, ["export", "--subject", "ada", "--out", out])).toMatchObject({ code: 0, out: "", err: "" });
    expect((await stat(out)).mode & 0o077).toBe(0);
    const lines = (await readFile(out, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(lines.length).toBe(8);
    expect(lines.at(-1)).toEqual({ type: "end", tasks: 5, contexts: 1, messages: 0 });
    expect(await db(path, ["export", "--subject", "ada", "--out", out])).toMatchObject({ code: 1 });
    expect((await db(path, ["export", "--subject", "ada"])).out.split("\n").length).toBe(9);

    expect((await db(path, ["erase", "--subject", "ada", "--dry-run"])).out).toContain("5 tasks");
    const erased = await db(path, ["erase", "--subject", "ada", "--yes", "--json"]);
    expect(JSON.parse(erased.out)).toMatchObject({ owner: ada, agents: ["/"], deleted: 5, canceled: 2 });
    expect(await left()).toEqual(["of-bob"]);
    expect(await store.upkeep?.owners({ limit: 9 })).toEqual([{ agent: "/", owner: bob }]);
    expect(await db(path, ["scrub"])).toMatchObject({ code: 0, out: "No deleted data remains in the file.\n" });
    expect((await readFile(path, "latin1")).includes('"ada"')).toBe(false);
    expect(await db(path, ["erase", "--subject", "ada", "--yes"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("no data of owner"),
    });
  });

  test("leave no partial file after a failed export, and do not change an existing file", async () => {
    const { path } = await given();
    const out = join(folder, `${files}.jsonl`);
    exporting.fails = true;
    onTestFinished(() => void (exporting.fails = false));
    const args = ["export", "--subject", "ada", "--out", out];
    expect(await db(path, args)).toMatchObject({ code: 1, err: expect.stringContaining("The database went away") });
    await expect(stat(out)).rejects.toMatchObject({ code: "ENOENT" });
    await writeFile(out, "mine");
    expect(await db(path, args)).toMatchObject({
      code: 1,
      err: expect.stringContaining("a file with that name exists"),
    });
    expect(await readFile(out, "utf8")).toBe("mine");
  });
});

describe("failures", () => {
  test("an interrupted export leaves no file, and its exit code is 130", async () => {
    const { path, store } = await given();
    const out = join(folder, "interrupted.jsonl");
    for (let at = 0; at < 60; at += 1) await put(store, `more-${at}`, "TASK_STATE_COMPLETED", hour);
    const { io, err } = recordedIo({ cwd: folder });
    // At once, like a key pressed before the first page is read.
    const onInterrupt = (run: (signal: "SIGINT") => void): (() => void) => (run("SIGINT"), () => {});
    const args = ["db", "export", "--subject", "ada", "--out", out, "--store", path];
    expect(await run(args, { ...io, onInterrupt })).toBe(130);
    expect(err()).toContain("Interrupted; removed");
    await expect(stat(out)).rejects.toThrow("ENOENT");
    expect((await db(path, ["export", "--subject", "ada", "--out", out])).code).toBe(0);
  });

  test("an unavailable database is named as such, and not as an agent", async () => {
    const { io, err } = recordedIo({ cwd: folder });
    const url = "postgres://nobody@127.0.0.1:1/nowhere";
    expect(await run(["db", "purge", "--before", "1d", "--database-url", url, "--yes"], io)).toBe(1);
    expect(err()).toContain("The database cannot be reached");
    expect(err()).not.toContain("agent");
  });
});

describe("parley db export and erase, with --files", () => {
  const raw = Buffer.alloc(300_000, "x").toString("base64");

  /** A task with a file that is outside of the database, and a process that uses both. */
  async function withFile() {
    const { path, store } = await given();
    const where = join(folder, `files-${files}`);
    const agent = defineAgent({
      name: "Files",
      description: "Has files",
      version: "1.0.0",
      skills: [],
      defaultInputModes: ["application/octet-stream"],
      async *onMessage(turn) {
        yield turn.artifact({ parts: turn.message.parts });
      },
    });
    const process = await testAgent(agent, { store, blobs: { store: fileBlobs(where) } });
    onTestFinished(() => process.close());
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ raw }] } as const;
    await process.client.sendMessage({ message });
    const [owner] =
      (await store.upkeep?.owners({ limit: 9 }))?.filter((each) => ![ada, bob].includes(each.owner)) ?? [];
    const keys = async () => (await fileBlobs(where).list({ prefix: "", limit: 9 })).blobs.map(({ key }) => key);
    return { path, where, owner: owner?.owner ?? "", keys };
  }

  test("accept the folder, or a module: files are exported and deleted", async () => {
    const { path, where, owner, keys } = await withFile();
    const module = join(folder, "files.mjs");
    const source = JSON.stringify(import.meta.resolve("@parley/node"));
    await writeFile(module, `import { fileBlobs } from ${source}; export default fileBlobs(${JSON.stringify(where)});`);
    const exported = await db(path, ["export", "--owner", owner, "--files", where]);
    expect(exported.out.split(raw)).toHaveLength(3);
    expect((await db(path, ["export", "--owner", owner, "--files", module])).out.length).toBe(exported.out.length);
    const bare = await db(path, ["export", "--owner", owner]);
    expect(bare.out).toContain("parley-blob:");
    // Left by a killed server, from a message whose agent was not known yet.
    const [, ofOwner = ""] = (await keys())[0]?.split("/") ?? [];
    const incoming = `~${Buffer.from("~~incoming").toString("base64url")}`;
    await fileBlobs(where).put(`${incoming}/${ofOwner}/task/file`, (async function* () {})());
    await fileBlobs(where).put(`${incoming}/${ofOwner}x/task/file`, (async function* () {})());
    const erased = await db(path, ["erase", "--owner", owner, "--files", where, "--yes", "--json"]);
    expect(JSON.parse(erased.out)).toMatchObject({ owner, deleted: 1, files: 2 });
    expect(await keys()).toEqual([`${incoming}/${ofOwner}x/task/file`]);
    await fileBlobs(where).delete(await keys());
    expect(await keys()).toEqual([]);
  });

  test("reject a missing location, one without files, or one that another database has marked", async () => {
    const { path, where, owner, keys } = await withFile();
    const args = ["erase", "--owner", owner, "--yes", "--files"];
    expect(await db(path, [...args, join(folder, "nowhere")])).toMatchObject({ code: 2 });
    const wrong = join(folder, "wrong.mjs");
    await writeFile(wrong, "export default 7;");
    expect(await db(path, [...args, wrong])).toMatchObject({
      code: 1,
      err: expect.stringContaining("must export a BlobStore"),
    });
    await fileBlobs(where).put(`~~database/${"m".repeat(24)}`, (async function* () {})());
    const foreign = await db(path, [...args, where]);
    expect(foreign).toMatchObject({ code: 1, err: expect.stringContaining("belong to another database") });
    expect(await keys()).toHaveLength(2);
    expect((await db(path, ["export", "--owner", owner])).code).toBe(0);
  });
});
