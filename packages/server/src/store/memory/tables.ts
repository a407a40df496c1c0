import { isTerminal, placed } from "@parley/a2a/internal/model/index";
import type {
  ContextKey,
  OnceEffect,
  OnceRecord,
  Owner,
  Scope,
  StoredAct,
  StoreNote,
  StrandedRuns,
  TaskHead,
} from "../port.ts";
import type { ReadItem } from "../transition.ts";
import { MemoryFeatures } from "./features.ts";
import { oldestFirst, SortedList, TaskIndex, type Place } from "./lists.ts";
import {
  compactTask,
  dueOf,
  getOrMake,
  indexesOf,
  joined,
  type AgentRows,
  type Due,
  type OwnerRows,
  type StoredContext,
  type StoredKey,
  type StoredMessage,
  type StoredTask,
} from "./rows.ts";

/** Compares numbers. Does not subtract them, which would be wrong for infinite values. */
function compare(a = 0, b = 0): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The empty list that new tasks share. */
const none: readonly never[] = Object.freeze([]);

function byPlace(a: Pick<StoredMessage, "place">, b: Pick<StoredMessage, "place">): number {
  return a.place - b.place;
}

/** The run that has been free the longest comes first. */
function byDue(a: Due, b: Due): number {
  return compare(a.due, b.due) || a.number - b.number;
}

type Idle = Pick<StoredContext, "touched" | "serial">;
type Ending = Pick<StoredKey, "until" | "serial">;

/** The data of the memory store and its indexes. */
export class MemoryTables {
  readonly agents: Map<string, AgentRows> = new Map();
  /** Terminal tasks, oldest status first. */
  readonly terminal: SortedList<Place, StoredTask> = new SortedList(oldestFirst);
  /** Terminal tasks that were not compacted. */
  readonly loose: SortedList<Place, StoredTask> = new SortedList(oldestFirst);
  /** Contexts without a task, by the time of their last change. */
  readonly idle: SortedList<Idle, StoredContext> = new SortedList(
    (a, b) => compare(a.touched, b.touched) || a.serial - b.serial,
  );
  /** Idempotency keys that expire, by the time of expiry. */
  readonly ending: SortedList<Ending, StoredKey> = new SortedList(
    (a, b) => compare(a.until, b.until) || a.serial - b.serial,
  );
  readonly features: MemoryFeatures = new MemoryFeatures();
  /** Notes by key. */
  readonly notes: Map<string, StoreNote> = new Map();
  /** Standing orders by name. */
  readonly orders: Map<string, string> = new Map();
  /** The audit of operators, oldest first. */
  readonly acts: StoredAct[] = [];
  /** Called with each task that is deleted. */
  onDelete: ((task: StoredTask) => void) | undefined;
  #serial = 0;

  owner({ agent, owner }: Owner): OwnerRows | undefined {
    return this.agents.get(agent)?.owners.get(owner);
  }

  /** The first runs of some agents after a position, in order. */
  runsOf(agents: readonly string[], after: Due | undefined, limit: number): readonly StoredTask[] {
    return [...new Set(agents)]
      .flatMap((agent) => this.agents.get(agent)?.runs.after(after, limit) ?? [])
      .sort(byDue)
      .slice(0, limit);
  }

  /** Counts the free runs of other agents. */
  strandedRuns(agents: readonly string[], now: number): readonly StrandedRuns[] {
    const found: StrandedRuns[] = [];
    for (const [agent, { runs }] of this.agents) {
      if (agents.includes(agent)) continue;
      const free = runs.after(undefined, Infinity).filter(({ due = 0 }) => due <= now);
      if (free.length > 0) found.push({ agent, tasks: free.length });
    }
    return found;
  }

  /** The record of an idempotency key that has not expired. */
  key(owner: Owner, key: string, now: number): OnceRecord | undefined {
    const found = this.owner(owner)?.keys.get(key);
    return found !== undefined && found.until > now ? found.record : undefined;
  }

