import { type Clock, defer } from "@parley/a2a/internal/base/index";
import { A2AError, eventOf, type TaskState } from "@parley/a2a/internal/model/index";
import {
  auditedSubject,
  observe,
  type Audit,
  type Begun,
  type Observer,
  type Principal,
} from "@parley/a2a/internal/protocol/index";
import type { AppendItem, AppendOutcome, Store, TaskAppend } from "../../store/index.ts";
import { Emitter } from "../shared/collections.ts";

/** The cause of a change of a task. */
export interface Cause {
  /** The caller who changed the task, or who sent the message that the agent works on. */
  readonly by?: Principal | undefined;
  /** The state before the change: a status with the same state is not recorded. Absent: every status is recorded. */
  readonly from?: TaskState | undefined;
}

/**
 * A submission. `take` is called when the transaction begins, so that everything gathered until then is one item.
 * `settle` and `storeFailed` are called in the order of the items, and must not throw.
 */
export interface Submission {
  take(): AppendItem;
  settle(outcome: AppendOutcome): void;
  storeFailed(error: unknown): void;
  /** The cause of the last item, for the audit. Absent: the server itself. */
  readonly cause?: Cause | undefined;
}

/**
 * Maximum concurrent transactions, and items of each. While the store works on a transaction, this thread handles the outcomes
 * of the previous one. A thousand tasks in one transaction would all wait for the slowest. Row `fan-in` of the benchmarks needs both
 * limits: without them, a chunk takes twice as long (docs/decisions/hot-path.md).
 */
const maxInFlight = 2;
const maxItems = 128;

interface CommitterSettings {
  readonly store: Store;
  readonly observer: Observer | undefined;
  readonly audit: Audit | undefined;
  readonly clock: Clock;
  /** Features whose rows are woken by each new record of their task. */
  readonly wakes: readonly string[];
}

interface Failure {
  readonly ok?: undefined;
  readonly error: unknown;
}

type Result = AppendOutcome | Failure;

function noOutcome(): Failure {
  return { error: new Error("The store gave no outcome for an item") };
}

function report(
  append: NonNullable<Observer["append"]>,
  items: readonly AppendItem[],
  outcomes: readonly Result[],
): void {
  for (const [at, item] of items.entries()) {
    const outcome = outcomes[at];
    if (outcome?.ok !== true || !("records" in item) || item.records.length === 0) continue;
    const { agent, taskId } = item.task;
    append({ agent, taskId, records: item.records.length, seq: outcome.seq });
  }
}

/** Audits created tasks and changed states. `causes`: the cause of each item; `undefined` for the server itself. */
function auditChanges(
  audit: Audit,
  time: number,
  items: readonly AppendItem[],
  outcomes: readonly Result[],
  causes: readonly (Cause | undefined)[],
): void {
  for (const [at, item] of items.entries()) {
    if (outcomes[at]?.ok !== true || !("records" in item)) continue;
    const { agent, taskId } = item.task;
    const { by, from } = causes[at] ?? {};
    let before = from;
    for (const { kind, state, trace } of item.records) {
      if (state === undefined || (kind !== "task" && state === before)) continue;
      before = state;
      const event = kind === "task" ? "task-created" : "task-state";
      const subject = auditedSubject({ principal: by, taskId, contextId: contextOf(item), trace });
      audit({ event, outcome: "success", time, agent, state, ...subject });
    }
  }
}

/** The context of a task whose state changes, from its records. */
function contextOf({ create, records }: TaskAppend): string | undefined {
  if (create !== undefined) return create.contextId;
  const status = records.find(({ kind }) => kind === "statusUpdate");
  return status && eventOf(status).statusUpdate?.contextId;
}

/**
 * Group commit: everything submitted in one turn of the event loop, or while the store is busy, is stored in one transaction.
 * Under load many tasks share a commit. A single event waits only for the end of the turn of the event loop.
 */
export class Committer {
  readonly stored: Emitter<[TaskAppend]> = new Emitter();
  readonly #store: Store;
  readonly #queue: Submission[] = [];
  #inFlight = 0;
  #due = false;

