import { taskFields } from "@parley/a2a/internal/protocol/index";
import {
  delegationFeature,
  waitFeature,
  type ClaimPosition,
  type ClaimQuery,
  type TaskHead,
} from "../../store/index.ts";
import { hasAskedForOther, hasWaits, safeSentences, type Run } from "../run/index.ts";
import type { EngineSettings } from "../shared/options.ts";
import type { LeaseWatch } from "./lease-watch.ts";
import type { Outage } from "./outage.ts";
import { shuffled } from "./due.ts";
import { crashesOf, maxAtOnce, Suspects } from "./suspects.ts";
import { giveUp, type SuspendingOption, type Takeover, type TakeoverInit } from "./takeover.ts";

/** How many lost tasks are read at a time: more, where those of many processes are. */
const [pageSize, largePage] = [100, 500];
/** How many agents that are not hosted here are named in the log. */
const maxNamed = 20;

interface RecoveryInit extends Omit<TakeoverInit, "committer" | "budget" | "putBack"> {
  readonly leaseWatch: LeaseWatch;
  readonly outage: Pick<Outage, "isAway" | "failed">;
  readonly takeover: Pick<Takeover, "resume" | "endAsked" | "suspend">;
  /** No task is on trial any more. */
  readonly onTried: () => void;
}

/**
 * Takes over tasks whose process is gone. A process may have crashed because of one of its tasks. So taking a task over
 * counts a crash for it (`StoredRun.deaths`) until something new of it is stored; one that goes on for a while has outlived all of its crashes.
 * Tasks with a crash on record that they did not outlive are started a few at a time, more and more while nothing crashes, and nothing else
 * is started meanwhile. A task that was started alone, and has `maxDeaths` of these crashes, is suspended: an operator decides.
 */
export class Recovery {
  readonly #init: RecoveryInit;
  readonly #takeover: Pick<Takeover, "resume" | "endAsked" | "suspend">;
  readonly #backoff: Backoff;
  readonly #suspects: Suspects;
  #isCrowded = false;
  /** What the scan that is under way has taken over without a crash on record. */
  #resumed: Run[] = [];
  /** Agents with lost tasks that are not hosted here and were named in the log. */
  readonly #named = new Set<string>();
  #hasScanned = false;
  /** How many suspended tasks the first scan has found. */
  #suspendedCount = 0;

