import { isTerminal, type LogRecord, type Message } from "../model/index.ts";
import { assemble, compact, messagesOf, type StoredEvent, type TaskPieces } from "./assemble.ts";
import type {
  AppendItem,
  AppendOutcome,
  ContextAppend,
  ContextEffect,
  ContextKey,
  Conversation,
  ListQuery,
  LoadOptions,
  LogPage,
  OnceEffect,
  OnceRecord,
  Owner,
  ReadOptions,
  Scope,
  Snapshot,
  Store,
  SweepOptions,
  SweepReport,
  TaskEffect,
  TaskHead,
  TaskPage,
} from "./port.ts";
import { SortedList } from "./sorted-list.ts";
import { newestFirst, oldestFirst, TaskIndex } from "./task-index.ts";
import { decide, readItem, type ReadItem } from "./transition.ts";
import { unavailable } from "./unavailable.ts";

/**
 * A store in the memory of this process: everything is gone when the process ends. For tests, for development, and for
 * agents whose tasks need not outlive them. It grows until `sweep` deletes.
 */
export function memoryStore(): Store {
  return new MemoryStore();
}

interface AgentRoom {
  readonly tasks: Map<string, StoredTask>;
  readonly index: TaskIndex<StoredTask>;
  readonly owners: Map<string, OwnerRoom>;
}

interface OwnerRoom {
  readonly name: string;
  readonly agent: AgentRoom;
  readonly index: TaskIndex<StoredTask>;
  readonly contexts: Map<string, StoredContext>;
  readonly keys: Map<string, StoredKey>;
}

interface StoredContext {
  readonly serial: number;
  readonly id: string;
  readonly owner: OwnerRoom;
  readonly index: TaskIndex<StoredTask>;
  readonly messages: SortedList<{ readonly place: number }, StoredMessage>;
  /** Those that live with the context, not with a task of it. */
  readonly keys: Set<StoredKey>;
  tasks: number;
  touched: number;
  state: string | undefined;
}

interface StoredMessage {
  readonly place: number;
  readonly time: number;
  readonly event: StoredEvent;
}

interface StoredKey {
  readonly serial: number;
  readonly record: OnceRecord;
  readonly until: number;
  readonly owner: OwnerRoom;
  /** What it goes with. */
  readonly keys: Set<StoredKey>;
}

interface StoredTask extends Pick<TaskHead, "state" | "statusTime"> {
  readonly number: number;
  readonly context: StoredContext;
  readonly keys: Set<StoredKey>;
  readonly messages: StoredMessage[];
  head: TaskHead;
  state: TaskHead["state"];
  statusTime: number;
  /** When its run may be taken over; of a task without a run, nothing. */
  due: number | undefined;
  checkpoint: string | undefined;
  /** What `read` gives, without gaps. */
  records: LogRecord[];
  base: string;
  status: string | undefined;
  metadata: string[];
  artifacts: string[];
}

/** Unlike a difference, right for infinite values too. */
function compare(a = 0, b = 0): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

interface Due {
  readonly due: number | undefined;
  readonly number: number;
}

interface Ageing {
  readonly serial: number;
  readonly touched: number;
}