  readonly #observer: Observer | undefined;
  readonly #audit: Audit | undefined;
  readonly #clock: Clock;
  readonly #wakes: readonly string[];

  constructor({ store, observer, audit, clock, wakes }: CommitterSettings) {
    this.#store = store;
    this.#observer = observer;
    this.#audit = audit;
    this.#clock = clock;
    this.#wakes = wakes;
  }

  submit(submission: Submission): void {
    this.#queue.push(submission);
    this.#schedule();
  }

  /**
   * Appends one item. `onOutcome` is called in the order of the items, before the promise resolves. `cause`: for the audit.
   */
  append(
    item: AppendItem,
    onOutcome: (outcome: AppendOutcome) => void = () => {},
    cause?: Cause,
  ): Promise<AppendOutcome> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: AppendOutcome): void => {
        onOutcome(outcome);
        resolve(outcome);
      };
      this.submit({ take: () => item, settle, storeFailed: reject, cause });
    });
  }

  /** Commits after this turn of the event loop, so that requests are read even while a stream runs at full speed. */
  #schedule(): void {
    if (this.#due || this.#queue.length === 0 || this.#inFlight === maxInFlight) return;
    this.#due = true;
    defer(() => {
      this.#due = false;
      void this.#commit();
    });
  }

  /** The items, with an effect for each feature that must see their records. Costs nothing for tasks without rows. */
  #waking(items: readonly AppendItem[]): readonly AppendItem[] {
    const due = this.#clock.now();
    const wakes = this.#wakes.map((feature) => ({ effect: "feature", op: "wake", feature, due }) as const);
    return items.map((item) => {
      if (!("records" in item) || item.records.length === 0) return item;
      return { ...item, effects: [...(item.effects ?? []), ...wakes] };
    });
  }

  /**
   * An error other than an `A2AError` means that the store rejected one of the items and stored nothing. Appends the items one by one,
   * in order, so that only the rejected item fails.
   */
  async #alone(items: readonly AppendItem[], error: unknown): Promise<readonly Result[]> {
    if (error instanceof A2AError || items.length === 1) return items.map(() => ({ error }));
    const alone = async (item: AppendItem): Promise<Result> => {
      try {
        const [outcome] = await this.#store.append([item]);
        return outcome ?? noOutcome();
      } catch (thrown) {
        return { error: thrown };
      }
    };
    return Promise.all(items.map(alone));
  }

  #appendObserved(begun: Begun, items: readonly AppendItem[]): Promise<readonly Result[]> {
    return observe(begun, () => this.#store.append(items));
  }

  #emitStored(items: readonly AppendItem[], results: readonly Result[]): void {
    items.forEach((item, at) => {
      if ("task" in item && results[at]?.ok === true) this.stored.emit(item);
    });
  }

  async #commit(): Promise<void> {
    const batch = this.#queue.splice(0, maxItems);
    this.#inFlight += 1;
    this.#schedule();
    try {
      const taken = batch.map((submission) => submission.take());
      const items = this.#wakes.length === 0 ? taken : this.#waking(taken);
      // Read the causes before the append: when the store answers, a writer may already work on the turn of another caller.
      const causes = this.#audit && batch.map(({ cause }) => cause);
      const observer = this.#observer;
      let results: readonly Result[];
      try {
        results = await (observer?.commit === undefined
          ? this.#store.append(items)
          : this.#appendObserved(observer.commit({ items: items.length }), items));
      } catch (error) {
        results = await this.#alone(items, error);
      }
      if (observer?.append !== undefined) report(observer.append, items, results);
      if (this.#audit !== undefined) auditChanges(this.#audit, this.#clock.now(), items, results, causes ?? []);
      batch.forEach((submission, index) => {
        const result = results[index] ?? noOutcome();
        if (result.ok === undefined) submission.storeFailed(result.error);
        else submission.settle(result);
      });
      if (this.stored.hasListeners) this.#emitStored(items, results);
    } catch (error) {
      for (const submission of batch) submission.storeFailed(error);
    }
    this.#inFlight -= 1;
    this.#schedule();
  }
}
