import { isTerminal } from "@parley/a2a/internal/model/index";
import { queueFeature, type DueFeature, type FeatureEffect, type TaskKey } from "../../store/index.ts";
import type { Committer } from "../log/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import { queuedJson } from "../run/index.ts";
import type { Outage } from "./outage.ts";
import { Backoff, Poller } from "./polling.ts";
import type { QueuePlaces } from "./queue-places.ts";
import type { Runs } from "./runs.ts";
import type { Standing } from "./standing.ts";
import type { Suspects } from "./suspects.ts";
import type { Takeover } from "./takeover.ts";

const pageSize = 100;
/** Maximum tasks that one poll skips because they cannot start now. */
const maxStuck = 100;
/** Delay before a poll, in milliseconds, so that one read gets all tasks that are queued at about the same time. */
const gatherMs = 2;

interface QueueDeps {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly runs: Pick<Runs, "stopping" | "room">;
  readonly places: QueuePlaces;
  readonly standing: Pick<Standing, "active" | "isPaused">;
  readonly takeover: Pick<Takeover, "begin">;
  readonly outage: Pick<Outage, "isAway" | "failed">;
  readonly suspects: Pick<Suspects, "isTrial">;
}

/** Starts queued tasks while this process has room. */
export class Queue {
  readonly #deps: QueueDeps;
  readonly #backoff: Backoff;
  readonly #poller: Poller;

  constructor(deps: QueueDeps) {
    this.#deps = deps;
    const { settings, runs, places } = deps;
    this.#poller = new Poller({ clock: settings.clock, work: () => this.#poll(), isOver: () => runs.stopping });
    this.#backoff = new Backoff(deps, "Failed to begin a queued task; retrying later");
    places.entered.on(() => void this.poll());
  }

  /** Whether a message that starts a run must wait, because there is no room, earlier tasks are queued, or its agent is paused. */
  isCrowdedFor(agent: string): boolean {
    const { places, runs, standing } = this.#deps;
    return places.mayWait || runs.room === 0 || standing.isPaused(agent);
  }

  start(background: boolean): void {
    this.#poller.start(background);
  }

  stop(): Promise<void> {
    return this.#poller.stop();
  }

  freed(): void {
    if (this.#deps.places.mayWait) void this.poll();
  }

  /** Called when another process may have queued a task. */
  changedElsewhere(): void {
    if (this.#deps.runs.room === 0) this.#deps.places.mayWait = true;
    else this.#poller.after(gatherMs);
  }

  /** Starts queued tasks while there is room. A call during a poll causes another poll. Never rejects. */
  poll(): Promise<void> {
    return this.#poller.now();
  }

  async #poll(): Promise<void> {
    const { settings, runs, suspects, outage, places } = this.#deps;
    const stuck = new Set<string>();
    try {
      while (!runs.stopping && !suspects.isTrial && !outage.isAway) {
        const { room } = runs;
        // Without room, assume that tasks wait. The next poll with room will check.
        if (room === 0) places.mayWait = true;
        const rows = room === 0 ? [] : await this.#rows(stuck, room);
        if (room > 0) places.mayWait = rows.length > 0 || stuck.size > 0;
        if (rows.length === 0 || stuck.size >= maxStuck) break;
        for (const row of await this.#beginAll(rows.slice(0, room))) stuck.add(nameOf(row.task));
      }
    } catch (cause) {
      places.mayWait = true;
      if (!runs.stopping && !(await outage.failed(cause)))
        settings.logger.error("Queue poll failed; retrying", { cause });
    }
    // Poll, unless only this process queues tasks and knows that no task waits.
    if (places.mayWait || settings.store.exclusive !== true) this.#poller.after(settings.pollInterval);
  }

  async #rows(stuck: ReadonlySet<string>, max: number): Promise<readonly DueFeature[]> {
    const { agents, settings, standing } = this.#deps;
    const limit = Math.min(max, pageSize) + stuck.size;
    const query = {
      feature: queueFeature,
      agents: standing.active(agents.keys()),
      now: Number.MAX_SAFE_INTEGER,
      limit,
    };
    return (await settings.store.dueFeatures(query)).filter(({ task }) => !stuck.has(nameOf(task)));
  }

  /** Starts the tasks of these rows. Returns the rows that stay in the queue. */
  async #beginAll(rows: readonly DueFeature[]): Promise<readonly DueFeature[]> {
    const begun = await Promise.all(rows.map((row) => this.#begin(row, rows.length > 1)));
    const left = rows.filter((_row, at) => begun[at] === false);
    // An item that cannot be stored fails all items in the same transaction.
    const failed = left.filter(({ task }) => rows.length > 1 && this.#backoff.hasFailed(task.taskId));
    const stuck = left.filter((row) => !failed.includes(row));
    for (const row of failed) if (!(await this.#begin(row))) stuck.push(row);
    return stuck;
  }

  /** Starts the task of a row. `false`: the row stays in the queue. `again`: if this fails, the caller tries this row again alone. */
  async #begin({ task, key, value, due }: DueFeature, again = false): Promise<boolean> {
    const { settings, agents, committer, takeover } = this.#deps;
    const hosted = agents.get(task.agent);
    if (hosted === undefined || !this.#backoff.isDue(task.taskId)) return false;
    const head = await settings.store.head(task, task.taskId);
    if (head === undefined) return true;
    const row = { effect: "feature", feature: queueFeature, key } as const;
    const leave: FeatureEffect = { ...row, op: "delete", if: { value, due } };
    if (head.run !== undefined || isTerminal(head.state)) {
      // If the process that started the task has queued it again at the same place, that row stays.
      return (await committer.append({ task, fence: head.fence, expect: head.seq, records: [], effects: [leave] })).ok;
    }
    const run = queuedJson.read(value);
    const begun = await this.#backoff.guard(head, () => takeover.begin(hosted, head, run, leave, due), again);
    return begun !== undefined;
  }
}

function nameOf(task: TaskKey): string {
  return `${task.agent}\0${task.taskId}`;
}
