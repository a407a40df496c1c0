import {
  deleteRow,
  queueFeature,
  type AppendOutcome,
  type StoredRun,
  type TaskAppend,
  type TaskEffect,
  type TaskHead,
} from "../../store/index.ts";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import { ChurnMap, Emitter } from "../shared/collections.ts";
import { endOfRun, statusRecord, type StatusInit } from "../log/index.ts";
import { serverIsStopping, tooManyTasks } from "../shared/errors.ts";
import { isQueued, Pace, queueKey, Run, waitingRun, type OwnDeps, type RunDeps, type RunInit } from "../run/index.ts";
import type { Standing } from "./standing.ts";
import type { Suspects } from "./suspects.ts";
import { defined } from "@parley/a2a/internal/base/defined";
import { endsWithin } from "@parley/a2a/internal/base/async";

interface EndOptions {
  readonly extensions?: readonly string[];
  readonly trace?: string | undefined;
  /** The caller who ends the task. Absent: the server does. */
  readonly by?: Principal;
  /** Ends the task only while it has this fence. Default: any. */
  readonly fence?: number;
  /** Ends the task only if this is its last record. Default: any. */
  readonly seq?: number;
  /** Ends the task only if this is its run; `null`: only without a run. Default: any. */
  readonly run?: StoredRun | null;
  /** Effects to store with the last status. Default: none. */
  readonly effects?: readonly TaskEffect[];
}

/** Maximum remembered tasks that wait for an answer to a delegation's question. The oldest are forgotten. */
const maxSuspended = 10_000;

const leaveQueue: TaskEffect = deleteRow(queueFeature, queueKey);

export class Runs {
  readonly over: Emitter<[Run]> = new Emitter();
  readonly rested: Emitter = new Emitter();
  readonly #deps: OwnDeps;
  readonly #suspects: Pick<Suspects, "join">;
  readonly #standing: Pick<Standing, "isDraining">;
  readonly #running = new ChurnMap<string, Run>();
  /** Tasks whose run is about to start, and how often room is reserved for each. */
  readonly #reserved = new Map<string, number>();
  #reservations = 0;
  /** Runs per owner, including messages that start one. Absent: not limited. */
  readonly #owners: Map<string, number> | undefined;
  /** Functions that cancel other agents' tasks, by the task that waits for an answer to a delegation's question. */
  #suspended: Map<string, readonly (() => void)[]> | undefined;
  #stopping = false;

  constructor(deps: RunDeps, suspects: Pick<Suspects, "join">, standing: Pick<Standing, "isDraining">) {
    this.#suspects = suspects;
    this.#standing = standing;
    if (deps.settings.limits.tasksPerCaller !== Infinity) this.#owners = new Map();
    const pace = new Pace(deps.settings.clock);
    this.#deps = { ...deps, pace, onOver: (run: Run) => this.#over(run), onRest: () => this.rested.emit() };
  }

  /** Called before a run outside of trials starts. Resolves once a task on trial no longer counts as alone. `undefined`: no such trial. */
  beforeStart(): Promise<void> | undefined {
    return this.#suspects.join();
  }

