import { isTerminal } from "@parley/a2a/internal/model/index";
import {
  queueFeature,
  type AppendOutcome,
  type DueFeature,
  type FeatureEffect,
  type ListPosition,
  type Owner,
  type TaskEffect,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { statusRecord, type Committer } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../shared/options.ts";
import { tooManyQueued } from "../shared/refusals.ts";
import { queueRow, type QueuedRun } from "../run/index.ts";
import { Looks } from "./due.ts";
import type { Outage } from "./outage.ts";
import { Backoff } from "./recovery.ts";
import type { Runs } from "./runs.ts";
import type { Takeover } from "./takeover.ts";

/** Rows of one look. */
const pageSize = 100;
/** How many tasks that cannot begin now are passed over in one look. */
const maxStuck = 100;
/** Other processes put many tasks into the queue at a time: they are looked for together, after so many milliseconds. */
const calm = 2;

interface QueueInit {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly runs: Pick<Runs, "stopping" | "room">;
  readonly takeover: Pick<Takeover, "begin">;
  readonly outage: Pick<Outage, "isAway" | "failed">;
  /** A task is on trial that may have caused a crash, or it is not known yet whether there is one: nothing else is started meanwhile. */
  readonly isTrial: () => boolean;
}

/**
 * Tasks that wait for a process with room for their run. They are rows of the store, and take no memory. Each has a place, which it got
 * when it came: one after the last of its owner, and not before the first of all. So the tasks of an owner begin in order, owners
 * take turns, and the next one is found without looking at the others.
 */
export class Queue {
  readonly #init: QueueInit;
  readonly #places: Places;
  readonly #backoff: Backoff;
  /** Whether tasks may wait, as far as this process knows. While none does, a run that is over costs no query. */
  #waits = false;
  readonly #looks: Looks;

  constructor(init: QueueInit) {
    this.#init = init;
    this.#places = new Places(init);
    const { settings, runs } = init;
    this.#looks = new Looks({ clock: settings.clock, work: () => this.#look(), isOver: () => runs.stopping });
    this.#backoff = new Backoff(init, "A task in the queue could not begin, and will be tried again later");
  }

  /** Whether a message that begins a run has to wait: there is no room, or others came before. */
  get isCrowded(): boolean {
    return this.#waits || this.#init.runs.room === 0;
  }

  /** `byItself` false: it looks when `look` is called. */
  start(byItself: boolean): void {
    this.#looks.start(byItself);
  }

  stop(): Promise<void> {
    return this.#looks.stop();
  }

  /**
   * Puts a task at the end of the queue. `store` stores the row with the message that the task waits for.
   *
   * @param most - How many tasks of its owner may wait. Default: any number.
   * @throws A2AError `TooManyRequests` where so many do.
   */
  async enter(
    task: TaskKey,
    run: QueuedRun,
    store: (row: FeatureEffect) => Promise<AppendOutcome>,
    most?: number,
  ): Promise<AppendOutcome> {
    this.#waits = true;
    try {
      return await this.#places.at(task, (place) => store(queueRow(run, place)), most);
    } finally {
      void this.look();
    }
  }

  /**
   * Puts a task back whose turn this process had begun with `fence`, and whose agent it could not call: any process with room begins it.
   * `place`: where it was. Default: the end of the queue.
   */
  async putBack(head: TaskHead, run: QueuedRun, fence: number, place?: number): Promise<void> {
    const { committer, settings } = this.#init;
    const { task, contextId, statusTime } = head;
    const { taskId } = task;
    const origin = { taskId, contextId, turn: run.turn, attempt: 1, extensions: [], trace: undefined };
    const time = Math.max(settings.clock.now(), statusTime);
    const record = statusRecord(origin, { state: "TASK_STATE_SUBMITTED" }, "system", "", time);
    const none: readonly TaskEffect[] = [
      { effect: "run", run: null },
      { effect: "lease", op: "release" },
    ];
    const store = (row: FeatureEffect): Promise<AppendOutcome> =>
      committer.append({ task, fence, records: [record], effects: [...none, row] });
    await (place === undefined ? this.enter(task, run, store) : store(queueRow(run, place)));
  }

  /** There is room again. */
  freed(): void {
    if (this.#waits) void this.look();
  }

  /** Another process may have put a task into the queue. */
  changedElsewhere(): void {
    if (this.#init.runs.room === 0) this.#waits = true;
    else this.#looks.after(calm);
  }

  /** Begins tasks while there is room. A call that finds a look under way has it look again. Never rejects. */
  look(): Promise<void> {
    return this.#looks.now();
  }

  async #look(): Promise<void> {
    const { settings, runs, isTrial, outage } = this.#init;
    const stuck = new Set<string>();
    try {
      while (!runs.stopping && !isTrial() && !outage.isAway) {
        const { room } = runs;
        // Whether others wait is seen when there is room.
        if (room === 0) this.#waits = true;
        const rows = room === 0 ? [] : await this.#rows(stuck, room);
        if (room > 0) this.#waits = rows.length > 0 || stuck.size > 0;
        if (rows.length === 0 || stuck.size >= maxStuck) break;
        for (const row of await this.#beginAll(rows.slice(0, room))) stuck.add(nameOf(row.task));
      }
    } catch (cause) {
      this.#waits = true;
      if (!runs.stopping && !(await outage.failed(cause)))
        settings.logger.error("Looking for tasks in the queue failed, and will be tried again", { cause });
    }
    // Where only this process can have queued anything, it knows.
    if (this.#waits || settings.store.exclusive !== true) this.#looks.after(settings.pollInterval);
  }

  /** The first rows, but those of `stuck`. */
  async #rows(stuck: ReadonlySet<string>, most: number): Promise<readonly DueFeature[]> {
    const { agents, settings } = this.#init;
    const limit = Math.min(most, pageSize) + stuck.size;
    const query = { feature: queueFeature, agents: [...agents.keys()], now: Number.MAX_SAFE_INTEGER, limit };
    return (await settings.store.dueFeatures(query)).filter(({ task }) => !stuck.has(nameOf(task)));
  }

  /** Returns those that stay in the queue. */
  async #beginAll(rows: readonly DueFeature[]): Promise<readonly DueFeature[]> {
    const begun = await Promise.all(rows.map((row) => this.#begin(row, rows.length > 1)));
    const left = rows.filter((_row, at) => begun[at] === false);
    // One that cannot be stored fails those that are stored together with it.
    const failed = left.filter(({ task }) => rows.length > 1 && this.#backoff.hasFailed(task.taskId));
    const stuck = left.filter((row) => !failed.includes(row));
    for (const row of failed) if (!(await this.#begin(row))) stuck.push(row);
    return stuck;
  }

  /** `again`: where it fails, it is tried again alone. `false`: it stays in the queue. */
  async #begin({ task, key, value, due }: DueFeature, again = false): Promise<boolean> {
    const { settings, agents, committer, takeover } = this.#init;
    const hosted = agents.get(task.agent);
    if (hosted === undefined || !this.#backoff.isDue(task.taskId)) return false;
    const head = await settings.store.head(task, task.taskId);
    if (head === undefined) return true;
    const leave: FeatureEffect = {
      effect: "feature",
      op: "delete",
      feature: queueFeature,
      key,
      if: { value, due },
    };
    if (head.run !== undefined || isTerminal(head.state)) {
      // Whoever has begun it may put it back meanwhile, into the same place: that row stays.
      return (await committer.append({ task, fence: head.fence, expect: head.seq, records: [], effects: [leave] })).ok;
    }
    const run = JSON.parse(value) as QueuedRun;
    const begun = await this.#backoff.guard(head, () => takeover.begin(hosted, head, run, leave, due), again);
    return begun !== undefined;
  }
}

function nameOf(task: TaskKey): string {
  return `${task.agent}\0${task.taskId}`;
}

/** How long what was read of the queue counts for later tasks of the same owner, in milliseconds. */
const readFor = 100;
/** How many of the newest submitted tasks of an owner are read at first, and then at a time, for the last one in the queue. Nearly always it is the first. */
const [firstRead, thenRead] = [5, 50];

/** The last place of an owner, while tasks of it are being stored. */
interface OwnerPlace {
  users: number;
  last: number;
  /** When the queue was read, on the monotonic clock. */
  since: number;
  read: Promise<readonly [last: LastPlace, first: number]>;
  /** How many places were given since. */
  given: number;
}

/** The last place of an owner in the queue, 0 for none, and how many of its tasks are submitted. */
interface LastPlace {
  readonly place: number;
  readonly submitted: number;
}

const nothing = Promise.resolve([{ place: 0, submitted: 0 }, 1] as const);

/** Finds the places of new tasks. */
class Places {
  readonly #init: Pick<QueueInit, "settings" | "agents">;
  readonly #owners = new Map<string, OwnerPlace>();

  constructor(init: Pick<QueueInit, "settings" | "agents">) {
    this.#init = init;
  }

  /** Two processes may give two tasks of one owner the same place: then the one that is stored first begins first. */
  async at<Result>(
    { agent, owner }: Owner,
    store: (place: number) => Promise<Result>,
    most = Infinity,
  ): Promise<Result> {
    const name = JSON.stringify([agent, owner]);
    const { clock } = this.#init.settings;
    const now = clock.elapsed();
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
      if (last.submitted + known.given >= most) throw tooManyQueued(most);
      known.given += 1;
      known.last = Math.max(first, Math.max(known.last, last.place) + 1);
      return await store(known.last);
    } finally {
      known.users -= 1;
      if (known.users === 0) this.#owners.delete(name);
    }
  }

  /** The place of the first task in the queue. */
  async #first(): Promise<number> {
    const { settings, agents } = this.#init;
    const query = { feature: queueFeature, agents: [...agents.keys()], now: Number.MAX_SAFE_INTEGER, limit: 1 };
    return (await settings.store.dueFeatures(query))[0]?.due ?? 1;
  }

  /** The place of the last task of an owner: the one with the newest status. Others are submitted too until their agents say more. */
  async #last(owner: Owner): Promise<LastPlace> {
    const { store } = this.#init.settings;
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
