import { utf8Length, type Clock } from "../../base/index.ts";
import { A2AError, invalidParams, isTerminal, jsonHash, type JsonValue } from "../../model/index.ts";
import { stepBounds, type SignalOptions } from "../../protocol/index.ts";
import { waitFeature, type Store, type TaskHead, type TaskKey } from "../../store/index.ts";
import type { Committer } from "../log/index.ts";
import { taskNotFound } from "../refusals.ts";
import { eventRow, isEvent } from "../run/index.ts";

interface SignalRooms {
  readonly store: Store;
  readonly clock: Clock;
  readonly committer: Committer;
  /** Ids of the agents of this server. */
  readonly agents: readonly string[];
  /** Wakes the task, where it waits for the event. */
  readonly settle: (task: TaskKey) => Promise<unknown>;
}

/** In bytes. */
const longestId = 200;
const unfit = /\0|\p{Surrogate}/u;

/** Stores an event of a task. It stays until a turn of the task takes it, or the task is over. */
export async function signalTask(
  rooms: SignalRooms,
  taskId: string,
  name: string,
  data: JsonValue = null,
  { agent, id }: SignalOptions = {},
): Promise<void> {
  const json = checked(name, data, id);
  const { store, clock, committer, settle } = rooms;
  const { task, state } = await find(store, agent === undefined ? rooms.agents : [agent], taskId);
  const now = Math.floor(clock.now());
  const key = `parley event ${taskId} ${id ?? ""}`;
  // It came before: also where the task is over by now.
  if (id !== undefined && (await store.once(task, key, now)) !== undefined) return;
  if (isTerminal(state)) {
    throw new A2AError("UnsupportedOperation", "This task is over and takes no more events", {
      metadata: { taskId, state },
    });
  }
  const events = (await store.features(task, taskId, waitFeature)).filter(isEvent);
  if (events.length >= stepBounds.events) {
    throw new A2AError("TooManyRequests", `${events.length} events of this task wait for it: it takes none of them`);
  }
  const once = { effect: "once", key, hash: jsonHash([name, json]), now } as const;
  const row = eventRow(id ?? crypto.randomUUID(), { name, data: JSON.parse(json) as JsonValue }, now);
  const outcome = await committer.append({ task, records: [], effects: id === undefined ? [row] : [once, row] });
  if (!outcome.ok && outcome.reason !== "duplicate") {
    throw outcome.reason === "missing"
      ? taskNotFound(taskId)
      : new A2AError("Unavailable", "The event could not be stored");
  }
  // It is stored: whatever happens now, a look finds it.
  if (outcome.ok) await settle(task).catch(() => {});
}

/** The data as JSON text. JavaScript callers can pass anything. */
function checked(name: unknown, data: unknown, id: unknown): string {
  if (typeof name !== "string" || name === "" || utf8Length(name) > stepBounds.name) {
    throw invalidParams([{ field: "name", description: `must be a text of 1 to ${stepBounds.name} bytes` }]);
  }
  // It becomes the key of a row. Other bytes than a store takes would fail what other tasks store at the same time.
  if (id !== undefined && (typeof id !== "string" || id === "" || utf8Length(id) > longestId || unfit.test(id))) {
    throw invalidParams([{ field: "id", description: `must be a text of 1 to ${longestId} bytes` }]);
  }
  let json: string | undefined;
  try {
    json = JSON.stringify(data);
  } catch {
    // It is refused below.
  }
  if (json === undefined) throw invalidParams([{ field: "data", description: "must be JSON" }]);
  const bytes = utf8Length(json);
  if (bytes > stepBounds.event) {
    const description = `takes ${bytes} bytes, and may take ${stepBounds.event}: keep it elsewhere, and send where it is`;
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
