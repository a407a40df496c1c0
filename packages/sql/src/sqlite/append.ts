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
import {
  logKey,
  maxSeq,
  recordValueColumns,
  recordValues,
  stateNumber,
  ownColumns,
  ownTables,
  taskRow,
  type TaskRow,
} from "./rows.ts";
import { ScopeChanges, type ScopeIds } from "./scopes.ts";
import { encodeJson, encodeName } from "./text.ts";

// The columns that an append changes: those that no index has, those of the lists, those of the runs.
const plain = ["seq", "generation", "fence", "status_seq", "has_metadata", "holder", "run_attempt", "run_input"];
const placing = ["state", "status_time"];
const owning = ["lease_until", "run_turn"];

const updates = {
  plain: updateOf(plain),
  placing: updateOf([...plain, ...placing]),
  owning: updateOf([...plain, ...owning]),
  both: updateOf([...plain, ...placing, ...owning]),
};
const selectTask = `SELECT ${ownColumns} FROM ${ownTables} WHERE t.agent = ? AND t.id = ?`;
const insertTask = insertOf("tasks", ["agent", "owner", "context", "id", "first_seq", ...plain, ...placing, ...owning]);
const insertRecord = insertOf("log", ["key", "context", "place", "base", ...recordValueColumns]);

function updateOf(names: readonly string[]): string {
  return `UPDATE tasks SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE number = ?`;
}

