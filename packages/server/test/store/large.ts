import { expect, it } from "vitest";
import { TaskFold } from "@parley/a2a/model";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { ListPosition, Store, StoreBounds } from "@parley/server/store";

const owner = { agent: "agent", owner: "alice" } as const;
const who = { turn: 1, attempt: 1, time: 1000 } as const;
const bounds = { text: 100_000, compaction: 50_000 } satisfies StoreBounds;
const all = { artifacts: true } as const;

function made(id: string): NewRecord {
  const task = { id, contextId: "c", status: { state: "TASK_STATE_WORKING" } };
  return { kind: "task", json: JSON.stringify(task), state: "TASK_STATE_WORKING", actor: "user", ...who };
}

function said(id: string, text: string): NewRecord {
  const message = { messageId: id, role: "ROLE_USER", parts: [{ text }] };
  return { kind: "message", json: JSON.stringify(message), actor: "user", ...who };
}

function chunk(taskId: string, artifactId: string, text: string, append: boolean): NewRecord {
  const update = { taskId, contextId: "c", artifact: { artifactId, parts: [{ text }] }, ...(append && { append }) };
  return { kind: "artifactUpdate", json: JSON.stringify(update), actor: "agent", ...who };
}

function done(taskId: string): NewRecord {
  const status = {
    state: "TASK_STATE_COMPLETED",
    message: { messageId: "d", role: "ROLE_AGENT", parts: [{ text: "!" }] },
  };
  const json = JSON.stringify({ taskId, contextId: "c", status });
  return { kind: "statusUpdate", json, state: "TASK_STATE_COMPLETED", actor: "agent", ...who };
}

async function put(store: Store, id: string, records: readonly NewRecord[]): Promise<void> {
  const task = { ...owner, taskId: id };
  await store.append([
    { task, create: { contextId: "c" }, records: [made(id)] },
    { task, records },
  ]);
}

function folded(id: string, records: readonly NewRecord[]): unknown {
  const fold = new TaskFold();
  for (const record of [made(id), ...records]) fold.applyRecord(record);
  return JSON.parse(JSON.stringify(fold.snapshot())) as unknown;
}

