import { isTerminal } from "@parley/a2a/model";
import {
  baseOf,
  decide,
  type AppendOutcome,
  type ContextAppend,
  type ContextEffect,
  type OnceEffect,
  type OnceRecord,
  type Owner,
  type ReadItem,
  type TaskAppend,
  type TaskEffect,
  type TaskHead,
  type TaskKey,
} from "@parley/server/internal/store/index";
import type { BoundedMap } from "@parley/a2a/internal/base/bounded-map";
import type { Driver } from "./driver.ts";
import { applyFeature, refusalOf } from "./features.ts";
import { Keys } from "./keys.ts";
import {
  count,
  encodeJson,
  encodeName,
  insertInto,
  int,
  logKey,
  ManyRows,
  maxSeq,
  optional,
  ownColumns,
  ownTables,
  ownWidth,
  recordValueColumns,
  recordValues,
  taskRow,
} from "./rows.ts";
import { ScopeChanges, type ScopeIds } from "./scopes.ts";
import { indexTask } from "./search-index.ts";
import { isPause, statusOf, type KnownTask } from "../shared/known-task.ts";
import { TaskWriter, type WriterMemory } from "./task-writer.ts";
import { setContextState, setValues } from "./values.ts";

const selectTask = `SELECT ${ownColumns}, EXISTS (SELECT 1 FROM features WHERE task = t.number)
  FROM ${ownTables} WHERE t.agent = ? AND t.id = ?`;
/** The context of a new task, and whether its id or its key exists already. */
const selectSite = `SELECT (SELECT id FROM scopes WHERE parent = ? AND name = ?),
  EXISTS (SELECT 1 FROM tasks WHERE agent = ? AND id = ?) OR EXISTS (SELECT 1 FROM keys WHERE owner = ? AND name = ?)`;
const insertRecords = insertInto("log", ["key", "context", "place", "base", ...recordValueColumns]);
const insertReplies = insertInto("replies", ["context", "place", "time", "json"]);

type ReadAppend = ReadItem | ContextAppend;

/** Applies the items of one transaction. Each task is read and written once, whatever its number of items. */
export function applyItems(
  driver: Driver,
  memory: WriterMemory,
  items: readonly ReadAppend[],
): readonly AppendOutcome[] {
  memory.check();
  const batch = new Batch(driver, memory);
  const outcomes = items.map((item) => ("item" in item ? batch.appendTask(item) : batch.appendContext(item)));
  batch.finish();
  return outcomes;
}

/** The place of a new task: its context, if that exists. */
interface Site {
  readonly context: number | undefined;
}

/** The changes of one transaction. Rows are collected and written by `finish`. */
class Batch {
  readonly #driver: Driver;
  readonly #ids: ScopeIds;
  readonly #known: BoundedMap<KnownTask>;
  readonly #scopes: ScopeChanges;
  readonly #keys: Keys;
  readonly #taskRows: TaskWriter;
  readonly #newRecords: ManyRows;
  readonly #newReplies: ManyRows;
  /** Tasks whose history has grown, where texts are indexed. */
  readonly #grown: Set<KnownTask> | undefined;
  /** The number of the next task. */
  #next: number | undefined;
  /** Tasks that this batch has found or created. */
  readonly #tasks = new Map<string, KnownTask>();

  constructor(driver: Driver, memory: WriterMemory) {
    const { scopes, tasks } = memory;
    this.#driver = driver;
    this.#ids = scopes;
    this.#known = tasks;
    this.#scopes = new ScopeChanges(driver);
    this.#keys = new Keys(driver);
    this.#taskRows = new TaskWriter(driver);
    this.#newRecords = new ManyRows(driver, insertRecords);
    this.#newReplies = new ManyRows(driver, insertReplies);
    this.#grown = memory.indexes ? new Set() : undefined;
  }

