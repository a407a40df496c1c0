import { taskFields } from "@parley/a2a/internal/protocol/index";
import {
  delegationFeature,
  waitFeature,
  type ClaimPosition,
  type ClaimQuery,
  type TaskHead,
} from "../../store/index.ts";
import { hasAskedForOther, hasWaits, safeSentences, type Run } from "../run/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { LeaseWatch } from "./leases.ts";
import type { Outage } from "./outage.ts";
import { Backoff, shuffled } from "./polling.ts";
import type { Runs } from "./runs.ts";
import type { Standing } from "./standing.ts";
import { crashesOf, maxAtOnce, type Starter, type Suspects } from "./suspects.ts";
import { giveUp, type SuspendingOption, type Takeover } from "./takeover.ts";

/** How many lost tasks are read at a time. The larger page is for stores that count processes. */
const [pageSize, largePage] = [100, 500];
/** How many agents that are not hosted here are named in the log. */
const maxNamed = 20;

interface RecoveryDeps {
  readonly settings: EngineSettings;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly runs: Pick<Runs, "has" | "stopping" | "room" | "endTask">;
  readonly leaseWatch: LeaseWatch;
  readonly outage: Pick<Outage, "isAway" | "failed">;
  readonly takeover: Pick<Takeover, "resume" | "endAsked" | "suspend">;
  readonly suspects: Suspects;
  readonly standing: Pick<Standing, "active">;
}

/**
 * Takes over tasks whose process is gone. One of these tasks may have crashed the process. So each takeover counts a crash for its
 * task (`StoredRun.deaths`) until the task stores something new; a task that runs for a while has outlived all of its crashes.
 * Tasks with crashes that they did not outlive start a few at a time, more and more while nothing crashes. During that time, no other
 * task starts. A task that was started alone and has `maxDeaths` such crashes is suspended until an operator decides.
 */