function insertOf(table: string, names: readonly string[]): string {
  return `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
}

type ReadAppend = ReadItem | ContextAppend;

/** Looks at every item before the transaction begins. */
export function readItems(items: readonly AppendItem[]): readonly ReadAppend[] {
  return items.map((item) => ("task" in item ? readItem(item) : item));
}

/** Applies the items of one transaction. Each task is read once and written once, however many items it has. */
export function applyItems(driver: Driver, scopes: ScopeIds, items: readonly ReadAppend[]): readonly AppendOutcome[] {
  const writer = new Writer(driver, scopes);
  const outcomes = items.map((item) => ("item" in item ? writer.appendTask(item) : writer.appendContext(item)));
  writer.finish();
  return outcomes;
}

interface Task {
  readonly row: Pick<TaskRow, "number" | "agent" | "owner" | "context">;
  /** As the table has it. */
  stored: TaskHead;
  head: TaskHead;
  statusSeq: number;
  hasMetadata: boolean;
}

class Writer {
  readonly #driver: Driver;
  readonly #ids: ScopeIds;
  readonly #scopes: ScopeChanges;
  readonly #tasks = new Map<string, Task>();
  readonly #insertRecord: Statement;

  constructor(driver: Driver, ids: ScopeIds) {
    this.#driver = driver;
    this.#ids = ids;
    this.#scopes = new ScopeChanges(driver);
    this.#insertRecord = driver.prepare(insertRecord);
  }

  appendTask(read: ReadItem): AppendOutcome {
    const { item } = read;
    const found = this.#find(item.task);
    const own = found === "foreign" ? undefined : found;
    const once = this.#duplicate(item.task, item.effects ?? []);
    if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
    // A task of somebody else is there only for one who wants to make it again.
    if (found === "foreign" && item.create !== undefined) return { ok: false, reason: "exists" };
    const head = decide(read, own?.head);
    if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };
    if (head.seq > maxSeq) throw new RangeError(`A task has at most ${maxSeq} records`);

    const before = own?.head;
    const task = own === undefined ? this.#create(read, head) : this.#advance(own, read, head);
    this.#insertRecords(task, read);
    this.#scopes.move(scopesOf(task), before?.state, head.state);
    if (before?.statusTime !== head.statusTime) this.#scopes.touch(task.row.context, head.statusTime);
    for (const effect of item.effects ?? []) this.#applyToTask(task, effect);
    return { ok: true, seq: head.seq, fence: head.fence };
  }

  appendContext({ context: key, effects }: ContextAppend): AppendOutcome {
    const once = this.#duplicate(key, effects);
    if (once !== undefined) return { ok: false, reason: "duplicate", once };
    const context = this.#ids.ensure(key.agent, key.owner, key.contextId);
    for (const effect of effects) this.#applyToContext(context, key, effect);
    return { ok: true, seq: 0, fence: 0 };
  }

  finish(): void {
    for (const task of this.#tasks.values()) if (task.head !== task.stored) this.#update(task);
    this.#scopes.write();
  }

  /** An index is written anew wherever one of its columns is named: a chunk names none. */
  #update(task: Task): void {
    const { stored, head, row } = task;
    const moved = head.state !== stored.state || head.statusTime !== stored.statusTime;
    const turned = head.leaseUntil !== stored.leaseUntil || head.run?.turn !== stored.run?.turn;
    const sql = moved ? (turned ? updates.both : updates.placing) : turned ? updates.owning : updates.plain;
    const values = [...plainOf(task), ...(moved ? placingOf(head) : []), ...(turned ? owningOf(head) : [])];
    this.#driver.prepare(sql).run(...values, row.number);
  }

  #find({ agent, owner, taskId }: TaskKey): Task | "foreign" | undefined {
    const agentId = this.#ids.find(agent);
    if (agentId === undefined) return undefined;
    const ownerId = this.#ids.find(agent, owner) ?? 0;
    const known = this.#tasks.get(`${ownerId}/${taskId}`);
    if (known !== undefined) return known;
    const found = this.#driver.prepare(selectTask).get(agentId, encodeName(taskId));
    if (found === undefined) return undefined;
    const { head, statusSeq, hasMetadata, ...row } = taskRow(found, { agent, owner });
    if (row.owner !== ownerId) return "foreign";
    const task = { row, stored: head, head, statusSeq, hasMetadata };
    this.#tasks.set(`${ownerId}/${taskId}`, task);
    return task;
  }

  #advance(task: Task, read: ReadItem, head: TaskHead): Task {
    Object.assign(task, statusOf(read, head, task));
    task.head = head;
    return task;
  }

  #create(read: ReadItem, head: TaskHead): Task {
    const { agent: agentName, owner: ownerName, taskId } = head.task;
    const agent = this.#ids.ensure(agentName);
    const owner = this.#ids.ensure(agentName, ownerName);
    const context = this.#ids.ensure(agentName, ownerName, head.contextId);
    const state = { stored: head, head, ...statusOf(read, head, { statusSeq: 0, hasMetadata: false }) };
    const values = [...plainOf(state), ...placingOf(head), ...owningOf(head)];
    const { lastId: number } = this.#driver
      .prepare(insertTask)
      .run(agent, owner, context, encodeName(taskId), 1, ...values);
    const task = { row: { number, agent, owner, context }, ...state };
    this.#tasks.set(`${owner}/${taskId}`, task);
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
        const owner = this.#ids.ensure(key.agent, key.owner);
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
    const scope = this.#ids.find(owner.agent, owner.owner);
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

type Status = Pick<Task, "statusSeq" | "hasMetadata">;

/** Where the last status stands after an item, and whether any brought metadata. */
function statusOf({ records }: ReadItem, { seq }: TaskHead, before: Status): Status {
  const last = records.findLastIndex(({ record }) => record.kind === "statusUpdate");
  return {
    statusSeq: last < 0 ? before.statusSeq : seq - records.length + last + 1,
    hasMetadata: before.hasMetadata || records.some((read) => read.hasMetadata),
  };
}

function plainOf({ head, statusSeq, hasMetadata }: Pick<Task, "head" | "statusSeq" | "hasMetadata">): readonly Value[] {
  const { seq, generation, fence, holder, run } = head;
  const name = holder === undefined ? null : encodeName(holder);
  return [seq, generation, fence, statusSeq, hasMetadata ? 1 : 0, name, run?.attempt ?? null, run?.input ?? null];
}

function placingOf({ state, statusTime }: TaskHead): readonly Value[] {
  return [stateNumber(state), statusTime];
}

function owningOf({ leaseUntil, run }: TaskHead): readonly Value[] {
  return [leaseUntil ?? null, run?.turn ?? null];
}