class MemoryStore implements Store {
  readonly #agents = new Map<string, AgentRoom>();
  readonly #runs = new SortedList<Due, StoredTask>((a, b) => compare(a.due, b.due) || a.number - b.number);
  readonly #terminal = new SortedList<Pick<StoredTask, "number" | "statusTime">, StoredTask>(oldestFirst);
  readonly #loose = new SortedList<Pick<StoredTask, "number" | "statusTime">, StoredTask>(oldestFirst);
  readonly #idle = new SortedList<Ageing, StoredContext>(
    (a, b) => compare(a.touched, b.touched) || a.serial - b.serial,
  );
  readonly #ending = new SortedList<Pick<StoredKey, "until" | "serial">, StoredKey>(
    (a, b) => compare(a.until, b.until) || a.serial - b.serial,
  );
  #serial = 0;
  #closed = false;

  async append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    this.#check();
    // Whatever cannot be understood is thrown here, before the first item changes anything.
    const read = items.map((item) => ("task" in item ? readItem(item) : item));
    return read.map((item) => ("item" in item ? this.#appendTask(item) : this.#appendContext(item)));
  }

  async head(scope: Scope, taskId: string): Promise<TaskHead | undefined> {
    this.#check();
    const task = this.#find(scope, taskId);
    return task && withCheckpoint(task);
  }

  async load(scope: Scope, taskId: string, options: LoadOptions): Promise<Snapshot | undefined> {
    this.#check();
    const task = this.#find(scope, taskId);
    return task && assemble(piecesOf(task, options.history), options);
  }

  async read(scope: Scope, taskId: string, { after, limit, kinds }: ReadOptions): Promise<LogPage | undefined> {
    this.#check();
    const task = this.#find(scope, taskId);
    if (task === undefined) return undefined;
    const records: LogRecord[] = [];
    for (
      let i = Math.max(0, after - task.head.firstSeq + 1);
      i < task.records.length && records.length < limit;
      i += 1
    ) {
      const record = task.records[i];
      if (record !== undefined && (kinds === undefined || kinds.includes(record.kind))) records.push(record);
    }
    return { records, head: task.head };
  }

  async list(scope: Scope, query: ListQuery): Promise<TaskPage> {
    this.#check();
    const indexes = this.#indexesOf(scope, query.contextId);
    const found = indexes
      .flatMap((index) => index.page(query))
      .sort(newestFirst)
      .slice(0, query.limit + 1);
    const page = found.slice(0, query.limit);
    const last = page.at(-1);
    const tasks = page.map((task) => assemble(piecesOf(task, query.history), query));
    const total = indexes.reduce((sum, index) => sum + index.count(query), 0);
    if (found.length <= query.limit || last === undefined) return { tasks, total };
    return { tasks, total, next: { statusTime: last.statusTime, number: last.number } };
  }

  async once(owner: Owner, key: string, now: number): Promise<OnceRecord | undefined> {
    this.#check();
    const found = this.#agents.get(owner.agent)?.owners.get(owner.owner)?.keys.get(key);
    return found !== undefined && found.until > now ? found.record : undefined;
  }

  async conversation({ agent, owner, contextId }: ContextKey, limit: number): Promise<Conversation> {
    this.#check();
    const context = this.#agents.get(agent)?.owners.get(owner)?.contexts.get(contextId);
    if (context === undefined) return { messages: [] };
    const messages = context.messages
      .last(limit)
      .flatMap(({ time, event }) => messagesOf(event).map((json) => ({ time, message: JSON.parse(json) as Message })));
    return {
      ...(context.state !== undefined && { state: context.state }),
      messages: messages.slice(Math.max(0, messages.length - limit)),
    };
  }

  async claimable(now: number, limit: number): Promise<readonly TaskHead[]> {
    this.#check();
    return this.#runs
      .after(undefined, limit)
      .filter((task) => (task.due ?? 0) <= now)
      .map(withCheckpoint);
  }

  async sweep({ deleteBefore = -Infinity, compactBefore = -Infinity, now, limit }: SweepOptions): Promise<SweepReport> {
    this.#check();
    const keys = drain(
      this.#ending,
      limit,
      (key) => key.until <= now,
      (key) => this.#forget(key),
    );
    const deleted = drain(
      this.#terminal,
      limit,
      (task) => task.statusTime < deleteBefore,
      (task) => this.#delete(task),
    );
    const contexts = drain(
      this.#idle,
      limit,
      (context) => context.touched < deleteBefore,
      (context) => this.#drop(context),
    );
    const compacted = drain(
      this.#loose,
      limit - deleted.count,
      (task) => task.statusTime < compactBefore,
      (task) => this.#compact(task),
    );
    return {
      deleted: deleted.count,
      compacted: compacted.count,
      more: keys.more || deleted.more || contexts.more || compacted.more,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#agents.clear();
  }

  #check(): void {
    if (this.#closed) throw unavailable("The store is closed");
  }

  #next(): number {
    this.#serial += 1;
    return this.#serial;
  }

  #find(scope: Scope, taskId: string): StoredTask | undefined {
    const task = this.#agents.get(scope.agent)?.tasks.get(taskId);
    return task !== undefined && (scope.owner === undefined || scope.owner === task.head.task.owner) ? task : undefined;
  }

  /** What a query may see. Contexts of one name belong to their owners; an operator sees them all. */
  #indexesOf(scope: Scope, contextId: string | undefined): readonly TaskIndex<StoredTask>[] {
    const agent = this.#agents.get(scope.agent);
    if (agent === undefined) return [];
    if (scope.owner === undefined && contextId === undefined) return [agent.index];
    const owner = scope.owner === undefined ? undefined : agent.owners.get(scope.owner);
    const owners = scope.owner === undefined ? [...agent.owners.values()] : owner === undefined ? [] : [owner];
    return owners.flatMap(({ index, contexts }) => {
      const found = contextId === undefined ? index : contexts.get(contextId)?.index;
      return found === undefined ? [] : [found];
    });
  }

  #appendTask(read: ReadItem): AppendOutcome {
    const { item } = read;
    const known = this.#agents.get(item.task.agent)?.tasks.get(item.task.taskId);
    const own = known?.head.task.owner === item.task.owner ? known : undefined;
    const once = this.#duplicate(item.task, item.effects ?? []);
    if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
    // A task of somebody else is there only for one who wants to make it again.
    const head = decide(read, item.create === undefined ? own?.head : known?.head);
    if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };

    if (own === undefined) {
      const made = this.#create(this.#ownerRoom(item.task), read, head);
      this.#add(made, read);
      this.#place(made);
      for (const effect of item.effects ?? []) this.#applyToTask(made, effect);
    } else {
      this.#add(own, read);
      this.#advance(own, head);
      for (const effect of item.effects ?? []) this.#applyToTask(own, effect);
    }
    return { ok: true, seq: head.seq, fence: head.fence };
  }

  #appendContext({ context: key, effects }: ContextAppend): AppendOutcome {
    const once = this.#duplicate(key, effects);
    if (once !== undefined) return { ok: false, reason: "duplicate", once };
    const context = this.#contextOf(this.#ownerRoom(key), key.contextId);
    for (const effect of effects) this.#applyToContext(context, effect);
    return { ok: true, seq: 0, fence: 0 };
  }

  #applyToTask(task: StoredTask, effect: TaskEffect): void {
    switch (effect.effect) {
      case "checkpoint":
        task.checkpoint = effect.value ?? undefined;
        break;
      case "once":
        this.#remember(task.context.owner, task.keys, effect, { taskId: task.head.task.taskId, seq: task.head.seq });
        break;
      case "contextState":
        task.context.state = effect.value ?? undefined;
        break;
      default:
        // Leases and runs are part of the head.
        break;
    }
  }

  #applyToContext(context: StoredContext, effect: ContextEffect): void {
    switch (effect.effect) {
      case "contextState":
        context.state = effect.value ?? undefined;
        break;
      case "contextMessage": {
        const event = { kind: "message", json: effect.json } as const;
        context.messages.add({ place: this.#next(), time: effect.time, event });
        this.#touch(context, effect.time);
        break;
      }
      case "once":
        this.#remember(context.owner, context.keys, effect, { seq: 0 });
        this.#touch(context, effect.now);
        break;
    }
  }

  #ownerRoom({ agent, owner: name }: Owner): OwnerRoom {
    const room = getOrMake<AgentRoom>(this.#agents, agent, () => ({
      tasks: new Map(),
      index: new TaskIndex(),
      owners: new Map(),
    }));
    return getOrMake(room.owners, name, () => ({
      name,
      agent: room,
      index: new TaskIndex(),
      contexts: new Map(),
      keys: new Map(),
    }));
  }

  #contextOf(owner: OwnerRoom, id: string): StoredContext {
    return getOrMake(owner.contexts, id, () => {
      const context: StoredContext = {
        serial: this.#next(),
        id,
        owner,
        index: new TaskIndex(),
        messages: new SortedList((a, b) => a.place - b.place),
        keys: new Set(),
        tasks: 0,
        touched: -Infinity,
        state: undefined,
      };
      this.#idle.add(context);
      return context;
    });
  }

  #create(owner: OwnerRoom, { base = "{}" }: ReadItem, head: TaskHead): StoredTask {
    const context = this.#contextOf(owner, head.contextId);
    if (context.tasks === 0) this.#idle.delete(context);
    context.tasks += 1;
    const task: StoredTask = {
      number: this.#next(),
      context,
      keys: new Set(),
      messages: [],
      head,
      state: head.state,
      statusTime: head.statusTime,
      due: dueOf(head),
      checkpoint: undefined,
      records: [],
      base,
      status: undefined,
      metadata: [],
      artifacts: [],
    };
    owner.agent.tasks.set(head.task.taskId, task);
    return task;
  }

  #advance(task: StoredTask, head: TaskHead): void {
    const due = dueOf(head);
    const stays = task.state === head.state && task.statusTime === head.statusTime && task.due === due;
    if (!stays) this.#displace(task);
    task.head = head;
    task.state = head.state;
    task.statusTime = head.statusTime;
    task.due = due;
    if (!stays) this.#place(task);
  }

  /** Puts a task into every list that it belongs to. */
  #place(task: StoredTask): void {
    for (const index of indexesOf(task)) index.add(task);
    if (task.due !== undefined) this.#runs.add(task);
    if (isTerminal(task.state)) {
      this.#terminal.add(task);
      if (task.head.firstSeq < task.head.seq) this.#loose.add(task);
    }
    task.context.touched = Math.max(task.context.touched, task.statusTime);
  }

  /** Takes it out again: what a task is ordered by changes only while it is in no list. */
  #displace(task: StoredTask): void {
    for (const index of indexesOf(task)) index.delete(task);
    this.#runs.delete(task);
    this.#terminal.delete(task);
    this.#loose.delete(task);
  }

  #add(task: StoredTask, { records }: ReadItem): void {
    for (const { record, inHistory, hasMetadata } of records) {
      const seq = task.records.length + task.head.firstSeq;
      const extensions = record.extensions && Object.freeze([...record.extensions]);
      task.records.push(Object.freeze({ ...record, ...(extensions && { extensions }), seq }));
      if (record.kind === "statusUpdate") task.status = record.json;
      if (record.kind === "artifactUpdate") task.artifacts.push(record.json);
      if (hasMetadata) task.metadata.push(record.json);
      if (!inHistory) continue;
      const { kind, json, time } = record;
      const message = { place: this.#next(), time, event: { kind, json } };
      task.messages.push(message);
      task.context.messages.add(message);
    }
  }

  #touch(context: StoredContext, time: number): void {
    if (time <= context.touched) return;
    if (context.tasks === 0) this.#idle.delete(context);
    context.touched = time;
    if (context.tasks === 0) this.#idle.add(context);
  }

  #duplicate({ agent, owner }: Owner, effects: readonly (TaskEffect | ContextEffect)[]): OnceRecord | undefined {
    for (const effect of effects) {
      if (effect.effect !== "once") continue;
      const known = this.#agents.get(agent)?.owners.get(owner)?.keys.get(effect.key);
      if (known !== undefined && known.until > effect.now) return known.record;
    }
    return undefined;
  }

  #remember(
    owner: OwnerRoom,
    keys: Set<StoredKey>,
    { key, hash, until = Infinity, answer }: OnceEffect,
    place: Pick<OnceRecord, "taskId" | "seq">,
  ): void {
    const before = owner.keys.get(key);
    if (before !== undefined) this.#forget(before);
    const record = Object.freeze({ key, hash, ...place, ...(answer !== undefined && { answer }) });
    const stored = { serial: this.#next(), record, until, owner, keys };
    owner.keys.set(key, stored);
    keys.add(stored);
    if (until !== Infinity) this.#ending.add(stored);
  }

  #forget(key: StoredKey): void {
    key.owner.keys.delete(key.record.key);
    key.keys.delete(key);
    this.#ending.delete(key);
  }

  #delete(task: StoredTask): void {
    this.#displace(task);
    task.context.owner.agent.tasks.delete(task.head.task.taskId);
    for (const key of task.keys) this.#forget(key);
    for (const message of task.messages) task.context.messages.delete(message);
    task.context.tasks -= 1;
    if (task.context.tasks === 0) this.#idle.add(task.context);
  }

  #drop(context: StoredContext): void {
    this.#idle.delete(context);
    context.owner.contexts.delete(context.id);
    for (const key of context.keys) this.#forget(key);
    const { agent, contexts, name } = context.owner;
    if (contexts.size === 0) agent.owners.delete(name);
  }

  #compact(task: StoredTask): void {
    this.#loose.delete(task);
    const { base, artifacts } = compact(piecesOf(task, undefined));
    task.base = base;
    task.artifacts = [...artifacts];
    task.metadata = [];
    task.records = task.records.slice(-1);
    task.head = Object.freeze({ ...task.head, firstSeq: task.head.seq });
  }
}

