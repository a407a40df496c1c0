import { Apart } from "@parley/a2a/internal/base/index";
import { A2AError, type NewRecord } from "@parley/a2a/internal/model/index";
import {
  suspendedFeature,
  takeoverFeature,
  waitFeature,
  type AppendOutcome,
  type FeatureEffect,
  type Store,
  type StoredRun,
  type TaskAppend,
  type TaskEffect,
  type TaskHead,
} from "../../store/index.ts";
import { taskFields, type ByteBudget } from "@parley/a2a/internal/protocol/index";
import {
  acquireLease,
  callJson,
  endOfRun,
  endOfSuspendedRun,
  readNextMessage,
  statusRecord,
  type Committer,
} from "../log/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import {
  hasAskedForOther,
  messageOf,
  readResumed,
  safeSentences,
  takeoverJson,
  type QueuedRun,
  type Run,
  type TaskRunInit,
} from "../run/index.ts";
import type { QueuePlaces } from "./queue-places.ts";
import type { Runs } from "./runs.ts";
import { crashesOf, nextAttempt } from "./suspects.ts";
import { defined } from "@parley/a2a/internal/base/defined";

interface TakeoverDeps {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly agents: ReadonlyMap<string, HostedAgent>;
  readonly runs: Pick<
    Runs,
    "enter" | "start" | "has" | "stopping" | "room" | "reserve" | "release" | "endTask" | "beforeStart"
  >;
  readonly budget: ByteBudget;
  readonly places: Pick<QueuePlaces, "putBack">;
}

/** Releases a task whose turn could not start after its lease was taken with `fence`. */
type Undo = (fence: number) => Promise<unknown>;

/** Conditions for taking a task's lease, and records to store before its run. */
type Claim = Pick<TaskAppend, "fence" | "expect" | "records">;

type Claimed = Extract<AppendOutcome, { readonly ok: true }>;

/** How many takeovers of a task are kept. */
const maxTakeovers = 16;

/** The server option whose limit suspends a task. */
export type SuspendingOption = "lease.maxDeaths" | "lease.maxAttempts";

/** Takes over one lost task: takes the lease, reads the data for a run, and starts the run. */
export class Takeover {
  readonly #deps: TakeoverDeps;
  /** Runs that are taken over or woken start outside the context of any call, because an event may come from anywhere. */
  readonly #apart = new Apart();

  constructor(deps: TakeoverDeps) {
    this.#deps = deps;
  }

  /** Resumes a lost task. `undefined`: no room now, or another process has taken the task over. `alone`: no other task starts at the same time. */
  async resume(hosted: HostedAgent, head: TaskHead, alone = false): Promise<Run | undefined> {
    const lost = head.run;
    if (lost === undefined || !this.#takeRoom(head)) return undefined;
    return this.#within(head, () => {
      const next = nextAttempt(lost, crashesOf(head, this.#deps.settings.lease), alone);
      return this.#start(hosted, head, next, [this.#takenOver(head, next)]);
    });
  }

  /** The row that tells operators which process ran the task, because neither log nor lease does. Replaces the row of an older attempt. */
  #takenOver({ holder: from }: TaskHead, { turn, attempt }: StoredRun): TaskEffect {
    const { lease, clock } = this.#deps.settings;
    const time = Math.floor(clock.now());
    const value = takeoverJson.write({ turn, attempt, time, node: lease.holder, ...defined({ from }) });
    // Each turn counts its attempts from 1, so with the attempt alone, rows of a turn would replace rows of the previous turn.
    const key = String((turn * 5 + attempt) % maxTakeovers);
    return { effect: "feature", op: "set", feature: takeoverFeature, key, value };
  }