export class Recovery {
  readonly #deps: RecoveryDeps;
  readonly #backoff: Backoff;
  readonly #starter: Starter;
  #isCrowded = false;
  /** Runs without recorded crashes that the current scan has taken over. */
  #resumed: Run[] = [];
  /** Agents that have lost tasks, are not hosted by this process, and were already named in the log. */
  readonly #named = new Set<string>();
  /** How many suspended tasks the first scan has found. */
  #suspendedCount = 0;

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
    this.#backoff = new Backoff(deps, "Failed to take over a lost task; retrying later");
    this.#starter = { runs: deps.runs, resume: (head, alone) => this.#resume(head, false, alone) };
  }

  /** Whether the last scan ended because there was no room for another run. */
  get isCrowded(): boolean {
    return this.#isCrowded;
  }

  /** Reads all tasks that may be taken over, page by page. `every`: also checks tasks whose leases have not expired. */
  async scan(every = false): Promise<void> {
    this.#isCrowded = false;
    this.#resumed = [];
    try {
      await this.#scanAll(every);
    } finally {
      void this.#deps.suspects.proven(this.#resumed);
      this.#resumed = [];
    }
  }

  async #scanAll(every: boolean): Promise<void> {
    const { leaseWatch, suspects } = this.#deps;
    const { all, now, holders } = leaseWatch.begin(every);
    const ever = Number.MAX_SAFE_INTEGER;
    // Scan for released tasks first, because they need not wait for a lease to expire.
    if (!(await this.#scanFor({ now: all ? ever : now }))) return;
    if (holders.length > 0 && !(await this.#scanFor({ now: ever, holders }))) return;
    leaseWatch.end();
    if (all) await this.#reportStranded(now);
    const isFirst = suspects.scanned();
    if (isFirst) this.#reportSuspended();
    suspects.startNext(this.#starter, this.#resumed);
    if (isFirst && !suspects.isTrial) suspects.tried.emit();
  }

  /** Scans page by page. `false`: no room for more runs. */
  async #scanFor(wanted: Pick<ClaimQuery, "now" | "holders">): Promise<boolean> {
    const { settings, agents, leaseWatch, runs, suspects, standing } = this.#deps;
    const counts = settings.store.nodes !== undefined;
    const query = { ...wanted, agents: standing.active(agents.keys()), limit: counts ? largePage : pageSize };
    let after: ClaimPosition | undefined;
    do {
      const page = await settings.store.claimable({ ...query, ...(after && { after }) });
      if (!suspects.hasScanned) this.#suspendedCount += page.heads.filter(({ run }) => run?.suspended === true).length;
      const lost = page.heads.filter(
        (head) => !runs.has(head.task.taskId) && leaseWatch.isExpired(head) && this.#isDue(head),
      );
      // Shuffle the tasks if other processes read the same page.
      if (!(await this.#recoverAll(counts ? shuffled(lost) : lost))) return false;
      after = page.next;
    } while (after !== undefined);
    return true;
  }

  /** Takes over many tasks at a time, because a process may have left thousands. `false`: no room for more runs. */
  async #recoverAll(lost: readonly TaskHead[]): Promise<boolean> {
    const { runs } = this.#deps;
    for (let at = 0; at < lost.length;) {
      if (runs.stopping || this.#deps.outage.isAway) return false;
      this.#isCrowded = runs.room === 0;
      if (this.#isCrowded) return false;
      const next = lost.slice(at, at + Math.min(maxAtOnce, runs.room));
      await Promise.all(next.map((head) => this.#recover(head, next.length > 1)));
      // An item that cannot be stored fails all items in the same transaction.
      const failed = next.filter(({ task }) => this.#backoff.hasFailed(task.taskId));
      if (next.length > 1) for (const head of failed) await this.#recover(head);
      at += next.length;
    }
    return true;
  }

  #isDue({ task: { agent, taskId }, run }: TaskHead): boolean {
    const { agents, runs, suspects } = this.#deps;
    if (!agents.has(agent) || run === undefined || run.suspended === true) return false;
    return !runs.has(taskId) && !suspects.has(taskId) && this.#backoff.isDue(taskId);
  }

  async #recover(head: TaskHead, again = false): Promise<void> {
    const { settings, runs, suspects } = this.#deps;
    if (await this.#hasAsked(head)) return this.#endAsked(head, again);
    if (!this.#isResumable(head) && !(await this.#isResting(head))) {
      // The task's process may only have been busy, and ending a task is final.
      if (!this.#deps.leaseWatch.isLongExpired(head)) return;
      await this.#backoff.guard(head, () => giveUp(settings, runs, head, safeSentences.lost), again);
      return;
    }
    const option = this.#reasonToSuspend(head);
    if (option !== undefined) await this.#backoff.guard(head, () => this.#deps.takeover.suspend(head, option), again);
    else {
      const { count } = crashesOf(head, settings.lease);
      // During the trial of another task, a crash could be caused by this one.
      if (count > 0 || suspects.busy) return suspects.add(head, count);
      const run = await this.#resume(head, again);
      if (run !== undefined) this.#resumed.push(run);
    }
  }

  /**
   * Whether the turn has ended with its question, although its run has not ended. Such a turn is not called again, even if its agent is
   * resumable, because the state that it set with the question is for the answer. A turn with open delegations is called again to close them.
   */
  async #hasAsked(head: TaskHead): Promise<boolean> {
    if (head.state !== "TASK_STATE_INPUT_REQUIRED" || head.run === undefined) return false;
    return (await hasAskedForOther(this.#deps.settings.store, head.task, head.run)) || !(await this.#isResting(head));
  }

  async #endAsked(head: TaskHead, again: boolean): Promise<void> {
    const hosted = this.#deps.agents.get(head.task.agent);
    if (hosted !== undefined && !this.#deps.leaseWatch.isBack(head))
      await this.#backoff.guard(head, () => this.#deps.takeover.endAsked(hosted, head), again);
  }

  #isResumable({ task }: TaskHead): boolean {
    return this.#deps.agents.get(task.agent)?.agent.resumable === true;
  }

  /** The option whose limit is reached. `undefined`: none, and the task is retried. */
  #reasonToSuspend(head: TaskHead): SuspendingOption | undefined {
    const { lease } = this.#deps.settings;
    const { maxDeaths, maxAttempts } = lease;
    const { all, count, alone } = crashesOf(head, lease);
    if (alone && count >= maxDeaths) return "lease.maxDeaths";
    return all >= maxAttempts ? "lease.maxAttempts" : undefined;
  }

  /** Whether the turn only waited, for another agent, an authorization, a time or an event. Such a turn can always be called again. */
  async #isResting({ task, state, run }: TaskHead): Promise<boolean> {
    const { authorizations, store } = this.#deps.settings;
    if ((await store.features(task, task.taskId, delegationFeature)).length > 0) return true;
    if (run !== undefined && (await hasWaits(store, task, run.turn))) return true;
    return state === "TASK_STATE_AUTH_REQUIRED" && (await authorizations?.isAwaited(task)) === true;
  }

  /** Takes a task over. `undefined`: this is not possible now. */
  #resume(head: TaskHead, again = false, alone = false): ReturnType<Takeover["resume"]> {
    const hosted = this.#deps.agents.get(head.task.agent);
    if (hosted === undefined || this.#deps.leaseWatch.isBack(head)) return Promise.resolve(undefined);
    return this.#backoff.guard(head, () => this.#deps.takeover.resume(hosted, head, alone), again);
  }

  /** Logs the number of suspended tasks, because a process that suspended a task may have died before it could log that. */
  #reportSuspended(): void {
    const fields = { tasks: this.#suspendedCount, command: "parley ops list --suspended" };
    if (fields.tasks > 0) this.#deps.settings.logger.warn("Suspended tasks wait for an operator", fields);
  }

  /** Logs each agent once that has lost tasks but is not hosted by this process. `now`: wall time at which their leases have expired. */
  async #reportStranded(now: number): Promise<void> {
    if (this.#named.size >= maxNamed) return;
    const { agents, settings } = this.#deps;
    const known = [...agents.keys(), ...this.#named];
    for (const { agent, tasks } of await settings.store.stranded({ now, agents: known, limit: maxNamed })) {
      this.#named.add(agent);
      settings.logger.warn("Lost tasks wait for an agent that is not hosted here", { agent, tasks });
    }
    // Also search for waiting tasks, which have no run that could be lost.
    for (const { task } of await settings.store.dueFeatures({ feature: waitFeature, now, limit: pageSize })) {
      const { agent } = task;
      if (agents.has(agent) || this.#named.has(agent) || this.#named.size >= maxNamed) continue;
      this.#named.add(agent);
      const head = await settings.store.head(task, task.taskId);
      const about = taskFields({ ...task, contextId: head?.contextId });
      settings.logger.warn("Due tasks wait for an agent that is not hosted here", about);
    }
  }
}
