import { deferred, type Deferred } from "../../base/index.ts";
import { A2AError, type Message, type NewRecord } from "../../model/index.ts";
import type { ByteBudget } from "../../protocol/index.ts";
import type { AppendOutcome, ClaimPosition, Run as StoredRun, TaskHead } from "../../store/index.ts";
import type { Committer } from "../log/committer.ts";
import type { LeaseWatch } from "./lease-watch.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import { statusRecord, type StoredCall } from "../log/records.ts";
import { safeSentences, type Run, type RunInit } from "../run/run.ts";

/** How many lost tasks are read at a time. */
const pageSize = 100;
/** How long a task that was started alone runs before the next one is started, in milliseconds. */
const trialTime = 5_000;
/** How many of these are queued; later looks find the others. */
const mostSuspects = 1_000;
/** The longest pause before a task that could not be taken over is tried again, in milliseconds. */
const longestPause = 60 * 60_000;
/** How many of these are remembered. */
const mostTroubles = 10_000;
/** How many agents that are not hosted here are named in the log. */
const mostNamed = 20;

export interface RecoveryRooms {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly leases: LeaseWatch;
  readonly budget: ByteBudget;
  readonly isRunning: (taskId: string) => boolean;
  readonly isStopping: () => boolean;
  readonly start: (init: RunInit) => Run;
  readonly endTask: (head: TaskHead, record: NewRecord, fence: number) => Promise<boolean>;
}

/** A task that could not be taken over. */
interface Trouble {
  readonly tries: number;
  /** Monotonic time. */
  readonly after: number;
}

/**
 * Takes over tasks whose process is gone (D6). A process may have ended because of one of its tasks. So taking a task over
 * counts a death for it until something new of it is stored. Tasks with a death on record are started one at a time, so
 * that only the one to blame is counted another; a task that the process has died of twice is given up (D17).
 */
export class Recovery {
  readonly #rooms: RecoveryRooms;
  readonly #suspects = new Map<string, TaskHead>();
  readonly #troubles = new Map<string, Trouble>();
  readonly #named = new Set<string>();
  #trying = false;

  constructor(rooms: RecoveryRooms) {
    this.#rooms = rooms;
  }

  /** Looks at everything that can be taken over, page by page. */
  async look(): Promise<void> {
    const { settings, agents, leases, isStopping } = this.#rooms;
    const { all, now } = leases.begin();
    let after: ClaimPosition | undefined;
    do {
      const query = { now: all ? Number.MAX_SAFE_INTEGER : now, agents: [...agents.keys()], limit: pageSize };
      const page = await settings.store.claimable({ ...query, ...(after && { after }) });
      for (const head of page.heads) {
        if (isStopping()) return;
        if (leases.isOver(head)) await this.#consider(head);
      }
      after = page.next;
    } while (after !== undefined);
    leases.end();
    if (all) await this.#nameStranded(now);
    if (!this.#trying) void this.#tryAlone();
  }

  async #consider(head: TaskHead): Promise<void> {
    const { agents, settings, isRunning } = this.#rooms;
    const { agent, taskId } = head.task;
    const hosted = agents.get(agent);
    if (hosted === undefined || head.run === undefined || isRunning(taskId) || this.#suspects.has(taskId)) return;
    if ((this.#troubles.get(taskId)?.after ?? -Infinity) > settings.clock.elapsed()) return;
    const { deaths = 0, alone } = this.#recordOf(head.run, head);
    if (hosted.agent.resumable !== true) return this.#guarded(head, () => this.#giveUp(head, safeSentences.lost));
    if (alone === true && deaths >= settings.lease.maxDeaths) {
      return this.#guarded(head, () => this.#giveUp(head, safeSentences.fatal));
    }
    if (deaths >= settings.lease.maxAttempts) {
      return this.#guarded(head, () => this.#giveUp(head, safeSentences.gaveUp));
    }
    if (deaths === 0) return this.#guarded(head, async () => void (await this.#takeOver(hosted, head)));
    if (this.#suspects.size < mostSuspects) this.#suspects.set(taskId, head);
  }

  /** A run that this very process had and lost is no death of it. */
  #recordOf({ deaths = 0, alone }: StoredRun, { holder }: TaskHead): Pick<StoredRun, "deaths" | "alone"> {
    if (holder === this.#rooms.settings.lease.holder) return { deaths: Math.max(0, deaths - 1) };
    return { deaths, ...(alone === true && { alone }) };
  }

  /** Starts those under suspicion, each alone. */
  async #tryAlone(): Promise<void> {
    this.#trying = true;
    for (const [taskId, head] of this.#suspects) {
      const hosted = this.#rooms.agents.get(head.task.agent);
      if (hosted !== undefined && !this.#rooms.isStopping()) {
        await this.#guarded(head, async () => {
          const run = await this.#takeOver(hosted, head);
          if (run !== undefined) await this.#watch(run);
        });
      }
      this.#suspects.delete(taskId);
    }
    this.#trying = false;
  }

  /** Until the run has got somewhere, or was survived for a while. */
  async #watch(run: Run): Promise<void> {
    const over: Deferred<void> = deferred();
    const takeBack = this.#rooms.settings.clock.after(trialTime, () => over.resolve());
    await Promise.race([run.proven, run.done, over.promise]);
    takeBack();
    // If the process ends because of the next one, this one is not to blame.
    run.acquit();
    await run.flush().catch(() => {});
  }