  /** Continues a waiting task, like `resume`; `noRoom` reports missing room. `waiting`: the task's run. `effects`: stored with the lease. */
  async wake(
    hosted: HostedAgent,
    head: TaskHead,
    waiting: StoredRun,
    effects: readonly TaskEffect[],
  ): Promise<Run | "noRoom" | undefined> {
    if (!this.#takeRoom(head)) return "noRoom";
    const { turn, input, attempt } = waiting;
    return this.#within(head, () => this.#start(hosted, head, { turn, input, attempt: attempt + 1 }, effects));
  }

  /** Starts the turn of a queued task, like `resume`. `leave`: removes the task from the queue, if its place is still `due`. */
  async begin(
    hosted: HostedAgent,
    head: TaskHead,
    queued: QueuedRun,
    leave: FeatureEffect,
    due: number,
  ): Promise<Run | undefined> {
    if (!this.#takeRoom(head)) return undefined;
    const { fence } = head;
    const next = { ...queued, attempt: 1 };
    const records = [this.#working(head, next.turn)];
    const undo: Undo = (taken) => this.#deps.places.putBack(head, next, taken, due);
    return this.#within(head, () => this.#start(hosted, head, next, [leave], { fence, records }, undo));
  }

  /** Reserves room and memory for the run of a task. `false`: no room or memory is left. */
  #takeRoom({ task, bytes }: TaskHead): boolean {
    const { runs, budget } = this.#deps;
    if (!runs.reserve(task.taskId)) return false;
    const isTaken = budget.tryTake(task.owner, bytes);
    if (!isTaken) runs.release(task.taskId);
    return isTaken;
  }

  /**
   * Ends the turn of a lost run that had asked its question. If the answer has already arrived, the next turn starts.
   * `undefined`: no answer yet, or the turn cannot start now.
   */
  async endAsked(hosted: HostedAgent, head: TaskHead): Promise<Run | undefined> {
    const { committer, settings } = this.#deps;
    const { task, run, fence, seq } = head;
    if (run === undefined) return undefined;
    // The answer to the question of a delegation resumes from the checkpoint.
    const suspends = await hasAskedForOther(settings.store, task, run);
    const { message } = await readNextMessage(settings.store, task, run.input);
    if (message === undefined) {
      const ends = suspends ? endOfSuspendedRun : endOfRun;
      await committer.append({ task, fence, expect: seq, records: [], effects: ends });
      return undefined;
    }
    await this.#deps.runs.beforeStart();
    if (!this.#takeRoom(head)) return undefined;
    const next = { turn: run.turn + 1, attempt: 1, input: message.seq };
    const effects: readonly TaskEffect[] = suspends ? [] : [{ effect: "checkpoint", value: null }];
    const records = [this.#working(head, next.turn)];
    const undo: Undo = (taken) => this.#deps.places.putBack(head, next, taken);
    return this.#within(head, () => this.#start(hosted, head, next, effects, { fence, expect: seq, records }, undo));
  }

  /**
   * Suspends a task: no process takes the task over until an operator resumes it. The user sees no change. The log reports this once, with
   * the option whose limit was reached and the command that resumes the task.
   */
  async suspend({ task, contextId, run, fence, seq }: TaskHead, option: SuspendingOption): Promise<void> {
    const { committer, settings } = this.#deps;
    if (run === undefined) return;
    const suspended: StoredRun = { ...run, suspended: true };
    const value = JSON.stringify(Math.floor(settings.clock.now()));
    const effects: readonly TaskEffect[] = [
      { effect: "lease", op: "revoke" },
      { effect: "run", run: suspended },
      { effect: "feature", op: "set", feature: suspendedFeature, key: "at", value },
    ];
    const stored = await appendWithRoom(committer, { task, fence, expect: seq, run, records: [], effects });
    // The task's process was only slow, or another process has taken the task over.
    if (!stored.ok) return;
    const command = `parley ops resume ${task.taskId}${task.agent === "/" ? "" : ` --agent ${task.agent}`}`;
    const about = taskFields({ ...task, contextId });
    settings.observer?.lease?.({ agent: task.agent, taskId: task.taskId, contextId, change: "suspended" });
    const sentence = "Task suspended: its process died on every attempt";
    settings.logger.error(sentence, { ...about, deaths: run.deaths ?? 0, option, command });
  }

  /** The first status of a turn that starts without a call. */
  #working({ task: { taskId }, contextId, statusTime }: TaskHead, turn: number): NewRecord {
    const origin = { taskId, contextId, turn, attempt: 1, extensions: [], trace: undefined };
    const time = Math.max(this.#deps.settings.clock.now(), statusTime);
    return statusRecord(origin, { state: "TASK_STATE_WORKING" }, "system", "", time);
  }

  /** Starts a run within the reserved room and memory. */
  async #within({ task, bytes }: TaskHead, start: () => Promise<Run | undefined>): Promise<Run | undefined> {
    const { budget, runs } = this.#deps;
    let run: Run | undefined;
    try {
      run = await start();
      return run;
    } finally {
      // A run releases these bytes when it ends.
      if (run === undefined) {
        budget.give(task.owner, bytes);
        runs.release(task.taskId);
      }
    }
  }

  async #start(
    hosted: HostedAgent,
    head: TaskHead,
    next: StoredRun,
    effects: readonly TaskEffect[],
    claim: Claim = { fence: head.fence, expect: head.seq, records: [] },
    undo: Undo = (fence) => this.#release({ ...head, fence }),
  ): Promise<Run | undefined> {
    const { runs, settings } = this.#deps;
    const claimed = await this.#claim(head, next, effects, claim);
    if (!claimed.ok) return undefined;
    const init = await this.#read(hosted, head, next, claimed, undo);
    if (init === undefined) return undefined;
    if (runs.stopping) {
      await undo(claimed.fence);
      return undefined;
    }
    // A lost task continues, even beyond its owner's limit.
    runs.enter(head.task.owner, Infinity);
    const run = await this.#apart.call(() => runs.start(init));
    const about = {
      ...taskFields({ ...head.task, contextId: head.contextId, trace: init.call.trace }),
      turn: next.turn,
      attempt: next.attempt,
    };
    // A task without a run was waiting, so its resumption is normal, and there may be thousands per second.
    if (head.run === undefined) settings.logger.debug("Waiting task resumed", about);
    else if (next.attempt > 1) {
      const { agent, taskId } = head.task;
      settings.observer?.lease?.({ agent, taskId, contextId: head.contextId, change: "takenOver" });
      settings.logger.info("Task resumed", about);
    }
    return run;
  }

  /**
   * Takes the lease. If many tasks are lost, this one may have been read long ago, and have changed since. A holder that was only
   * slow continues under the same fence, and may already run the next turn. The task is then left to the next scan.
   */
  #claim(head: TaskHead, run: StoredRun, effects: readonly TaskEffect[], claim: Claim): Promise<AppendOutcome> {
    const { committer, settings } = this.#deps;
    const lease = acquireLease(settings.lease, settings.clock.now());
    return appendWithRoom(committer, {
      task: head.task,
      // Compare the run, too, because some changes have no record, such as a stored step.
      run: head.run ?? null,
      ...claim,
      effects: [{ effect: "lease", op: "revoke" }, lease, { effect: "run", run }, ...effects],
    });
  }

  /** Reads what the run needs. Fails a task whose log cannot be read. If the store fails, releases the task and throws the error. */
  async #read(
    hosted: HostedAgent,
    head: TaskHead,
    run: StoredRun,
    claimed: Claimed,
    undo: Undo,
  ): Promise<TaskRunInit | undefined> {
    const { settings, runs } = this.#deps;
    try {
      return await readLostRun(settings.store, hosted, head, run, claimed);
    } catch (cause) {
      if (cause instanceof A2AError && cause.code === "Unavailable") {
        await undo(claimed.fence);
        throw cause;
      }
      const now = { ...head, run, fence: claimed.fence, seq: claimed.seq };
      await giveUp(settings, runs, now, safeSentences.unreadable, cause);
      return undefined;
    }
  }