  #next(): number {
    this.#serial += 1;
    return this.#serial;
  }

  find(scope: Scope, taskId: string): StoredTask | undefined {
    const task = this.agents.get(scope.agent)?.tasks.get(taskId);
    return task !== undefined && (scope.owner === undefined || scope.owner === task.head.task.owner) ? task : undefined;
  }

  /** Whether a task is still stored. */
  has(task: StoredTask): boolean {
    return task.context.owner.agent.tasks.get(task.head.task.taskId) === task;
  }

  /** The indexes of a scope. Contexts of several owners may have the same name; a scope without an owner has all of these contexts. */
  indexesOf(scope: Scope, contextId: string | undefined): readonly TaskIndex<StoredTask>[] {
    const agent = this.agents.get(scope.agent);
    if (agent === undefined) return [];
    if (scope.owner === undefined && contextId === undefined) return [agent.index];
    const owner = scope.owner === undefined ? undefined : agent.owners.get(scope.owner);
    const owners = scope.owner === undefined ? [...agent.owners.values()] : owner === undefined ? [] : [owner];
    return owners.flatMap(({ index, contexts }) => {
      const found = contextId === undefined ? index : contexts.get(contextId)?.index;
      return found === undefined ? [] : [found];
    });
  }

  #ownerRows({ agent, owner: name }: Owner): OwnerRows {
    const rows = getOrMake(this.agents, agent, (): AgentRows => ({
      name: agent,
      tasks: new Map(),
      index: new TaskIndex(),
      runs: new SortedList(byDue),
      owners: new Map(),
    }));
    return getOrMake(rows.owners, name, () => ({
      name,
      agent: rows,
      index: new TaskIndex(),
      contexts: new Map(),
      keys: new Map(),
    }));
  }

  ensureContext({ agent, owner: name, contextId }: ContextKey): StoredContext {
    const owner = this.#ownerRows({ agent, owner: name });
    return getOrMake(owner.contexts, contextId, () => {
      const context: StoredContext = {
        serial: this.#next(),
        id: contextId,
        owner,
        index: new TaskIndex(),
        messages: new SortedList(byPlace),
        keys: none,
        tasks: 0,
        touched: 0,
        state: undefined,
      };
      this.idle.add(context);
      return context;
    });
  }

  create(read: ReadItem, head: TaskHead): StoredTask {
    const context = this.ensureContext({ contextId: head.contextId, ...head.task });
    if (context.tasks === 0) this.idle.delete(context);
    context.tasks += 1;
    const task: StoredTask = {
      number: this.#next(),
      context,
      keys: none,
      messages: none,
      head,
      state: head.state,
      statusTime: head.statusTime,
      due: dueOf(head),
      checkpoint: undefined,
      taskState: undefined,
      records: none,
      base: read.item.records[0]?.json ?? "{}",
      status: undefined,
      metadata: none,
      artifacts: none,
      starts: none,
    };
    context.owner.agent.tasks.set(head.task.taskId, task);
    this.#add(task, read);
    this.#place(task);
    return task;
  }

  change(task: StoredTask, read: ReadItem, head: TaskHead): StoredTask {
    this.#add(task, read);
    const due = dueOf(head);
    const stays = task.state === head.state && task.statusTime === head.statusTime && task.due === due;
    if (!stays) this.#displace(task);
    task.head = head;
    task.state = head.state;
    task.statusTime = head.statusTime;
    task.due = due;
    if (!stays) this.#place(task);
    return task;
  }

  /** Adds a message at the end of a conversation. */
  say(context: StoredContext, event: StoredMessage["event"], task?: StoredTask, seq = 0): StoredMessage {
    const message = { place: this.#next(), task, seq, event };
    context.messages.add(message);
    return message;
  }

  /** Adds a task to its lists. */
  #place(task: StoredTask): void {
    for (const index of indexesOf(task)) index.add(task);
    if (task.due !== undefined) task.context.owner.agent.runs.add(task);
    if (isTerminal(task.state)) {
      this.terminal.add(task);
      if (task.head.firstSeq < task.head.seq) this.loose.add(task);
    }
    task.context.touched = Math.max(task.context.touched, task.statusTime);
  }

  /** Removes a task from its lists. Members that define the order may only change while a task is in no list. */
  #displace(task: StoredTask): void {
    for (const index of indexesOf(task)) index.delete(task);
    task.context.owner.agent.runs.delete(task);
    this.terminal.delete(task);
    this.loose.delete(task);
  }

  #add(task: StoredTask, { records }: ReadItem): void {
    for (const { record, inHistory, hasMetadata } of records) {
      const kept = placed(record, task.records.length + task.head.firstSeq);
      task.records = joined(task.records, kept);
      if (kept.kind === "statusUpdate") task.status = kept.json;
      if (kept.kind === "artifactUpdate") task.artifacts = joined(task.artifacts, kept.json);
      if (hasMetadata) task.metadata = joined(task.metadata, kept.json);
      if (inHistory) task.messages = joined(task.messages, this.say(task.context, kept, task, kept.seq));
    }
  }

  touch(context: StoredContext, time: number): void {
    if (time <= context.touched) return;
    if (context.tasks === 0) this.idle.delete(context);
    context.touched = time;
    if (context.tasks === 0) this.idle.add(context);
  }

  remember(
    owner: OwnerRows,
    holder: Pick<StoredTask, "keys">,
    { key, hash, until = Infinity, answer }: OnceEffect,
    place: Pick<OnceRecord, "taskId" | "seq">,
  ): void {
    const before = owner.keys.get(key);
    if (before !== undefined) this.forget(before);
    const record = Object.freeze({ key, hash, ...place, ...(answer !== undefined && { answer }) });
    const stored = { serial: this.#next(), record, until, owner, holder };
    owner.keys.set(key, stored);
    holder.keys = joined(holder.keys, stored);
    if (until !== Infinity) this.ending.add(stored);
  }

  forget(key: StoredKey): void {
    this.#release(key);
    key.holder.keys = key.holder.keys.filter((each) => each !== key);
  }

  #release(key: StoredKey): void {
    key.owner.keys.delete(key.record.key);
    this.ending.delete(key);
  }

  delete(task: StoredTask): void {
    this.#displace(task);
    task.context.owner.agent.tasks.delete(task.head.task.taskId);
    for (const key of task.keys) this.#release(key);
    this.features.drop(task);
    this.onDelete?.(task);
    for (const message of task.messages) task.context.messages.delete(message);
    task.context.tasks -= 1;
    if (task.context.tasks === 0) this.idle.add(task.context);
  }

  drop(context: StoredContext): void {
    this.idle.delete(context);
    context.owner.contexts.delete(context.id);
    for (const key of context.keys) this.#release(key);
    const { agent, contexts, name } = context.owner;
    if (contexts.size === 0) agent.owners.delete(name);
  }

  /** Compacts a task, only once. Skips tasks of more than `most` bytes. */
  compact(task: StoredTask, most: number): void {
    this.loose.delete(task);
    compactTask(task, most);
  }
}