  /** A task that cannot be taken over now does not hold up the others. It is logged once, and tried again after longer and longer pauses. */
  async #guarded(head: TaskHead, work: () => Promise<void>): Promise<void> {
    const { agent, taskId } = head.task;
    try {
      await work();
      this.#troubles.delete(taskId);
    } catch (cause) {
      const { logger, clock, lease } = this.#rooms.settings;
      const tries = (this.#troubles.get(taskId)?.tries ?? 0) + 1;
      const pause = Math.min(longestPause, lease.ttl * 2 ** (tries - 1));
      if (this.#troubles.size >= mostTroubles) this.#troubles.clear();
      this.#troubles.set(taskId, { tries, after: clock.elapsed() + pause });
      if (tries === 1) {
        logger.error("A lost task could not be taken over, and will be tried again later", { agent, taskId, cause });
      }
    }
  }

  /** `undefined` where there is no room for it now, or another was quicker. */
  async #takeOver(hosted: HostedAgent, head: TaskHead): Promise<Run | undefined> {
    const { settings, budget } = this.#rooms;
    const { owner } = head.task;
    if (head.run === undefined || !budget.tryTake(owner, head.bytes)) return undefined;
    let started = false;
    try {
      const { deaths = 0 } = this.#recordOf(head.run, head);
      const { turn, input, attempt } = head.run;
      const next = {
        turn,
        input,
        attempt: attempt + 1,
        deaths: deaths + 1,
        ...(deaths > 0 && { alone: true as const }),
      };
      const outcome = await this.#claim(head, next);
      if (!outcome.ok) return undefined;
      const init = await this.#initOf(hosted, head, next, outcome);
      if (init === undefined) return undefined;
      const run = this.#rooms.start(init);
      started = true;
      settings.logger.info("A task is resumed", {
        agent: head.task.agent,
        taskId: head.task.taskId,
        turn,
        attempt: attempt + 1,
      });
      void run.execute();
      return run;
    } finally {
      if (!started) budget.give(owner, head.bytes);
    }
  }