  #over(run: Run): void {
    const { taskId, owner } = run.key;
    if (this.#running.get(taskId) === run) this.#running.delete(taskId);
    if (run.cancels.length > 0) this.#keepCancels(run);
    this.leave(owner);
    this.over.emit(run);
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** How many more runs this process has room for. Waiting runs need no room. */
  get room(): number {
    if (this.#standing.isDraining) return 0;
    const runs = this.#deps.settings.limits.runs - this.#reservations;
    const room = runs - this.#running.size;
    // Check each run only if the process seems full, which is rare.
    if (room > 0) return room;
    let busy = 0;
    for (const { phase } of this.#running.values()) busy += Number(!phase.resting);
    return Math.max(0, runs - busy);
  }

  /**
   * Reserves room for the run of a stored task before its lease is taken, so that concurrent checks see the reservation. `start` uses the
   * reservation; call `release` if the run does not start. `false`: no room.
   */
  reserve(taskId: string): boolean {
    if (this.room === 0) return false;
    this.#reserved.set(taskId, (this.#reserved.get(taskId) ?? 0) + 1);
    this.#reservations += 1;
    return true;
  }

  /** Releases a reservation. */
  release(taskId: string): void {
    const count = this.#reserved.get(taskId) ?? 0;
    if (count === 0) return;
    this.#reservations -= 1;
    if (count > 1) this.#reserved.set(taskId, count - 1);
    else this.#reserved.delete(taskId);
  }

  /**
   * Counts a run that is about to start. Call `leave` if the run does not start.
   *
   * @param max - Maximum runs of its owner.
   * @throws A2AError `TooManyRequests` if the owner has reached this maximum.
   */
  enter(owner: string, max: number = this.#deps.settings.limits.tasksPerCaller): void {
    if (this.#owners === undefined) return;
    const count = this.#owners.get(owner) ?? 0;
    if (count >= max) throw tooManyTasks(max);
    this.#owners.set(owner, count + 1);
  }

  leave(owner: string): void {
    const count = this.#owners?.get(owner) ?? 0;
    if (count > 1) this.#owners?.set(owner, count - 1);
    else this.#owners?.delete(owner);
  }

  /** Calls the agent, after `enter` and, for a stored task, `reserve`. Throws `Unavailable` while the server stops. */
  start(init: RunInit): Run {
    if (this.#stopping) throw serverIsStopping();
    const run = new Run(this.#deps, init);
    this.#suspended?.delete(init.key.taskId);
    this.release(init.key.taskId);
    this.#running.set(init.key.taskId, run);
    run.start();
    return run;
  }

  find(taskId: string): Run | undefined {
    return this.#running.get(taskId);
  }

  has(taskId: string): boolean {
    return this.#running.has(taskId) || this.#reserved.has(taskId);
  }

  all(): Iterable<Run> {
    return this.#running.values();
  }

  /** Ends a task from outside its run, even if the agent ignores the signal. `false`: the task had already ended, or was taken over. */
  async endTask(head: TaskHead, status: StatusInit, options: EndOptions): Promise<boolean> {
    const { committer, liveLogs, settings } = this.#deps;
    const { extensions = [], trace, fence, seq, by, run, effects = [] } = options;
    const { task, contextId, statusTime } = head;
    const { turn = 1, attempt = 1 } = head.run ?? waitingRun(head) ?? {};
    const origin = { taskId: task.taskId, contextId, turn, attempt, extensions, trace };
    const messageId = `${task.taskId}-${turn}-system`;
    const record = statusRecord(origin, status, "system", messageId, Math.max(settings.clock.now(), statusTime));
    const item: TaskAppend = {
      task,
      ...defined({ fence, expect: seq, run }),
      records: [record],
      effects: [...endOfRun, ...(isQueued(head) ? [leaveQueue] : []), ...effects],
    };
    const onOutcome = (stored: AppendOutcome): void => {
      if (!stored.ok) return;
      liveLogs.find(task.taskId)?.add(record, stored.seq);
      this.#running.get(task.taskId)?.phase.lose("canceled");
      for (const cancel of this.#suspended?.get(task.taskId) ?? []) cancel();
      this.#suspended?.delete(task.taskId);
    };
    const outcome = await committer.append(item, onOutcome, by && { by });
    return outcome.ok;
  }

  #keepCancels({ key, cancels }: Run): void {
    this.#suspended ??= new Map();
    const [oldest] = this.#suspended.keys();
    if (this.#suspended.size >= maxSuspended && oldest !== undefined) this.#suspended.delete(oldest);
    this.#suspended.set(key.taskId, cancels);
  }

  /** Waits up to `grace` milliseconds for turns to end, then stops the others. */
  async stop(grace: number): Promise<void> {
    this.#stopping = true;
    // The operator may kill the process before the grace period ends.
    for (const { phase } of this.#running.values()) phase.excuse();
    this.#deps.budget.close(serverIsStopping());
    const waiting = [...this.#running.values()].filter(({ phase }) => phase.resting);
    await Promise.all(waiting.map((run) => run.phase.stop()));
    const running = [...this.#running.values()];
    const done = Promise.all(running.map((run) => run.done));
    if (grace > 0 && running.length > 0) await endsWithin(this.#deps.settings.clock, grace, done);
    await Promise.all([...this.#running.values()].map((run) => run.phase.stop()));
    await done;
  }
}