/** Tests tasks that exceed the size limit of a store's responses. The limit is small here, for speed. */
export function largeTasks(create: (bounds: StoreBounds) => Promise<Store>): void {
  const text = "x".repeat(10_000);

  it("rejects reading a task larger than the longest text, and returns its small members", async () => {
    const store = await create(bounds);
    const artifacts = Array.from({ length: 15 }, (_, n) => chunk("big", "a", text, n > 0));
    await put(store, "big", [said("m", "continue"), ...artifacts, done("big")]);
    await put(store, "small", [done("small")]);
    const refusal = {
      code: "UnsupportedOperation",
      message: expect.stringContaining("Task big is too large") as string,
    };
    await expect(store.load(owner, "big", all)).rejects.toMatchObject(refusal);
    await expect(store.list(owner, { limit: 9, ...all })).rejects.toMatchObject(refusal);
    // Smaller parts of the task can still be read, and so can all other tasks.
    const bare = await store.load(owner, "big", { artifacts: false });
    expect(bare?.task.history?.map(({ parts }) => parts[0]?.text)).toEqual(["continue", "!"]);
    const listed = await store.list(owner, { limit: 9, artifacts: false });
    expect(listed.tasks.map(({ task }) => task.id)).toEqual(["small", "big"]);
    expect((await store.load(owner, "small", all))?.task.status.state).toBe("TASK_STATE_COMPLETED");
    const seqs: number[] = [];
    for (let after = 0; ; after = seqs.at(-1) ?? 0) {
      const page = await store.read(owner, "big", { after, limit: 100, bytes: 25_000 });
      if (page === undefined || page.records.length === 0) break;
      expect(page.records.reduce((sum, { json }) => sum + json.length, 0)).toBeLessThanOrEqual(25_000);
      seqs.push(...page.records.map(({ seq }) => seq));
    }
    expect(seqs).toEqual(Array.from({ length: 18 }, (_, n) => n + 1));
    await store.close();
  });

  it("counts only as much of a history as was requested", async () => {
    const store = await create(bounds);
    await put(store, "t", [...Array.from({ length: 15 }, (_, n) => said(`m${n}`, text)), said("last", "short")]);
    await expect(store.load(owner, "t", all)).rejects.toMatchObject({ code: "UnsupportedOperation" });
    expect((await store.load(owner, "t", { ...all, history: 0 }))?.task.history).toBeUndefined();
    expect((await store.load(owner, "t", { ...all, history: 3 }))?.task.history?.length).toBe(3);
    const { entries } = await store.conversation({ ...owner, contextId: "c" }, { limit: 100, bytes: 25_000 });
    expect(entries.map((entry) => "message" in entry && entry.message.messageId)).toEqual(["m13", "m14", "last"]);
    await store.close();
  });

  it("leaves a task alone that is too large to compact, and does not try again", async () => {
    const store = await create(bounds);
    const records = Array.from({ length: 15 }, (_, n) => chunk("big", "a", text, n > 0));
    const few = [chunk("few", "a", "1", false), chunk("few", "a", "2", true)];
    await put(store, "big", [...records, done("big")]);
    await put(store, "few", [...few, done("few")]);
    const sweeping = { now: 0, compactBefore: 5000, limit: 100 };
    expect(await store.sweep(sweeping)).toMatchObject({ more: false });
    expect(await store.sweep(sweeping)).toEqual({ deleted: 0, compacted: 0, more: false });
    expect((await store.read(owner, "big", { after: 0, limit: 100 }))?.records.length).toBe(17);
    expect((await store.head(owner, "few"))?.firstSeq).toBe(4);
    expect((await store.load(owner, "few", all))?.task).toEqual(folded("few", [...few, done("few")]));
    expect(await store.sweep({ now: 0, deleteBefore: 5000, limit: 100 })).toMatchObject({ deleted: 2 });
    expect(await store.head(owner, "big")).toBeUndefined();
    await store.close();
  });

  it("returns a large task in pieces that form its text, none much longer than a record", async () => {
    const store = await create({ text: 10 << 20, compaction: 10 << 20 });
    const part = "ö😀".repeat(50_000);
    const records = [
      said("m", part),
      ...Array.from({ length: 8 }, (_, n) => chunk("t", "a", `${n}${part}`, n > 0)),
      ...Array.from({ length: 500 }, (_, n) => chunk("t", "b", `${n}`, n > 0)),
      done("t"),
    ];
    await put(store, "t", records);
    const check = async (): Promise<void> => {
      const [listed] = (await store.list(owner, { limit: 1, ...all })).tasks;
      for (const found of [await store.load(owner, "t", all), listed]) {
        expect(found?.task).toEqual(folded("t", records));
        const pieces = found?.pieces ?? [];
        expect(pieces.length).toBeGreaterThan(8);
        expect(pieces.length).toBeLessThan(40);
        expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(250_000);
        expect(pieces.join("")).toBe(found?.json);
      }
    };
    await check();
    // A single record now contains the whole artifact, as a separate piece.
    await store.sweep({ now: 0, compactBefore: 5000, limit: 9 });
    const compacted = await store.load(owner, "t", all);
    expect(compacted?.task).toEqual(folded("t", records));
    expect(compacted?.pieces?.join("")).toBe(compacted?.json);
    await store.close();
  });

  it("lists large tasks page by page within the limit of a page", async () => {
    const store = await create(bounds);
    for (let n = 0; n < 12; n += 1) {
      const id = `t${n}`;
      await put(store, id, [chunk(id, "a", "y".repeat(30_000), false), done(id)]);
    }
    const ids: string[] = [];
    let after: ListPosition | undefined;
    let pages = 0;
    do {
      const page = await store.list(owner, { limit: 9, bytes: 70_000, ...all, ...(after && { after }) });
      expect(page.tasks.reduce((sum, { json = "" }) => sum + json.length, 0)).toBeLessThanOrEqual(70_000);
      ids.push(...page.tasks.map(({ task }) => task.id));
      after = page.next;
      pages += 1;
    } while (after !== undefined);
    expect(pages).toBe(6);
    expect(ids).toEqual(Array.from({ length: 12 }, (_, n) => `t${11 - n}`));
    await store.close();
  });
}
