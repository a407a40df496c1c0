import {
  queueFeature,
  type AppendOutcome,
  type FeatureEffect,
  type ListPosition,
  type Owner,
  type TaskEffect,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { statusRecord, type Committer } from "../log/index.ts";
import { queueRow, type QueuedRun } from "../run/index.ts";
import { Emitter } from "../shared/collections.ts";
import { tooManyQueued } from "../shared/errors.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";

/** For how long the last place read for an owner is reused for later tasks of this owner, in milliseconds. */
const readFor = 100;
/** Page sizes for finding an owner's last queued task among its newest submitted tasks. Nearly always, the newest task is the one. */
const [firstRead, thenRead] = [5, 50];

interface OwnerPlace {
  users: number;
  last: number;
  since: number;
  read: Promise<readonly [last: LastPlace, first: number]>;
  given: number;
}

/** An owner's last place in the queue (0: none), and its number of submitted tasks. */
interface LastPlace {
  readonly place: number;
  readonly submitted: number;
}

const nothing = Promise.resolve([{ place: 0, submitted: 0 }, 1] as const);

interface QueuePlacesDeps {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
}

/**
 * Puts tasks into the queue. Queued tasks are rows of the store, and take no memory. On arrival a task gets the place after its owner's last
 * place, but not before the first place in the queue. So an owner's tasks start in order, owners take turns, and the next task is found
 * without reading the other tasks.
 */
export class QueuePlaces {
  /** Whether tasks may be waiting. While this is false, the end of a run costs no query. */
  mayWait = false;
  readonly entered: Emitter = new Emitter();
  readonly #deps: QueuePlacesDeps;
  readonly #owners = new Map<string, OwnerPlace>();

  constructor(deps: QueuePlacesDeps) {
    this.#deps = deps;
  }

  /**
   * Puts a task at the end of the queue. `store` stores the row with the message that the task waits for.
   *
   * @param max - Maximum waiting tasks of its owner. Default: no limit.
   * @throws A2AError `TooManyRequests` if the owner has reached this maximum.
   */
  async enter<Result>(
    task: TaskKey,
    run: QueuedRun,
    store: (row: FeatureEffect) => Promise<Result>,
    max?: number,
  ): Promise<Result> {
    this.mayWait = true;
    try {
      return await this.#at(task, (place) => store(queueRow(run, place)), max);
    } finally {
      this.entered.emit();
    }
  }

  /**
   * Puts a task back into the queue. This process had started its turn with `fence`, but could not call the agent. `place`:
   * its former place. Default: the end of the queue.
   */
  async putBack(head: TaskHead, run: QueuedRun, fence: number, place?: number): Promise<void> {
    const { committer, settings } = this.#deps;
    const { task, contextId, statusTime } = head;
    const { taskId } = task;
    const origin = { taskId, contextId, turn: run.turn, attempt: 1, extensions: [], trace: undefined };
    const time = Math.max(settings.clock.now(), statusTime);
    const record = statusRecord(origin, { state: "TASK_STATE_SUBMITTED" }, "system", "", time);
    const noRun: readonly TaskEffect[] = [
      { effect: "run", run: null },
      { effect: "lease", op: "release" },
    ];
    const store = (row: FeatureEffect): Promise<AppendOutcome> =>
      committer.append({ task, fence, records: [record], effects: [...noRun, row] });
    await (place === undefined ? this.enter(task, run, store) : store(queueRow(run, place)));
  }

  /** Stores a row with a place. If two processes give two tasks of one owner the same place, the task that is stored first starts first. */
  async #at<Result>(
    { agent, owner }: Owner,
    store: (place: number) => Promise<Result>,
    max = Infinity,
  ): Promise<Result> {
    const name = JSON.stringify([agent, owner]);
    const now = this.#deps.settings.clock.elapsed();
    let known = this.#owners.get(name);
    if (known === undefined)
      this.#owners.set(name, (known = { users: 0, last: 0, since: -Infinity, read: nothing, given: 0 }));
    if (now - known.since > readFor) {
      known.since = now;
      known.given = 0;
      known.read = Promise.all([this.#last({ agent, owner }), this.#first()]);
    }
    known.users += 1;
    try {
      const [last, first] = await known.read;
      if (last.submitted + known.given >= max) throw tooManyQueued(max);
      known.given += 1;
      known.last = Math.max(first, Math.max(known.last, last.place) + 1);
      return await store(known.last);
    } finally {
      known.users -= 1;
      if (known.users === 0) this.#owners.delete(name);
    }
  }

  async #first(): Promise<number> {
    const { settings, agents } = this.#deps;
    const query = { feature: queueFeature, agents: [...agents.keys()], now: Number.MAX_SAFE_INTEGER, limit: 1 };
    return (await settings.store.dueFeatures(query))[0]?.due ?? 1;
  }

  /** The last place of an owner, from its queued task with the newest status. Skips running tasks that are still in the state submitted. */
  async #last(owner: Owner): Promise<LastPlace> {
    const { store } = this.#deps.settings;
    const query = { state: "TASK_STATE_SUBMITTED", history: 0, artifacts: false } as const;
    let limit = firstRead;
    for (let after: ListPosition | undefined; ;) {
      const page = await store.list(owner, { ...query, limit, ...(after && { after }) });
      const { total: submitted } = page;
      for (const { task } of page.tasks) {
        const [row] = await store.features(owner, task.id, queueFeature);
        if (row?.due !== undefined) return { place: row.due, submitted };
      }
      if (page.next === undefined) return { place: 0, submitted };
      after = page.next;
      limit = thenRead;
    }
  }
}
