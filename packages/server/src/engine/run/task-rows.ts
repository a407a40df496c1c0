import type { Clock } from "@parley/a2a/internal/base/index";
import { A2AError, type JsonValue, type Message, type NewRecord } from "@parley/a2a/internal/model/index";
import type { OpenWait, TurnRows } from "@parley/a2a/internal/protocol/index";
import {
  queueFeature,
  stateOf,
  waitFeature,
  type FeatureEffect,
  type FeatureRow,
  type OnceEffect,
  type Store,
  type StoredRun,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { keepIn, taskRecord, type StoredCall } from "../log/index.ts";
import type { Phase } from "./phase.ts";
import { storedJson, type StoredJson } from "@parley/a2a/internal/base/json";

/* Keys and values of stored rows. The keys of steps, waits and events begin with their scope; the keys of queue and extension rows do not. */

/** The scope of a result: a turn, by its number, or the whole task. */
export type ScopeName = `${number}` | "task";

export function scopeOf(key: string): string {
  return key.slice(0, key.indexOf("."));
}

/** The key of the row with the names of steps that have begun but whose results are not stored. */
export function begunKey(scope: ScopeName): string {
  return `${scope}.begun`;
}

/** Steps that have begun, with their start times in milliseconds since the Unix epoch. Rows of older releases have only the names. */
export const begunJson: StoredJson<readonly (string | readonly [name: string, at: number])[]> = storedJson();

export function isBegun(key: string): boolean {
  return key.endsWith(".begun");
}

export const waitJson: StoredJson<OpenWait> = storedJson();

/** The row of a wait. `turn`: the turn number that the agent's function sees. `due`: when the server must check the waiting task. */
export function waitRow(turn: number, key: string, wait: OpenWait, due?: number): FeatureEffect {
  const value = waitJson.write(wait);
  const row = { effect: "feature", op: "set", feature: waitFeature, key: waitKey(turn, key), value } as const;
  return due === undefined ? row : { ...row, due };
}

export function waitKey(turn: number, key: string): string {
  return `${turn}.${key}`;
}

/** Whether a turn has open waits: its function is then called again, even if the agent is not resumable. `turn`: as in `waitRow`. */
export async function hasWaits(store: Pick<Store, "features">, task: TaskKey, turn: number): Promise<boolean> {
  const rows = await store.features(task, task.taskId, waitFeature);
  return rows.some(isWaitOf(turn));
}

export function isWaitOf(turn: number): (row: Pick<FeatureRow, "key">) => boolean {
  return ({ key }) => scopeOf(key) === `${turn}`;
}

export interface StoredEvent {
  /** Distinguishes this event from earlier events with the same key. */
  readonly id: string;
  readonly name: string;
  readonly data: JsonValue;
}

export const eventJson: StoredJson<StoredEvent> = storedJson();

/** The row of an event, under an unused key. It is due immediately, so that a process checks whether its task waits for it. */
export function eventRow(key: string, event: StoredEvent, due: number): FeatureEffect {
  return { effect: "feature", op: "set", feature: waitFeature, key, value: eventJson.write(event), due, if: null };
}

export function eventKey(place: number): string {
  return `event.${place}`;
}

export function isEvent({ key }: Pick<FeatureRow, "key">): boolean {
  return scopeOf(key) === "event";
}

export function isOver(row: FeatureRow, now: number, rows: readonly FeatureRow[]): boolean {
  const { event, until } = waitJson.read(row.value);
  if (until !== undefined && until <= now) return true;
  if (event === undefined) return false;
  return rows.some((other) => isEvent(other) && eventJson.read(other.value).name === event);
}

export function isDueBy(now: number): (row: FeatureRow) => boolean {
  return ({ due = Infinity }) => due <= now;
}

/** Changes a row, if it has not changed since it was read. `park` removes the row's due time, a number sets it. */
export function changed(read: FeatureRow, to: "delete" | "park" | number): FeatureEffect {
  const { key, value } = read;
  const row = { effect: "feature", feature: waitFeature, key, if: stateOf(read) } as const;
  if (to === "delete") return { ...row, op: "delete" };
  return to === "park" ? { ...row, op: "set", value } : { ...row, op: "set", value, due: to };
}

/** A stored takeover. `from`: the process that ran the task, and died or hung. Absent: that process released the task. */
export interface StoredTakeover {
  readonly turn: number;
  readonly attempt: number;
  /** When the task was taken over, in milliseconds since the Unix epoch. */
  readonly time: number;
  readonly node: string;
  readonly from?: string;
}

export const takeoverJson: StoredJson<StoredTakeover> = storedJson();

export const queueKey = "run";

export type QueuedRun = Pick<StoredRun, "turn" | "input">;

export const queuedJson: StoredJson<QueuedRun> = storedJson();

/** Whether a task waits for a process with room. Nothing else leaves a task submitted without a run. */
export function isQueued({ state, run }: Pick<TaskHead, "state" | "run">): boolean {
  return state === "TASK_STATE_SUBMITTED" && run === undefined;
}

/** Queues a task. Tasks with a lower `place` come first, then earlier ones. */
export function queueRow({ turn, input }: QueuedRun, place: number): FeatureEffect {
  const value = queuedJson.write({ turn, input });
  return { effect: "feature", op: "set", feature: queueFeature, key: queueKey, value, due: place };
}

/** The first record of a task whose agent is not called yet. */
export function queuedTask(
  { taskId }: TaskKey,
  contextId: string,
  message: Message,
  call: StoredCall,
  time: number,
): NewRecord {
  const { extensions, trace } = call;
  return taskRecord(
    { taskId, contextId, turn: 1, attempt: 1, extensions, trace },
    "TASK_STATE_SUBMITTED",
    message,
    call,
    time,
  );
}

/** The owner of claimed names. No principal has this owner, because the owners of principals are JSON. */
const claims = "claims of extensions";
const day = 24 * 60 * 60_000;

interface TurnRowsDeps {
  readonly store: Pick<Store, "append" | "features" | "once">;
  readonly clock: Clock;
  readonly task: TaskKey;
  readonly turn: number;
  readonly phase: () => Pick<Phase, "fence" | "flush" | "keep" | "makeTask">;
}

/** The rows that an extension stores with the task of a turn. `feature`: its URI. */
export function turnRows(feature: string, { store, clock, task, turn, phase }: TurnRowsDeps): TurnRows {
  return {
    read: () => store.features(task, task.taskId, feature),
    async store(changes) {
      const effects: FeatureEffect[] = [];
      const keep = keepIn(effects);
      for (const change of changes) keep({ feature, ...change });
      phase().makeTask();
      await phase().keep(effects);
    },
    async claim(name, until, family = feature) {
      const { agent, taskId } = task;
      const now = Math.floor(clock.now());
      // One context per day, so that a sweep never deletes too many names at once.
      const context = { agent, owner: claims, contextId: `${family} ${Math.floor(now / day)}` };
      const hash = `${taskId} ${turn}`;
      const key = `${family} ${name}`;
      const held = await store.once(context, key, now);
      if (held !== undefined) return held.hash === hash;
      // Only the turn of a stored task continues after a crash. For another message, the name would stay taken and unused.
      if (phase().fence === undefined) {
        phase().makeTask();
        await phase().flush();
      }
      const once: OnceEffect = { effect: "once", key, hash, now, until: Math.ceil(until) };
      const [outcome] = await store.append([{ context, effects: [once] }]);
      if (outcome?.ok === true) return true;
      if (outcome?.reason !== "duplicate") throw new A2AError("Unavailable", "The name could not be claimed");
      return outcome.once?.hash === hash;
    },
  };
}
