import { refuseFeatures } from "../features.ts";
import type {
  AppendItem,
  AppendOutcome,
  ContextAppend,
  ContextEffect,
  OnceRecord,
  Owner,
  TaskEffect,
} from "../port.ts";
import { decide, readItems, type ReadItem } from "../transition.ts";
import type { StoredContext, StoredTask } from "./rows.ts";
import type { MemoryTables } from "./tables.ts";

/* What an append changes in the tables. */

/** Applies items in order. A malformed item throws before anything is changed. */
export function appendItems(tables: MemoryTables, items: readonly AppendItem[]): readonly AppendOutcome[] {
  return readItems(items).map((item) => ("item" in item ? appendTask(tables, item) : appendContext(tables, item)));
}

function appendTask(tables: MemoryTables, read: ReadItem): AppendOutcome {
  const { item } = read;
  const known = tables.find({ agent: item.task.agent }, item.task.taskId);
  const own = known?.head.task.owner === item.task.owner ? known : undefined;
  const once = findDuplicate(tables, item.task, item.effects ?? []);
  if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
  // A task of another owner is visible only to an item that would create it.
  const head = decide(read, item.create === undefined ? own?.head : known?.head);
  if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };
  const reason = read.features.length > 0 ? refuseFeatures(read.features, tables.features.lookup(own)) : undefined;
  if (reason !== undefined) return { ok: false, reason, ...(own && { head: own.head }) };

  const task = own === undefined ? tables.create(read, head) : tables.change(own, read, head);
  for (const effect of item.effects ?? []) applyToTask(tables, task, effect);
  return { ok: true, seq: head.seq, fence: head.fence };
}

function appendContext(tables: MemoryTables, { context: key, effects }: ContextAppend): AppendOutcome {
  const once = findDuplicate(tables, key, effects);
  if (once !== undefined) return { ok: false, reason: "duplicate", once };
  const context = tables.ensureContext(key);
  for (const effect of effects) applyToContext(tables, context, effect);
  return { ok: true, seq: 0, fence: 0 };
}

function applyToTask(tables: MemoryTables, task: StoredTask, effect: TaskEffect): void {
  switch (effect.effect) {
    case "checkpoint":
      task.checkpoint = effect.value ?? undefined;
      break;
    case "taskState":
      task.taskState = effect.value ?? undefined;
      break;
    case "once":
      tables.remember(task.context.owner, task, effect, {
        taskId: task.head.task.taskId,
        seq: task.head.seq,
      });
      break;
    case "contextState":
      task.context.state = effect.value ?? undefined;
      break;
    case "feature":
      tables.features.apply(task, effect);
      break;
    default:
      // Leases and runs are part of the head.
      break;
  }
}

function applyToContext(tables: MemoryTables, context: StoredContext, effect: ContextEffect): void {
  switch (effect.effect) {
    case "contextState":
      context.state = effect.value ?? undefined;
      break;
    case "contextMessage":
      tables.say(context, { kind: "message", json: effect.json, time: effect.time });
      tables.touch(context, effect.time);
      break;
    case "once":
      tables.remember(context.owner, context, effect, { seq: 0 });
      tables.touch(context, effect.now);
      break;
  }
}

function findDuplicate(
  tables: MemoryTables,
  owner: Owner,
  effects: readonly (TaskEffect | ContextEffect)[],
): OnceRecord | undefined {
  for (const effect of effects) {
    const known = effect.effect === "once" ? tables.key(owner, effect.key, effect.now) : undefined;
    if (known !== undefined) return known;
  }
  return undefined;
}
