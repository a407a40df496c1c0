import {
  decide,
  readItem,
  type AppendItem,
  type AppendOutcome,
  type ContextAppend,
  type ContextEffect,
  type OnceEffect,
  type OnceRecord,
  type Owner,
  type ReadItem,
  type TaskEffect,
  type TaskHead,
  type TaskKey,
} from "@parley/a2a/store";
import type { Driver, Statement, Value } from "./driver.ts";
import { findKey, keepKey } from "./keys.ts";
import { logKey, maxSeq, recordValues, stateNumber, taskColumns, taskRow, taskTables, type TaskRow } from "./rows.ts";
import { findScope, ScopeChanges } from "./scopes.ts";
import { encodeJson, encodeName } from "./text.ts";

type ReadAppend = ReadItem | ContextAppend;

/** Looks at every item before the transaction begins. */
export function readItems(items: readonly AppendItem[]): readonly ReadAppend[] {
  return items.map((item) => ("task" in item ? readItem(item) : item));
}

/** Applies the items of one transaction. Each task is read once and written once, however many items it has. */
export function applyItems(driver: Driver, items: readonly ReadAppend[]): readonly AppendOutcome[] {
  const writer = new Writer(driver);
  const outcomes = items.map((item) => ("item" in item ? writer.appendTask(item) : writer.appendContext(item)));
  writer.finish();
  return outcomes;
}

interface Task {
  readonly row: Pick<TaskRow, "number" | "agent" | "owner" | "context">;
  head: TaskHead;
  statusSeq: number;
  hasMetadata: boolean;
  /** Whether the table does not have it yet. */
  changed: boolean;
}

