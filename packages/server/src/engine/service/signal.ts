import { utf8Length, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError, invalidParams, isTerminal, jsonHash, type JsonValue } from "@parley/a2a/internal/model/index";
import { stepBounds, type SignalOptions } from "@parley/a2a/internal/protocol/index";
import { waitFeature, type OnceEffect, type Store, type TaskHead, type TaskKey } from "../../store/index.ts";
import type { Committer } from "../log/index.ts";
import { taskNotFound } from "../shared/errors.ts";
import { eventKey, eventRow, isEvent, type StoredEvent } from "../run/index.ts";
import { valueJson } from "../../store/json.ts";

interface SignalDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly committer: Committer;
  readonly agents: readonly string[];
  readonly settle: (task: TaskKey) => Promise<unknown>;
}

const longestId = 200;
const unfit = /\0|\p{Surrogate}/u;

/** Maximum attempts if other events or runs change the task concurrently. */
const maxTries = 100;

/** Stores an event of a task, until a turn of the task consumes it or the task ends. */
export async function signalTask(
  deps: SignalDeps,
  taskId: string,
  name: string,
  data: JsonValue = null,
  { agent, id }: SignalOptions = {},
): Promise<void> {
  const json = checked(name, data, id);
  const { store, clock } = deps;
  const agents = agent === undefined ? deps.agents : [agent];
  const now = Math.floor(clock.now());
  const once = (task: TaskKey): OnceEffect | undefined =>
    id === undefined ? undefined : { effect: "once", key: onceKey(task, id), hash: jsonHash([name, json]), now };
  for (let tries = 0; tries < maxTries; tries += 1) {
    const head = await find(store, agents, taskId);
    const { task, state } = head;
    // A repeated event succeeds, even if the task has ended since the first.
    if (id !== undefined && (await store.once(task, onceKey(task, id), now)) !== undefined) return;
    if (isTerminal(state)) {
      throw new A2AError("UnsupportedOperation", "This task is over and takes no more events", {
        metadata: { taskId, state },
      });
    }
    const event = { id: id ?? crypto.randomUUID(), name, data: valueJson.read(json) };
    if (await stored(deps, head, event, now, once(task))) return;
  }
  throw new A2AError("Unavailable", "The event could not be stored");
}

function onceKey({ taskId }: TaskKey, id: string): string {
  return `parley event ${taskId} ${id}`;
}

/** Stores an event in a free slot, so that the number of slots limits the events. `false`: the task has changed since it was read. */
async function stored(
  { store, committer, settle }: SignalDeps,
  { task, fence }: TaskHead,
  event: StoredEvent,
  now: number,
  once: OnceEffect | undefined,
): Promise<boolean> {
  const taken = new Set((await store.features(task, task.taskId, waitFeature)).filter(isEvent).map(({ key }) => key));
  const free = Array.from({ length: stepBounds.events }, (_, place) => eventKey(place)).filter(
    (key) => !taken.has(key),
  );
  // A random slot, so that concurrent events rarely collide.
  const key = free[Math.floor(Math.random() * free.length)];
  if (key === undefined) {
    throw new A2AError("TooManyRequests", `${taken.size} events of this task are not consumed yet: retry later`);
  }
  const row = eventRow(key, event, now);
  // The condition `fence` fails if the task has ended, because its end raises the fence.
  const outcome = await committer.append({
    task,
    fence,
    records: [],
    effects: once === undefined ? [row] : [once, row],
  });
  if (outcome.ok) {
    // The event is stored, so a poll finds it even if this fails.
    await settle(task).catch(() => {});
    return true;
  }
  if (outcome.reason === "missing") throw taskNotFound(task.taskId);
  // The caller may retry, because a slot becomes free once the task consumes an event.
  if (outcome.reason === "full") throw new A2AError("TooManyRequests", "This task has no room for more events");
  return outcome.reason === "duplicate";
}

/** The data as JSON text. JavaScript callers can pass anything. */
function checked(name: unknown, data: unknown, id: unknown): string {
  if (typeof name !== "string" || name === "" || utf8Length(name) > stepBounds.name) {
    throw invalidParams([{ field: "name", description: `must be a text of 1 to ${stepBounds.name} bytes` }]);
  }
  // The id becomes the key of a row. Invalid bytes would fail the appends of other tasks in the same transaction.
  if (id !== undefined && (typeof id !== "string" || id === "" || utf8Length(id) > longestId || unfit.test(id))) {
    throw invalidParams([{ field: "id", description: `must be a text of 1 to ${longestId} bytes` }]);
  }
  let json: string | undefined;
  try {
    json = JSON.stringify(data);
  } catch {
    // Not JSON: rejected below.
  }
  if (json === undefined) throw invalidParams([{ field: "data", description: "must be JSON" }]);
  const bytes = utf8Length(json);
  if (bytes > stepBounds.event) {
    const description = `takes ${bytes} bytes, and may take ${stepBounds.event}: store it elsewhere, and send a reference`;
    throw invalidParams([{ field: "data", description }]);
  }
  return json;
}

async function find(store: Store, agents: readonly string[], taskId: string): Promise<TaskHead> {
  for (const agent of agents) {
    const head = await store.head({ agent }, taskId);
    if (head !== undefined) return head;
  }
  throw taskNotFound(taskId);
}
