import type { Message } from "@parley/a2a/internal/model/index";
import type {
  AppendItem,
  AppendOutcome,
  ClaimQuery,
  ContextKey,
  DueFeature,
  FeatureQuery,
  FeatureRow,
  ListQuery,
  LogPage,
  LoadOptions,
  OnceEffect,
  OnceRecord,
  Owner,
  ReadOptions,
  Scope,
  SweepOptions,
  TaskHead,
} from "@parley/server/internal/store/index";
import {
  afterFeatures,
  bytesOf,
  dueOf,
  featuresOf,
  foldOf,
  headOf,
  isOver,
  messagesOf,
  terminal,
  textOfRun,
  type RefTask,
  type Task,
} from "./reference-task.ts";

/**
 * A store that is as simple as possible, regardless of speed: each query searches and sorts lists. The random histories compare
 * a store with this reference.
 */

interface RefKey extends Owner {
  readonly record: OnceRecord;
  readonly until: number;
  readonly task?: RefTask;
  readonly contextId?: string;
}

interface RefMessage extends ContextKey {
  readonly time: number;
  readonly message: Message;
  readonly task?: RefTask;
}

interface RefContext extends ContextKey {
  touched: number;
  state?: string;
}

type InContext = Owner & { readonly contextId?: string; readonly task?: RefTask };

/** Whether a value belongs to the context itself, and not to one of its tasks. */
function isOf(thing: InContext, context: RefContext): boolean {
  return thing.task === undefined && same(thing, context) && context.contextId === thing.contextId;
}

export class Reference {
  #tasks: RefTask[] = [];
  #keys: RefKey[] = [];
  #messages: RefMessage[] = [];
  #contexts: RefContext[] = [];
  #number = 0;