class Writer {
  readonly #driver: Driver;
  readonly #scopes: ScopeChanges;
  readonly #tasks = new Map<string, Task>();
  readonly #insertRecord: Statement;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#scopes = new ScopeChanges(driver);
    this.#insertRecord = driver.prepare(
      `INSERT INTO log (key, context, place, base, kind, state, time, actor, turn, attempt, has_metadata, extra, json)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
  }

  appendTask(read: ReadItem): AppendOutcome {
    const { item } = read;
    const known = this.#find(item.task);
    const own = known?.head.task.owner === item.task.owner ? known : undefined;
    const once = this.#duplicate(item.task, item.effects ?? []);
    if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
    // A task of somebody else is there only for one who wants to make it again.
    const head = decide(read, item.create === undefined ? own?.head : known?.head);
    if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };
    if (head.seq > maxSeq) throw new RangeError(`A task has at most ${maxSeq} records`);

    const before = own?.head;
    const task = own ?? this.#create(head);
    task.head = head;
    task.changed ||= before !== undefined;
    this.#insertRecords(task, read);
    this.#scopes.move(scopesOf(task), before?.state, head.state);
    if (before?.statusTime !== head.statusTime) this.#scopes.touch(task.row.context, head.statusTime);
    for (const effect of item.effects ?? []) this.#applyToTask(task, effect);
    return { ok: true, seq: head.seq, fence: head.fence };
  }

  appendContext({ context: key, effects }: ContextAppend): AppendOutcome {
    const once = this.#duplicate(key, effects);
    if (once !== undefined) return { ok: false, reason: "duplicate", once };
    const context = this.#scopes.ensure(key.agent, key.owner, key.contextId);
    for (const effect of effects) this.#applyToContext(context, key, effect);
    return { ok: true, seq: 0, fence: 0 };
  }

  finish(): void {
    const update = this.#driver.prepare(
      `UPDATE tasks SET state = ?, status_time = ?, status_seq = ?, seq = ?, generation = ?, fence = ?, holder = ?,
         lease_until = ?, run_turn = ?, run_attempt = ?, run_input = ?, has_metadata = ? WHERE number = ?`,
    );
    for (const task of this.#tasks.values()) {
      if (task.changed) update.run(...changing(task), task.row.number);
    }
    this.#scopes.write();
  }

  #find({ agent, taskId }: TaskKey): Task | undefined {
    const name = JSON.stringify([agent, taskId]);
    const known = this.#tasks.get(name);
    if (known !== undefined) return known;
    const row = this.#driver
      .prepare(
        `SELECT ${taskColumns} FROM ${taskTables} WHERE a.parent = 0 AND a.name = ? AND t.agent = a.id AND t.id = ?`,
      )
      .get(encodeName(agent), encodeName(taskId));
    if (row === undefined) return undefined;
    const { head, statusSeq, hasMetadata, ...rest } = taskRow(row);
    const task = { row: rest, head, statusSeq, hasMetadata, changed: false };
    this.#tasks.set(name, task);
    return task;
  }

  #create(head: TaskHead): Task {
    const { agent: agentName, owner: ownerName, taskId } = head.task;
    const agent = this.#scopes.ensure(agentName);
    const owner = this.#scopes.ensure(agentName, ownerName);
    const context = this.#scopes.ensure(agentName, ownerName, head.contextId);
    const state = { head, statusSeq: 0, hasMetadata: false };
    const { lastId: number } = this.#driver
      .prepare(
        `INSERT INTO tasks (agent, owner, context, id, first_seq, state, status_time, status_seq, seq, generation, fence, holder,
           lease_until, run_turn, run_attempt, run_input, has_metadata)
         VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(agent, owner, context, encodeName(taskId), ...changing(state));
    const task = { row: { number, agent, owner, context }, ...state, changed: false };
    this.#tasks.set(JSON.stringify([agentName, taskId]), task);
    return task;
  }

  #insertRecords(task: Task, { records, base }: ReadItem): void {
    const { number, context } = task.row;
    let seq = task.head.seq - records.length;
    for (const read of records) {
      seq += 1;
      const place = read.inHistory ? this.#scopes.place(context) : null;
      const first = seq === 1 && base !== undefined ? encodeJson(base) : null;
      this.#insertRecord.run(logKey(number, seq), place === null ? null : context, place, first, ...recordValues(read));
      if (read.record.kind === "statusUpdate") {
        task.statusSeq = seq;
        task.hasMetadata ||= read.hasMetadata;
        task.changed = true;
      }
    }
  }

  #applyToTask({ row, head }: Task, effect: TaskEffect): void {
    switch (effect.effect) {
      case "checkpoint":
        this.#set("checkpoints", "task", row.number, effect.value);
        break;
      case "contextState":
        this.#set("context_states", "context", row.context, effect.value);
        break;
      case "once":
        keepKey(this.#driver, effect, { owner: row.owner, task: row.number, context: null, seq: head.seq });
        break;
      default:
        // Leases and runs are part of the head.
        break;
    }
  }

  #applyToContext(context: number, key: Owner, effect: ContextEffect): void {
    switch (effect.effect) {
      case "contextState":
        this.#set("context_states", "context", context, effect.value);
        break;
      case "contextMessage":
        this.#driver
          .prepare("INSERT INTO replies (context, place, time, json) VALUES (?, ?, ?, ?)")
          .run(context, this.#scopes.place(context), effect.time, encodeJson(effect.json));
        this.#scopes.touch(context, effect.time);
        break;
      case "once": {
        const owner = this.#scopes.ensure(key.agent, key.owner);
        keepKey(this.#driver, effect, { owner, task: null, context, seq: 0 });
        this.#scopes.touch(context, effect.now);
        break;
      }
    }
  }

  #set(table: "checkpoints" | "context_states", column: "task" | "context", id: number, value: string | null): void {
    if (value === null) this.#driver.prepare(`DELETE FROM ${table} WHERE ${column} = ?`).run(id);
    else {
      this.#driver
        .prepare(
          `INSERT INTO ${table} (${column}, value) VALUES (?, ?) ON CONFLICT (${column}) DO UPDATE SET value = excluded.value`,
        )
        .run(id, encodeJson(value));
    }
  }

  #duplicate(owner: Owner, effects: readonly (TaskEffect | ContextEffect)[]): OnceRecord | undefined {
    const wanted = effects.filter((effect): effect is OnceEffect => effect.effect === "once");
    if (wanted.length === 0) return undefined;
    const scope = findScope(this.#driver, owner.agent, owner.owner);
    if (scope === undefined) return undefined;
    for (const { key, now } of wanted) {
      const known = findKey(this.#driver, scope, key, now);
      if (known !== undefined) return known;
    }
    return undefined;
  }
}

function scopesOf({ row }: Task): readonly number[] {
  return [row.agent, row.owner, row.context];
}

/** What an append may change, in the order of the statements. */
function changing({
  head,
  statusSeq,
  hasMetadata,
}: Pick<Task, "head" | "statusSeq" | "hasMetadata">): readonly Value[] {
  return [
    stateNumber(head.state),
    head.statusTime,
    statusSeq,
    head.seq,
    head.generation,
    head.fence,
    head.holder === undefined ? null : encodeName(head.holder),
    head.leaseUntil ?? null,
    head.run?.turn ?? null,
    head.run?.attempt ?? null,
    head.run?.input ?? null,
    hasMetadata ? 1 : 0,
  ];
}