  #claim(head: TaskHead, run: StoredRun): Promise<AppendOutcome> {
    const { committer, settings } = this.#rooms;
    const now = settings.clock.now();
    return committer.append({
      task: head.task,
      fence: head.fence,
      records: [],
      effects: [
        { effect: "lease", op: "revoke" },
        { effect: "lease", op: "acquire", holder: settings.lease.holder, now, until: now + settings.lease.ttl },
        { effect: "run", run },
      ],
    });
  }

  /** What the run needs of its log. A task whose log cannot be read is given up; where the store fails it is handed back. */
  async #initOf(
    hosted: HostedAgent,
    head: TaskHead,
    run: StoredRun,
    claimed: Extract<AppendOutcome, { readonly ok: true }>,
  ): Promise<RunInit | undefined> {
    try {
      return await this.#read(hosted, head, run, claimed);
    } catch (cause) {
      const now = { ...head, fence: claimed.fence };
      if (cause instanceof A2AError && cause.code === "Unavailable") {
        const { run: before = run, task, fence } = now;
        const effects = [
          { effect: "run", run: before },
          { effect: "lease", op: "release" },
        ] as const;
        await this.#rooms.committer.append({ task, fence, records: [], effects });
        throw cause;
      }
      await this.#giveUp(now, safeSentences.unreadable, cause);
      return undefined;
    }
  }

  async #read(
    hosted: HostedAgent,
    { task, contextId, bytes }: TaskHead,
    run: StoredRun,
    { seq, fence }: Extract<AppendOutcome, { readonly ok: true }>,
  ): Promise<RunInit> {
    const { store } = this.#rooms.settings;
    const input = (await store.read(task, task.taskId, { after: run.input - 1, limit: 1 }))?.records[0];
    if (input?.call === undefined) throw new Error("The message of the turn is not in the log");
    const head = await store.head(task, task.taskId);
    if (head === undefined) throw new Error("The task is gone");
    const { state, checkpoint } = head;
    // The first turn made the task: to the agent there was none before, whatever its attempt.
    const before = run.turn === 1 ? undefined : await store.load(task, task.taskId, { artifacts: true });
    return {
      hosted,
      key: task,
      bytes,
      contextId,
      freshContext: false,
      message: messageOf(input.kind, input.json),
      call: JSON.parse(input.call) as StoredCall,
      start: { seq, state, fence, run, mayHaveMessages: true },
      ...(before !== undefined && { task: before.task }),
      ...(checkpoint !== undefined && { checkpoint }),
    };
  }

  /** Nothing stays WORKING for ever: a task that cannot go on fails, and says why. */
  async #giveUp(head: TaskHead, sentence: string, cause?: unknown): Promise<void> {
    const { clock, logger } = this.#rooms.settings;
    const { run, contextId, holder } = head;
    const { agent, taskId } = head.task;
    const { turn = 1, attempt = 1, deaths = 0 } = run ?? {};
    const origin = { taskId, contextId, turn, attempt, extensions: [], trace: undefined };
    const record = statusRecord(
      origin,
      { state: "TASK_STATE_FAILED", message: { parts: [{ text: sentence }] } },
      "system",
      `${taskId}-${turn}-system`,
      Math.max(clock.now(), head.statusTime),
    );
    if (sentence === safeSentences.fatal) {
      logger.error("A task was given up: the process ended each time it was started", { agent, taskId, deaths });
    } else if (cause !== undefined)
      logger.error("A lost task was given up: it cannot be read", { agent, taskId, cause });
    else logger.warn("A task was lost", { agent, taskId, holder, sentence });
    // Under the fence that was seen: the run may have ended its turn, or another process may have taken it over.
    await this.#rooms.endTask(head, record, head.fence);
  }

  /** Says once of each agent that is not hosted here that its tasks wait. */
  async #nameStranded(now: number): Promise<void> {
    const { settings, agents } = this.#rooms;
    if (this.#named.size >= mostNamed) return;
    const known = [...agents.keys(), ...this.#named];
    const stranded = await settings.store.stranded({ now, agents: known, limit: mostNamed });
    for (const { agent, tasks } of stranded) {
      this.#named.add(agent);
      settings.logger.warn("Lost tasks wait for an agent that is not hosted here", { agent, tasks });
    }
  }
}

function messageOf(kind: string, json: string): Message {
  const event = JSON.parse(json) as { history?: readonly Message[] } | Message;
  return kind === "task" ? ((event as { history: readonly Message[] }).history[0] as Message) : (event as Message);
}