  constructor(init: RecoveryInit) {
    const { settings, runs } = init;
    this.#init = init;
    this.#takeover = init.takeover;
    this.#backoff = new Backoff(init, "A lost task could not be taken over, and will be tried again later");
    const onTried = (): void => {
      if (!this.isTrial) init.onTried();
    };
    this.#suspects = new Suspects({
      clock: settings.clock,
      runs,
      resume: (head, alone) => this.#resume(head, false, alone),
      onTried,
    });
  }

  /** Whether a task is on trial that may have caused a crash, or lost tasks were not read yet: one that is started now would be taken for it. */
  get isTrial(): boolean {
    return !this.#hasScanned || this.#suspects.busy;
  }

  /** Before another run begins. `undefined`: no task is tried alone. */
  joinTrial(): Promise<void> | undefined {
    return this.#suspects.join();
  }

  /** Whether the last scan ended because there was no room for another run. */
  get isCrowded(): boolean {
    return this.#isCrowded;
  }

  /** Reads all tasks that may be taken over, page by page. `every`: also those whose leases have not expired. */
  async scan(every = false): Promise<void> {
    this.#isCrowded = false;
    this.#resumed = [];
    try {
      await this.#scanAll(every);
    } finally {
      this.#suspects.watch(this.#resumed);
      this.#resumed = [];
    }
  }

  async #scanAll(every: boolean): Promise<void> {
    const { leaseWatch } = this.#init;
    const { all, now, holders } = leaseWatch.begin(every);
    const ever = Number.MAX_SAFE_INTEGER;
    // What was released comes first: it waits for nothing.
    if (!(await this.#scanFor({ now: all ? ever : now }))) return;
    if (holders.length > 0 && !(await this.#scanFor({ now: ever, holders }))) return;
    leaseWatch.end();
    if (all) await this.#reportStranded(now);
    const isFirst = !this.#hasScanned;
    this.#hasScanned = true;
    if (isFirst) this.#reportSuspended();
    this.#suspects.startNext(this.#resumed);
    if (isFirst && !this.isTrial) this.#init.onTried();
  }

  /** Page by page. `false`: there is no room for more. */
  async #scanFor(wanted: Pick<ClaimQuery, "now" | "holders">): Promise<boolean> {
    const { settings, agents, leaseWatch, runs } = this.#init;
    const counts = settings.store.nodes !== undefined;
    const query = { ...wanted, agents: [...agents.keys()], limit: counts ? largePage : pageSize };
    let after: ClaimPosition | undefined;
    do {
      const page = await settings.store.claimable({ ...query, ...(after && { after }) });
      if (!this.#hasScanned) this.#suspendedCount += page.heads.filter(({ run }) => run?.suspended === true).length;
      const lost = page.heads.filter(
        (head) => !runs.has(head.task.taskId) && leaseWatch.isExpired(head) && this.#isDue(head),
      );
      // Other processes read the same page.
      if (!(await this.#recoverAll(counts ? shuffled(lost) : lost))) return false;
      after = page.next;
    } while (after !== undefined);
    return true;
  }

  /** Many at a time: a process may have left thousands. `false`: there is no room for more. */
  async #recoverAll(lost: readonly TaskHead[]): Promise<boolean> {
    const { runs } = this.#init;
    for (let at = 0; at < lost.length;) {
      if (runs.stopping || this.#init.outage.isAway) return false;
      this.#isCrowded = runs.room === 0;
      if (this.#isCrowded) return false;
      const next = lost.slice(at, at + Math.min(maxAtOnce, runs.room));
      await Promise.all(next.map((head) => this.#recover(head, next.length > 1)));
      // One that cannot be stored fails those that are stored together with it.
      const failed = next.filter(({ task }) => this.#backoff.hasFailed(task.taskId));
      if (next.length > 1) for (const head of failed) await this.#recover(head);
      at += next.length;
    }
    return true;
  }

  #isDue({ task: { agent, taskId }, run }: TaskHead): boolean {
    const { agents, runs } = this.#init;
    if (!agents.has(agent) || run === undefined || run.suspended === true) return false;
    return !runs.has(taskId) && !this.#suspects.has(taskId) && this.#backoff.isDue(taskId);
  }

  /** `again`: where it fails, it is tried again alone. */
  async #recover(head: TaskHead, again = false): Promise<void> {
    const { settings, runs } = this.#init;
    if (await this.#hasAsked(head)) return this.#endAsked(head, again);
    if (!this.#isResumable(head) && !(await this.#isResting(head))) {
      // Its process may only have been busy. Nothing can take the end of a task back.
      if (!this.#init.leaseWatch.isLongExpired(head)) return;
      await this.#backoff.guard(head, () => giveUp(settings, runs, head, safeSentences.lost), again);
      return;
    }
    const option = this.#reasonToSuspend(head);
    if (option !== undefined) await this.#backoff.guard(head, () => this.#takeover.suspend(head, option), again);
    else {
      const { count } = crashesOf(head, settings.lease);
      // Beside a task on trial, it could be what crashes.
      if (count > 0 || this.#suspects.busy) return this.#suspects.add(head, count);
      const run = await this.#resume(head, again);
      if (run !== undefined) this.#resumed.push(run);
    }
  }

  /** Whether the turn is over by its question, although its run is not: that of a delegation, or of an agent that cannot be called again. */
  async #hasAsked(head: TaskHead): Promise<boolean> {
    if (head.state !== "TASK_STATE_INPUT_REQUIRED" || head.run === undefined) return false;
    if (await hasAskedForOther(this.#init.settings.store, head.task, head.run)) return true;
    return this.#init.agents.get(head.task.agent)?.agent.resumable !== true && !(await this.#isResting(head));
  }

  async #endAsked(head: TaskHead, again: boolean): Promise<void> {
    const hosted = this.#init.agents.get(head.task.agent);
    if (hosted !== undefined && !this.#init.leaseWatch.isBack(head))
      await this.#backoff.guard(head, () => this.#takeover.endAsked(hosted, head), again);
  }

  #isResumable({ task }: TaskHead): boolean {
    return this.#init.agents.get(task.agent)?.agent.resumable === true;
  }

  /** The option whose limit is reached. `undefined`: none is, and the task is tried again. */
  #reasonToSuspend(head: TaskHead): SuspendingOption | undefined {
    const { lease } = this.#init.settings;
    const { maxDeaths, maxAttempts } = lease;
    const { all, count, alone } = crashesOf(head, lease);
    if (alone && count >= maxDeaths) return "lease.maxDeaths";
    return all >= maxAttempts ? "lease.maxAttempts" : undefined;
  }

  /** Whether the turn did nothing but wait, for another agent, an authorization, a time or an event, so that any agent can be called again. */
  async #isResting({ task, state, run }: TaskHead): Promise<boolean> {
    const { authorizations, store } = this.#init.settings;
    if ((await store.features(task, task.taskId, delegationFeature)).length > 0) return true;
    if (run !== undefined && (await hasWaits(store, task, run.turn))) return true;
    return state === "TASK_STATE_AUTH_REQUIRED" && (await authorizations?.isAwaited(task)) === true;
  }

  /** `undefined` when it cannot be taken over now. */
  #resume(head: TaskHead, again = false, alone = false): ReturnType<Takeover["resume"]> {
    const hosted = this.#init.agents.get(head.task.agent);
    if (hosted === undefined || this.#init.leaseWatch.isBack(head)) return Promise.resolve(undefined);
    return this.#backoff.guard(head, () => this.#takeover.resume(hosted, head, alone), again);
  }

  /** The process that suspended a task may have died before it could log that. */
  #reportSuspended(): void {
    const fields = { tasks: this.#suspendedCount, command: "parley db suspended" };
    if (fields.tasks > 0) this.#init.settings.logger.warn("Suspended tasks wait for an operator", fields);
  }

  /** Logs each agent once that is not hosted here and has lost tasks. `now`: wall time by which their leases have expired. */
  async #reportStranded(now: number): Promise<void> {
    if (this.#named.size >= maxNamed) return;
    const { agents, settings } = this.#init;
    const known = [...agents.keys(), ...this.#named];
    for (const { agent, tasks } of await settings.store.stranded({ now, agents: known, limit: maxNamed })) {
      this.#named.add(agent);
      settings.logger.warn("Lost tasks wait for an agent that is not hosted here", { agent, tasks });
    }
    // A task that waits has no run that could be lost.
    for (const { task } of await settings.store.dueFeatures({ feature: waitFeature, now, limit: pageSize })) {
      const { agent } = task;
      if (agents.has(agent) || this.#named.has(agent) || this.#named.size >= maxNamed) continue;
      this.#named.add(agent);
      const head = await settings.store.head(task, task.taskId);
      const about = taskFields({ ...task, contextId: head?.contextId });
      settings.logger.warn("Tasks whose time is over wait for an agent that is not hosted here", about);
    }
  }
}

/** The longest pause before a task is tried again, in milliseconds. */
const longestPause = 60 * 60_000;
/** How many failed tasks are remembered. */
const maxFailures = 10_000;

interface Failure {
  readonly tries: number;
  /** When it is tried again, on the monotonic clock. */
  readonly due: number;
}

interface BackoffInit {
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "logger">;
  readonly outage: Pick<Outage, "failed">;
}

/**
 * Tries a task that could not be taken over again, after longer and longer pauses, so that other tasks need not wait for it.
 * The first failure is logged. What fails because the database is unavailable is no failure of the task.
 */
export class Backoff {
  readonly #settings: BackoffInit["settings"];
  readonly #outage: BackoffInit["outage"];
  readonly #failures = new Map<string, Failure>();

  readonly #text: string;

  /** `text`: what is logged of the first failure. */
  constructor({ settings, outage }: BackoffInit, text: string) {
    this.#settings = settings;
    this.#outage = outage;
    this.#text = text;
  }

  isDue(taskId: string): boolean {
    return (this.#failures.get(taskId)?.due ?? -Infinity) <= this.#settings.clock.elapsed();
  }

  /** Whether the last try failed. */
  hasFailed(taskId: string): boolean {
    return this.#failures.has(taskId);
  }

  /** The result of `work`, or `undefined` when it fails. `again`: it is tried again at once then, and does not count. */
  async guard<Result>(
    { task, contextId }: Pick<TaskHead, "task"> & { readonly contextId?: string },
    work: () => Promise<Result>,
    again = false,
  ): Promise<Result | undefined> {
    const { taskId } = task;
    try {
      const result = await work();
      this.#failures.delete(taskId);
      return result;
    } catch (cause) {
      // It is tried again as soon as the database is back.
      if (await this.#outage.failed(cause)) return undefined;
      const { logger } = this.#settings;
      if (again) {
        this.#remember(taskId, { due: -Infinity, tries: this.#failures.get(taskId)?.tries ?? 0 });
        return undefined;
      }
      const first = this.#note(taskId) === 1;
      if (first) logger.error(this.#text, { ...taskFields({ ...task, contextId }), cause });
      return undefined;
    }
  }

  /** Returns how often the task has failed by now. */
  #note(taskId: string): number {
    const { clock, lease } = this.#settings;
    const tries = (this.#failures.get(taskId)?.tries ?? 0) + 1;
    const pause = Math.min(longestPause, lease.ttl * 2 ** (tries - 1));
    this.#remember(taskId, { tries, due: clock.elapsed() + pause });
    return tries;
  }

  #remember(taskId: string, failure: Failure): void {
    if (this.#failures.size >= maxFailures) this.#failures.clear();
    this.#failures.set(taskId, failure);
  }
}