  appendTask(read: ReadItem): AppendOutcome {
    const { item } = read;
    const site = this.#siteOf(item);
    const found = site ? undefined : this.#find(item.task);
    const own = found === "foreign" ? undefined : found;
    const once = site ? undefined : this.#duplicate(item.task, item.effects ?? []);
    if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
    // To anyone but its owner a task does not exist, except that its id cannot be used again.
    if (found === "foreign" && item.create !== undefined) return { ok: false, reason: "exists" };
    const head = decide(read, own?.head);
    if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };
    const reason = refusalOf(this.#driver, own, read.features);
    if (reason !== undefined) return { ok: false, reason, ...(own && { head: own.head }) };
    if (head.seq > maxSeq) throw new RangeError(`A task has at most ${maxSeq} records`);

    const before = own?.head;
    const task = own === undefined ? this.#create(read, head, site) : this.#advance(own, read, head);
    this.#addRecords(task, read);
    this.#scopes.move(task.row, before, head);
    for (const effect of item.effects ?? []) this.#applyToTask(task, effect);
    setValues(this.#driver, task.row.number, item.effects ?? [], own === undefined);
    return { ok: true, seq: head.seq, fence: head.fence };
  }

  appendContext({ context: key, effects }: ContextAppend): AppendOutcome {
    const once = this.#duplicate(key, effects);
    if (once !== undefined) return { ok: false, reason: "duplicate", once };
    const context = this.#context(key.agent, key.owner, key.contextId);
    for (const effect of effects) this.#applyToContext(context, key, effect);
    return { ok: true, seq: 0, fence: 0 };
  }

  finish(): void {
    for (const [key, task] of this.#tasks) {
      this.#taskRows.write(task);
      // Most finished tasks are never written again.
      if (!isTerminal(task.head.state)) this.#known.set(key, task);
    }
    this.#taskRows.end();
    this.#newRecords.write();
    this.#newReplies.write();
    this.#keys.write();
    this.#scopes.write();
    // After their records are written.
    for (const { row, head } of this.#grown ?? []) {
      const { state, seq, firstSeq } = head;
      indexTask(this.#driver, { number: row.number, owner: row.owner, seq, isActive: !isPause(state), firstSeq });
    }
  }

  #find({ agent, owner, taskId }: TaskKey): KnownTask | "foreign" | undefined {
    const agentId = this.#ids.find(agent);
    if (agentId === undefined) return undefined;
    // Ids are unique within an agent. Tasks that this batch created are not in the table yet.
    const key = `${agentId}/${taskId}`;
    const task = this.#tasks.get(key) ?? this.#known.get(key) ?? this.#select(agentId, { agent, owner, taskId });
    if (task === undefined) return undefined;
    if (task.row.owner !== this.#ids.find(agent, owner)) return "foreign";
    this.#tasks.set(key, task);
    return task;
  }

  #select(agentId: number, { agent, owner, taskId }: TaskKey): KnownTask | undefined {
    const found = this.#driver.prepare(selectTask).get(agentId, encodeName(taskId));
    if (found === undefined) return undefined;
    const { head, statusSeq, hasMetadata, ...row } = taskRow(found, { agent, owner });
    const hasFeatures = int(found, ownWidth) === 1;
    return { row, stored: head, storedStatus: statusSeq, head, statusSeq, hasMetadata, hasFeatures };
  }

  #advance(task: KnownTask, read: ReadItem, head: TaskHead): KnownTask {
    Object.assign(task, statusOf(read, head, task));
    task.head = head;
    return task;
  }

  /**
   * The place of a new task if neither its id nor its key exists, which is nearly always so: one statement finds that and the
   * context, in 3 µs instead of 6 µs for three statements.
   */
  #siteOf({ task, create, effects = [] }: TaskAppend): Site | undefined {
    if (create === undefined) return undefined;
    const [once, ...more] = effects.filter((effect) => effect.effect === "once");
    const agent = this.#ids.find(task.agent);
    const owner = this.#ids.find(task.agent, task.owner);
    if (once === undefined || more.length > 0 || agent === undefined || owner === undefined) return undefined;
    if (this.#tasks.has(`${agent}/${task.taskId}`) || this.#keys.has(owner, once.key)) return undefined;
    const row = this.#driver
      .prepare(selectSite)
      .get(owner, encodeName(create.contextId), agent, encodeName(task.taskId), owner, encodeName(once.key));
    if (row === undefined || int(row, 1) !== 0) return undefined;
    const context = this.#scopes.madeHere(owner, create.contextId) ?? optional(row, 0);
    return { context: typeof context === "number" ? context : undefined };
  }