  append(items: readonly AppendItem[]): readonly AppendOutcome[] {
    return items.map((item) => ("task" in item ? this.#appendTask(item) : this.#appendContext(item)));
  }

  head(scope: Scope, taskId: string): TaskHead | undefined {
    const task = this.#find(scope, taskId);
    if (task === undefined) return undefined;
    const { checkpoint, taskState } = task;
    return {
      ...headOf(task),
      ...(checkpoint !== undefined && { checkpoint }),
      ...(taskState !== undefined && { taskState }),
    };
  }

  load(scope: Scope, taskId: string, options: LoadOptions): { head: TaskHead; task: Task } | undefined {
    const task = this.#find(scope, taskId);
    return task && { head: headOf(task), task: foldOf(task, options) };
  }

  read(scope: Scope, taskId: string, { after, limit, kinds }: ReadOptions): LogPage | undefined {
    const task = this.#find(scope, taskId);
    if (task === undefined) return undefined;
    const records = task.log.filter(
      ({ seq, kind }) => seq > after && seq >= task.firstSeq && (kinds?.includes(kind) ?? true),
    );
    return { head: headOf(task), records: records.slice(0, limit) };
  }

  /** All matches of a query, in order. */
  list(scope: Scope, query: Pick<ListQuery, "contextId" | "state" | "since" | "history" | "artifacts">): unknown[] {
    return this.#tasks
      .filter((task) => task.agent === scope.agent && (scope.owner === undefined || scope.owner === task.owner))
      .filter((task) => query.contextId === undefined || query.contextId === task.contextId)
      .map((task) => ({ task, head: headOf(task) }))
      .filter(({ head }) => query.state === undefined || head.state === query.state)
      .filter(({ head }) => query.since === undefined || head.statusTime >= query.since)
      .sort((a, b) => b.head.statusTime - a.head.statusTime || b.task.number - a.task.number)
      .map(({ task }) => foldOf(task, query));
  }

  once(owner: Owner, key: string, now: number): OnceRecord | undefined {
    return this.#keys.find((known) => same(known, owner) && known.record.key === key && known.until > now)?.record;
  }

  /** A whole conversation: its messages in order, its artifacts in any order. */
  conversation(key: ContextKey): { state?: string; messages: readonly unknown[]; artifacts: readonly unknown[] } {
    const context = this.#contexts.find((known) => same(known, key) && known.contextId === key.contextId);
    const messages = this.#messages.filter((known) => same(known, key) && known.contextId === key.contextId);
    // Only tasks with messages contribute artifacts.
    const tasks = this.#tasks.filter(
      (task) =>
        same(task, key) &&
        task.contextId === key.contextId &&
        (foldOf(task, { artifacts: false }).history ?? []).length > 0,
    );
    return {
      ...(context?.state !== undefined && { state: context.state }),
      messages: messages.map(({ time, message }) => ({ time, message })),
      artifacts: tasks.flatMap((task) => foldOf(task, { artifacts: true }).artifacts ?? []),
    };
  }

  /** All matches of a query, in order. */
  claimable({ now, agents, holders }: Pick<ClaimQuery, "now" | "agents" | "holders">): readonly TaskHead[] {
    return this.#tasks
      .filter((task) => agents.includes(task.agent))
      .filter((task) => task.run !== undefined && (task.lease?.until ?? -Infinity) <= now)
      .sort((a, b) => (a.lease?.until ?? -Infinity) - (b.lease?.until ?? -Infinity) || a.number - b.number || 0)
      .map(headOf)
      .filter(({ holder }) => holders === undefined || (holder !== undefined && holders.includes(holder)));
  }

  features(scope: Scope, taskId: string, feature: string): readonly FeatureRow[] {
    const task = this.#find(scope, taskId);
    return task === undefined ? [] : featuresOf(task, feature);
  }

  dueFeatures(query: FeatureQuery): readonly DueFeature[] {
    return dueOf(this.#tasks, query);
  }

  /** Ignores `limit`. */
  sweep({ deleteBefore = -Infinity, compactBefore = -Infinity, now }: SweepOptions): void {
    this.#keys = this.#keys.filter((key) => key.until > now);
    const old = this.#tasks.filter((task) => isOver(task) && headOf(task).statusTime < deleteBefore);
    this.#tasks = this.#tasks.filter((task) => !old.includes(task));
    this.#keys = this.#keys.filter((key) => key.task === undefined || !old.includes(key.task));
    this.#messages = this.#messages.filter((message) => message.task === undefined || !old.includes(message.task));
    const idle = this.#contexts.filter(
      (context) =>
        context.touched < deleteBefore &&
        !this.#keys.some((key) => key.until !== Infinity && isOf(key, context)) &&
        !this.#tasks.some((task) => same(task, context) && task.contextId === context.contextId),
    );
    const inIdle = (thing: InContext): boolean => idle.some((context) => isOf(thing, context));
    this.#contexts = this.#contexts.filter((context) => !idle.includes(context));
    this.#keys = this.#keys.filter((key) => !inIdle(key));
    this.#messages = this.#messages.filter((message) => !inIdle(message));
    for (const task of this.#tasks) {
      if (isOver(task) && headOf(task).statusTime < compactBefore) task.firstSeq = task.log.length;
    }
  }

  #appendTask(item: Extract<AppendItem, { task: unknown }>): AppendOutcome {
    const { agent, owner, taskId } = item.task;
    const taken = this.#tasks.find((task) => task.agent === agent && task.id === taskId);
    let task = taken?.owner === owner ? taken : undefined;
    const fail = (reason: Extract<AppendOutcome, { ok: false }>["reason"], once?: OnceRecord): AppendOutcome => ({
      ok: false,
      reason,
      ...(once && { once }),
      ...(task && { head: headOf(task) }),
    });
    const effects = item.effects ?? [];
    for (const effect of effects) {
      const known = effect.effect === "once" ? this.once(item.task, effect.key, effect.now) : undefined;
      if (known !== undefined) return fail("duplicate", known);
    }
    if (item.create ? taken !== undefined : task === undefined) return fail(item.create ? "exists" : "missing");
    if (item.expect !== undefined && item.expect !== (task?.log.length ?? 0)) return fail("stale");
    if (item.fence !== undefined && item.fence !== (task?.fence ?? 0)) return fail("fenced");
    if (item.run !== undefined && textOfRun(item.run) !== textOfRun(task?.run)) return fail("stale");
    const states = [task && headOf(task).state, ...item.records.map((record) => record.state)];
    const over = states.findIndex((state) => state !== undefined && terminal.includes(state));
    if (over >= 0 && over < item.records.length) return fail("terminal");
    const bytes = bytesOf([...(task?.log ?? []), ...item.records]);
    if (item.records.length > 0 && bytes > (item.maxBytes ?? Infinity)) return fail("full");
    let { lease, fence } = task ?? { fence: 0 };
    for (const effect of effects) {
      if (effect.effect !== "lease") continue;
      if (effect.op === "acquire") {
        if (lease !== undefined && lease.until > effect.now) return fail("leased");
        lease = { holder: effect.holder, until: effect.until };
        fence += 1;
      } else if (effect.op === "renew") {
        if (lease === undefined) return fail("fenced");
        lease = { holder: lease.holder, until: effect.until };
      } else {
        lease = undefined;
        if (effect.op === "revoke") fence += 1;
      }
    }

    const features = afterFeatures(task?.features ?? [], effects, () => (this.#number += 1));
    if (typeof features === "string") return fail(features);

    if (task === undefined) {
      const contextId = item.create?.contextId ?? "";
      const number = (this.#number += 1);
      task = { agent, owner, id: taskId, contextId, log: [], number, firstSeq: 1, fence, features };
      this.#tasks.push(task);
    }
    task.fence = fence;
    task.features = features;
    delete task.lease;
    if (lease !== undefined) task.lease = lease;
    const key = { agent, owner, contextId: task.contextId };
    for (const record of item.records) {
      task.log.push({ ...record, seq: task.log.length + 1 });
      for (const message of messagesOf(record)) this.#messages.push({ ...key, task, time: record.time, message });
    }
    const context = this.#context(key, headOf(task).statusTime);
    for (const effect of effects) {
      if (effect.effect === "run") {
        delete task.run;
        if (effect.run !== null) task.run = effect.run;
      } else if (effect.effect === "checkpoint") {
        delete task.checkpoint;
        if (effect.value !== null) task.checkpoint = effect.value;
      } else if (effect.effect === "taskState") {
        delete task.taskState;
        if (effect.value !== null) task.taskState = effect.value;
      } else if (effect.effect === "contextState") {
        delete context.state;
        if (effect.value !== null) context.state = effect.value;
      } else if (effect.effect === "once") {
        this.#keep(key, effect, { taskId, seq: task.log.length }, { task });
      }
    }
    return { ok: true, seq: task.log.length, fence };
  }

  #appendContext({ context: key, effects }: Extract<AppendItem, { context: unknown }>): AppendOutcome {
    for (const effect of effects) {
      const known = effect.effect === "once" ? this.once(key, effect.key, effect.now) : undefined;
      if (known !== undefined) return { ok: false, reason: "duplicate", once: known };
    }
    const context = this.#context(key, 0);
    for (const effect of effects) {
      if (effect.effect === "contextState") {
        delete context.state;
        if (effect.value !== null) context.state = effect.value;
        continue;
      }
      this.#context(key, effect.effect === "once" ? effect.now : effect.time);
      if (effect.effect === "once") this.#keep(key, effect, { seq: 0 }, { contextId: key.contextId });
      else this.#messages.push({ ...key, time: effect.time, message: JSON.parse(effect.json) as Message });
    }
    return { ok: true, seq: 0, fence: 0 };
  }

  #keep(
    { agent, owner }: Owner,
    effect: OnceEffect,
    place: { taskId?: string; seq: number },
    rest: Partial<RefKey>,
  ): void {
    const { key, hash, until = Infinity, answer } = effect;
    this.#keys = this.#keys.filter((known) => !same(known, { agent, owner }) || known.record.key !== key);
    const record = { key, hash, ...place, ...(answer !== undefined && { answer }) };
    this.#keys.push({ agent, owner, until, record, ...rest });
  }

  #context({ agent, owner, contextId }: ContextKey, time: number): RefContext {
    let context = this.#contexts.find((known) => same(known, { agent, owner }) && known.contextId === contextId);
    if (context === undefined) {
      context = { agent, owner, contextId, touched: 0 };
      this.#contexts.push(context);
    }
    context.touched = Math.max(context.touched, time);
    return context;
  }

  #find(scope: Scope, taskId: string): RefTask | undefined {
    return this.#tasks.find(
      (task) =>
        task.agent === scope.agent && task.id === taskId && (scope.owner === undefined || scope.owner === task.owner),
    );
  }
}

function same(a: Owner, b: Owner): boolean {
  return a.agent === b.agent && a.owner === b.owner;
}
