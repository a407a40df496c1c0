import type { ClaimPosition, TaskHead } from "../../store/index.ts";
import { safeSentences } from "../run/index.ts";
import { Backoff } from "./backoff.ts";
import { giveUp } from "./give-up.ts";
import type { LeaseWatch } from "./lease-watch.ts";
import { StrandedAgents } from "./stranded-agents.ts";
import { Suspects } from "./suspects.ts";
import { crashesOf, Takeover, type TakeoverInit } from "./takeover.ts";

/** How many lost tasks are read at a time. */
const pageSize = 100;

interface RecoveryInit extends TakeoverInit {
  readonly leaseWatch: LeaseWatch;
}

/**
 * Takes over tasks whose process is gone. A process may have crashed because of one of its tasks. So taking a task over
 * counts a crash for it (`Run.deaths` in the store) until something new of it is stored. Tasks with a crash on record are
 * started one at a time, so that only the one to blame is counted another; a task that made the process crash twice is
 * given up.
 */
export class Recovery {
  readonly #init: RecoveryInit;
  readonly #takeover: Takeover;
  readonly #backoff: Backoff;
  readonly #suspects: Suspects;
  readonly #stranded: StrandedAgents;

  constructor(init: RecoveryInit) {
    const { settings, agents, runs } = init;
    this.#init = init;
    this.#takeover = new Takeover(init);
    this.#backoff = new Backoff(settings);
    this.#suspects = new Suspects({ clock: settings.clock, runs, resume: (head) => this.#resume(head) });
    this.#stranded = new StrandedAgents(settings, agents);
  }

  /** Reads all tasks that may be taken over, page by page. */
  async scan(): Promise<void> {
    const { settings, agents, leaseWatch, runs } = this.#init;
    const { all, now } = leaseWatch.begin();
    const query = { now: all ? Number.MAX_SAFE_INTEGER : now, agents: [...agents.keys()], limit: pageSize };
    let after: ClaimPosition | undefined;
    do {
      const page = await settings.store.claimable({ ...query, ...(after && { after }) });
      for (const head of page.heads) {
        if (runs.stopping) return;
        if (leaseWatch.isExpired(head) && this.#isDue(head)) await this.#recover(head);
      }
      after = page.next;
    } while (after !== undefined);
    leaseWatch.end();
    if (all) await this.#stranded.report(now);
    this.#suspects.startNext();
  }

  #isDue({ task: { agent, taskId }, run }: TaskHead): boolean {
    const { agents, runs } = this.#init;
    if (!agents.has(agent) || run === undefined) return false;
    return !runs.has(taskId) && !this.#suspects.has(taskId) && this.#backoff.isDue(taskId);
  }

  async #recover(head: TaskHead): Promise<void> {
    const { settings, runs } = this.#init;
    const sentence = this.#reasonToGiveUp(head);
    if (sentence !== undefined) await this.#backoff.guard(head, () => giveUp(settings, runs, head, sentence));
    else if (this.#crashes(head).count === 0) await this.#resume(head);
    else this.#suspects.add(head);
  }

  #reasonToGiveUp(head: TaskHead): string | undefined {
    const { maxDeaths, maxAttempts } = this.#init.settings.lease;
    const { count, alone } = this.#crashes(head);
    if (this.#init.agents.get(head.task.agent)?.agent.resumable !== true) return safeSentences.lost;
    if (alone && count >= maxDeaths) return safeSentences.fatal;
    return count >= maxAttempts ? safeSentences.gaveUp : undefined;
  }

  #crashes(head: TaskHead): ReturnType<typeof crashesOf> {
    return crashesOf(head, this.#init.settings.lease.holder);
  }

  /** `undefined` when it cannot be taken over now. */
  #resume(head: TaskHead): ReturnType<Takeover["resume"]> {
    const hosted = this.#init.agents.get(head.task.agent);
    if (hosted === undefined) return Promise.resolve(undefined);
    return this.#backoff.guard(head, () => this.#takeover.resume(hosted, head));
  }
}