  #create(read: ReadItem, head: TaskHead, site: Site | undefined): KnownTask {
    const { agent: agentName, owner: ownerName, taskId } = head.task;
    const known = site === undefined ? this.#context(agentName, ownerName, head.contextId) : site.context;
    const agent = this.#ids.ensure(agentName);
    const owner = this.#ids.ensure(agentName, ownerName);
    const context = known ?? this.#scopes.make(owner, head.contextId);
    this.#next ??= 1 + count(this.#driver.prepare("SELECT coalesce(max(number), 0) FROM tasks").get());
    const row = { number: this.#next, agent, owner, context };
    this.#next += 1;
    const status = statusOf(read, head, { statusSeq: 0, hasMetadata: false });
    const task = { row, stored: undefined, storedStatus: 0, head, ...status, hasFeatures: false };
    this.#tasks.set(`${agent}/${taskId}`, task);
    return task;
  }

  /** The number of a context, which is created if it is missing. */
  #context(agent: string, owner: string, name: string): number {
    let parent = this.#ids.find(agent, owner);
    if (parent === undefined) {
      // The owner gets the next number of the table, which lacks the contexts of this batch until they are written.
      this.#scopes.write();
      parent = this.#ids.ensure(agent, owner);
    }
    return this.#scopes.madeHere(parent, name) ?? this.#ids.find(agent, owner, name) ?? this.#scopes.make(parent, name);
  }

  #addRecords(task: KnownTask, { records }: ReadItem): void {
    const { number, context } = task.row;
    let seq = task.head.seq - records.length;
    for (const read of records) {
      seq += 1;
      if (read.inHistory || isPause(read.record.state)) this.#grown?.add(task);
      const place = read.inHistory ? this.#scopes.place(context) : null;
      const first = seq === 1 ? encodeJson(baseOf(read.record)) : null;
      const key = logKey(number, seq);
      this.#newRecords.add(key, place === null ? null : context, place, first, ...recordValues(read));
    }
  }

  #applyToTask(task: KnownTask, effect: TaskEffect): void {
    switch (effect.effect) {
      case "contextState":
        setContextState(this.#driver, task.row.context, effect.value);
        break;
      case "once":
        this.#keys.addToTask(effect, task.row, task.head);
        break;
      case "feature":
        applyFeature(this.#driver, task, effect);
        break;
      default:
        // Leases and runs are in the head, and `setValues` writes the checkpoint and the state.
        break;
    }
  }

  #applyToContext(context: number, key: Owner, effect: ContextEffect): void {
    switch (effect.effect) {
      case "contextState":
        setContextState(this.#driver, context, effect.value);
        break;
      case "contextMessage":
        this.#newReplies.add(context, this.#scopes.place(context), effect.time, encodeJson(effect.json));
        this.#scopes.touch(context, effect.time);
        break;
      case "once": {
        const owner = this.#ids.ensure(key.agent, key.owner);
        this.#keys.addToContext(effect, owner, context);
        this.#scopes.touch(context, Math.ceil(effect.now));
        break;
      }
    }
  }

  #duplicate(owner: Owner, effects: readonly (TaskEffect | ContextEffect)[]): OnceRecord | undefined {
    const wanted = effects.filter((effect): effect is OnceEffect => effect.effect === "once");
    if (wanted.length === 0) return undefined;
    const scope = this.#ids.find(owner.agent, owner.owner);
    if (scope === undefined) return undefined;
    for (const { key, now } of wanted) {
      const known = this.#keys.find(scope, key, now);
      if (known !== undefined) return known;
    }
    return undefined;
  }
}