  /** Releases a task that this process has begun to take over, without changing it. A waiting task keeps waiting, and is due. */
  async #release({ task, fence, run }: TaskHead): Promise<void> {
    const { committer, settings } = this.#deps;
    const due = Math.floor(settings.clock.now());
    const waits = { effect: "feature", op: "wake", feature: waitFeature, due } as const;
    const effects: TaskEffect[] = [
      { effect: "run", run: run ?? null },
      { effect: "lease", op: "release" },
    ];
    await committer.append({ task, fence, records: [], effects: run === undefined ? [...effects, waits] : effects });
  }
}

/** Rows that only inform operators. */
const informing: ReadonlySet<string> = new Set([suspendedFeature, takeoverFeature]);

/** Appends an item. If the task has no room for more rows, omits the rows that only inform operators. */
async function appendWithRoom(committer: Pick<Committer, "append">, item: TaskAppend): Promise<AppendOutcome> {
  const outcome = await committer.append(item);
  if (outcome.ok || outcome.reason !== "full") return outcome;
  const effects = item.effects?.filter((each) => each.effect !== "feature" || !informing.has(each.feature)) ?? [];
  return committer.append({ ...item, effects });
}

/**
 * Reads the data of a lost run, once this process holds the lease. Rejects if data is missing in the log. `undefined`: the agent is not
 * called, because the task was canceled or taken over during the read.
 */
async function readLostRun(
  store: Store,
  hosted: HostedAgent,
  { task, contextId, bytes }: TaskHead,
  run: StoredRun,
  { seq, fence }: Extract<AppendOutcome, { readonly ok: true }>,
): Promise<TaskRunInit | undefined> {
  const { taskId } = task;
  const input = (await store.read(task, taskId, { after: run.input - 1, limit: 1 }))?.records[0];
  if (input?.call === undefined) throw new Error("The log lacks the message of the turn");
  const head = await store.head(task, taskId);
  if (head === undefined) throw new Error("The task is gone");
  if (head.fence !== fence) return undefined;
  const { state, checkpoint, taskState } = head;
  // In the first turn the agent gets no task, even on a retry.
  const resumes = await readResumed(store, task, checkpoint);
  const before = (resumes ?? run).turn === 1 ? undefined : await store.load(task, taskId, { artifacts: true });
  return {
    hosted,
    key: task,
    bytes,
    contextId,
    message: messageOf(input),
    call: callJson.read(input.call),
    start: { seq, state, fence, run, mayHaveMessages: true },
    ...defined({ task: before?.task, checkpoint, taskState, resumes }),
  };
}

/**
 * Fails a lost task that cannot continue, so that it does not stay WORKING forever. `sentence`: for the user of the task. `cause`: for
 * the log.
 */
export async function giveUp(
  { logger, lease }: Pick<EngineSettings, "logger" | "lease">,
  runs: Pick<Runs, "endTask">,
  head: TaskHead,
  sentence: string,
  cause?: unknown,
): Promise<void> {
  const { task, contextId, run, holder, fence, seq } = head;
  const about = taskFields({ ...task, contextId });
  if (cause !== undefined) {
    logger.error("Lost task failed: its log cannot be read", { ...about, cause });
  } else {
    // A run that this process gave up was already counted then.
    const level = holder === lease.holder ? "info" : "warn";
    logger[level]("Task lost: its process is gone", { ...about, holder, sentence });
  }
  const status = { state: "TASK_STATE_FAILED", message: { parts: [{ text: sentence }] } } as const;
  // This has no effect if the run was taken over, or if its slow holder has continued or ended the turn.
  await runs.endTask(head, status, { fence, seq, run: run ?? null });
}
