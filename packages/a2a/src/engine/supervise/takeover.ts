import { A2AError } from "../../model/index.ts";
import type { AppendOutcome, StoredRun, TaskHead } from "../../store/index.ts";
import type { ByteBudget } from "../../protocol/index.ts";
import type { Committer } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import { safeSentences, type Run, type TaskRunInit } from "../run/index.ts";
import { giveUp } from "./give-up.ts";
import { readLostRun } from "./lost-run.ts";
import type { Runs } from "./runs.ts";

export interface TakeoverInit {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly runs: Pick<Runs, "start" | "has" | "stopping" | "endTask">;
  readonly budget: ByteBudget;
}

type Claimed = Extract<AppendOutcome, { readonly ok: true }>;

/** How often in a row processes crashed with a run, and whether the last time it had been started alone. */
export function crashesOf(
  { run, holder }: TaskHead,
  self: string,
): { readonly count: number; readonly alone: boolean } {
  const { deaths = 0, alone = false } = run ?? {};
  // A run that this very process had and lost is no crash.
  return holder === self ? { count: Math.max(0, deaths - 1), alone: false } : { count: deaths, alone };
}

/** Takes over one lost task: takes its lease, reads what its run needs, and starts it. */
export class Takeover {
  readonly #init: TakeoverInit;

  constructor(init: TakeoverInit) {
    this.#init = init;
  }

  /** `undefined` where there is no room for it now, or another process was quicker. */
  async resume(hosted: HostedAgent, head: TaskHead): Promise<Run | undefined> {
    const { budget } = this.#init;
    const { owner } = head.task;
    if (head.run === undefined || !budget.tryTake(owner, head.bytes)) return undefined;
    let run: Run | undefined;
    try {
      run = await this.#start(hosted, head, head.run);
      return run;
    } finally {
      // A run gives it back when it is over.
      if (run === undefined) budget.give(owner, head.bytes);
    }
  }

  async #start(hosted: HostedAgent, head: TaskHead, lost: StoredRun): Promise<Run | undefined> {
    const { runs, settings } = this.#init;
    const next = nextAttempt(lost, crashesOf(head, settings.lease.holder).count);
    const claimed = await this.#claim(head, next);
    if (!claimed.ok) return undefined;
    const init = await this.#read(hosted, head, next, claimed);
    if (init === undefined) return undefined;
    const run = runs.start(init);
    const { agent, taskId } = head.task;
    settings.logger.info("A task is resumed", { agent, taskId, turn: next.turn, attempt: next.attempt });
    return run;
  }

  #claim({ task, fence }: TaskHead, run: StoredRun): Promise<AppendOutcome> {
    const { committer, settings } = this.#init;
    const { clock, lease } = settings;
    const now = clock.now();
    return committer.append({
      task,
      fence,
      records: [],
      effects: [
        { effect: "lease", op: "revoke" },
        { effect: "lease", op: "acquire", holder: lease.holder, now, until: now + lease.ttl },
        { effect: "run", run },
      ],
    });
  }

  /** A task whose log cannot be read is given up; where the store fails it is handed back, and that error is thrown. */
  async #read(hosted: HostedAgent, head: TaskHead, run: StoredRun, claimed: Claimed): Promise<TaskRunInit | undefined> {
    const { settings, runs } = this.#init;
    try {
      return await readLostRun(settings.store, hosted, head, run, claimed);
    } catch (cause) {
      const now = { ...head, fence: claimed.fence };
      if (cause instanceof A2AError && cause.code === "Unavailable") {
        await this.#handBack(now, head.run ?? run);
        throw cause;
      }
      await giveUp(settings, runs, now, safeSentences.unreadable, cause);
      return undefined;
    }
  }

  async #handBack({ task, fence }: TaskHead, run: StoredRun): Promise<void> {
    const effects = [
      { effect: "run", run },
      { effect: "lease", op: "release" },
    ] as const;
    await this.#init.committer.append({ task, fence, records: [], effects });
  }
}

/** The run as it is stored while it is tried again: if the process crashes now, that is one crash more. */
function nextAttempt({ turn, input, attempt }: StoredRun, crashes: number): StoredRun {
  const next = { turn, input, attempt: attempt + 1, deaths: crashes + 1 };
  return crashes > 0 ? { ...next, alone: true } : next;
}