function indexesOf(task: StoredTask): readonly TaskIndex<StoredTask>[] {
  const { context } = task;
  return [context.owner.agent.index, context.owner.index, context.index];
}

function piecesOf(task: StoredTask, history: number | undefined): TaskPieces {
  const messages = history === undefined ? task.messages : history === 0 ? [] : task.messages.slice(-history);
  const { head, base, status, metadata, artifacts } = task;
  return { head, base, status, metadata, artifacts, history: messages.map(({ event }) => event) };
}

function dueOf({ run, leaseUntil }: TaskHead): number | undefined {
  return run === undefined ? undefined : (leaseUntil ?? -Infinity);
}

function withCheckpoint({ head, checkpoint }: StoredTask): TaskHead {
  return checkpoint === undefined ? head : { ...head, checkpoint };
}

function getOrMake<V>(map: Map<string, V>, key: string, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

/** Takes the first items off a list, as long as they are due and at most `limit`; `take` removes one. */
function drain<Key, Item extends Key>(
  list: SortedList<Key, Item>,
  limit: number,
  due: (item: Item) => boolean,
  take: (item: Item) => void,
): { count: number; more: boolean } {
  let count = 0;
  for (let item = list.first(); item !== undefined && due(item); item = list.first()) {
    if (count >= limit) return { count, more: true };
    take(item);
    count += 1;
  }
  return { count, more: false };
}
