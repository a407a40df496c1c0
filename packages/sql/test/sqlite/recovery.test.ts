import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, silentLogger, type Store, type Turn } from "@parley/server";
import type { LogFields } from "@parley/a2a/internal/base/index";
import type { AppendItem } from "@parley/server/store";
import { callContext, inProcess, type InProcessOptions } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../src/sqlite/index.ts";

// A process takes over the file of a process that has ended.

const mebi = 1 << 20;

async function file(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-recovery-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return join(folder, "tasks.db");
}

/** A process on the file. `die` disconnects it from its store, like SIGKILL; its successors know that it has ended. */
async function processOn(
  path: string,
  dead: Set<string>,
  onMessage: (turn: Turn, die: () => void) => ReturnType<Parameters<typeof defineAgent>[0]["onMessage"]>,
  options: InProcessOptions = {},
) {
  const store = await sqliteStore({ path, synchronous: "NORMAL" });
  const holder = crypto.randomUUID();
  const cut = new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "append") {
        return (items: readonly AppendItem[]) => (dead.has(holder) ? new Promise(() => {}) : target.append(items));
      }
      return target[name];
    },
  });
  const die = (): void => void dead.add(holder);
  const agent = defineAgent({
    name: "test",
    description: "a test",
    version: "1",
    skills: [],
    resumable: true,
    mayReplyDirectly: false,
    onMessage: (turn) => onMessage(turn, die),
  });
  const made = inProcess(agent, {
    store: cut,
    lease: { ttl: 60_000, holder, isGone: (other) => dead.has(other) },
    ...options,
  });
  const close = async (): Promise<void> => {
    // A process that has ended does not wait for anything.
    if (!dead.has(holder)) await made.engine.close();
    await store.close();
  };
  onTestFinished(close);
  return { ...made, die, isDead: () => dead.has(holder), close };
}

async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 4_000; tries += 1) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error("The condition was not met");
}

const message = (text: string, taskId?: string) => ({
  messageId: crypto.randomUUID(),
  role: "ROLE_USER" as const,
  parts: [{ text }],
  ...(taskId !== undefined && { taskId }),
});

const never = new Promise<void>(() => {});
const configuration = { returnImmediately: true, historyLength: 0 };

it("a task with many queued messages is taken over after a restart, message by message, and ends", async () => {
  const path = await file();
  const dead = new Set<string>();
  const limits = { taskBytes: 4 * mebi };
  const turns: string[] = [];
  async function* onMessage(turn: Turn) {
    yield turn.working();
    if (dead.size === 0) await never;
    turns.push(turn.text.slice(0, 2));
    yield turn.artifact({ parts: [{ text: `answer ${turn.number}` }] });
  }
  const first = await processOn(path, dead, onMessage, { limits });
  const send = (text: string, taskId?: string) =>
    first.service.call("SendMessage", { message: message(text, taskId), configuration }, callContext());
  const taskId = (await send("0 Go")).payload.value.task?.id ?? "";
  const outcomes = await Promise.allSettled(
    Array.from({ length: 60 }, (_, n) => send(`${n % 10}.${"x".repeat(mebi)}`, taskId)),
  );
  const taken = outcomes.filter(({ status }) => status === "fulfilled").length;
  expect(taken).toBe(3);
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ fields: [{ field: "message.parts" }] });
  }
  first.die();
  const second = await processOn(path, dead, onMessage, { limits });
  await eventually(async () => {
    const {
      payload: { value },
    } = await second.service.call("GetTask", { id: taskId, historyLength: 0 }, callContext());
    return value.status.state === "TASK_STATE_COMPLETED" && value.artifacts?.length === 1 + taken;
  });
  expect(turns).toHaveLength(1 + taken);
});

it("five thousand tasks of a renamed agent delay no other task, and are counted once", async () => {
  const path = await file();
  const dead = new Set<string>();
  async function* onMessage(turn: Turn) {
    yield turn.working();
    if (turn.attempt === 1) await never;
    yield turn.artifact({ parts: [{ text: "done" }] });
  }
  const first = await processOn(path, dead, onMessage);
  const sent = await first.service.call("SendMessage", { message: message("Go"), configuration }, callContext());
  const id = sent.payload.value.task?.id ?? "";
  const orphan = (taskId: string): AppendItem => ({
    task: { agent: "renamed", owner: "o", taskId },
    create: { contextId: "c" },
    records: [
      {
        kind: "task",
        json: JSON.stringify({ id: taskId, contextId: "c", status: { state: "TASK_STATE_WORKING" } }),
        time: 1,
        turn: 1,
        attempt: 1,
        actor: "user",
        state: "TASK_STATE_WORKING",
      },
    ],
    effects: [{ effect: "run", run: { turn: 1, attempt: 1, input: 1 } }],
  });
  await first.store.append(Array.from({ length: 5_000 }, (_, n) => orphan(`t-${n}`)));
  first.die();
  const lines: unknown[] = [];
  const warn = (text: string, fields?: LogFields): void => void lines.push({ text, ...fields });
  const second = await processOn(path, dead, onMessage, { logger: { ...silentLogger, warn } });
  await eventually(async () => {
    const {
      payload: { value },
    } = await second.service.call("GetTask", { id }, callContext());
    return value.status.state === "TASK_STATE_COMPLETED";
  });
  await eventually(() => lines.length > 0);
  expect(lines).toEqual([
    { text: "Lost tasks wait for an agent that is not hosted here", agent: "renamed", tasks: 5_000 },
  ]);
});

it("a task whose every run crashes the process is suspended after a crash without other runs, and other tasks are not blamed", async () => {
  const path = await file();
  const dead = new Set<string>();
  async function* onMessage(turn: Turn, die: () => void) {
    yield turn.working();
    if (turn.attempt === 1) await never;
    if (turn.text === "kill") {
      die();
      await never;
    }
    yield turn.artifact({ parts: [{ text: "done" }] });
  }
  const first = await processOn(path, dead, onMessage);
  const ids: string[] = [];
  for (const text of ["one", "kill", "two"]) {
    const reply = await first.service.call("SendMessage", { message: message(text), configuration }, callContext());
    ids.push(reply.payload.value.task?.id ?? "");
  }
  first.die();
  let starts = 0;
  for (let over = false; !over;) {
    const next = await processOn(path, dead, onMessage);
    starts += 1;
    const states = () =>
      Promise.all(
        ids.map(async (id) => (await next.service.call("GetTask", { id }, callContext())).payload.value.status.state),
      );
    const isSuspended = async (): Promise<boolean> =>
      (await next.store.head({ agent: "agent" }, ids[1] ?? ""))?.run?.suspended === true;
    const isOver = async (): Promise<boolean> =>
      (await isSuspended()) && (await states()).filter((state) => state === "TASK_STATE_COMPLETED").length === 2;
    await eventually(async () => next.isDead() || (await isOver()));
    over = !next.isDead();
    if (over) expect(await states()).toEqual(["TASK_STATE_COMPLETED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
  }
  // There is one more attempt if the first one ran next to other tasks (docs/decisions/suspended-tasks.md).
  expect([3, 4]).toContain(starts);
});
