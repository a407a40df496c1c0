import { utf8Length, type Resolver } from "../../base/index.ts";
import { A2AError, isInterrupted, isTerminal, type NewRecord, type TaskState } from "../../model/index.ts";
import type { AgentEvent, TurnAbortKind } from "../../protocol/index.ts";
import type { AppendOutcome, OnceEffect, TaskAppend, TaskEffect, TaskKey } from "../../store/index.ts";
import { taskIsFull } from "../bytes.ts";
import type { ContextView } from "../context-view.ts";
import {
  LogWriter,
  type Loss,
  type Submission,
  type TurnEnd,
  type WriterStart,
  readNextMessage,
} from "../log/index.ts";
import { agentMistake, nameOfRecord } from "../mistakes.ts";
import type { HostedAgent } from "../options.ts";
import { nextTurnInput, type TurnInput } from "./turn.ts";
import { cleared, handedBack, isOnTrial, isProgress, survived } from "./crashes.ts";
import {
  lossReasons,
  type FirstResult,
  type NextTurn,
  type Phase,
  type PhaseHost,
  type RunRooms,
  safeSentences,
} from "./phase.ts";
import type { Recorded, Recorder } from "./recorder.ts";

interface TaskRunParts {
  readonly hosted: HostedAgent;
  readonly key: TaskKey;
  readonly contextId: string;
  /** What of the budget is taken for it. */
  readonly bytes: number;
  readonly input: TurnInput;
  readonly recorder: Recorder;
  /** For the sender of the message that makes the task. */
  readonly result: Resolver<FirstResult>;
  /** Where the task stands; absent: it is about to be made. */
  readonly start?: WriterStart;
}

/** Writes what an agent says in the turns of one task, under one lease. */
export class TaskRun implements Phase, Submission {
  readonly #rooms: RunRooms;
  readonly #host: PhaseHost;
  readonly #hosted: HostedAgent;
  readonly #key: TaskKey;
  readonly #writer: LogWriter;
  readonly #recorder: Recorder;
  #input: TurnInput;
  #bytes: number;
  #result: Resolver<FirstResult>;
  /** It waits for a commit, or is in one. */
  #submitted = false;
  /** It is given back: what the agent still says does not count. */
  #leaving = false;
  #silenced = false;
  #storeError: A2AError | undefined;

  /** For a task that is there. */
  constructor(rooms: RunRooms, host: PhaseHost, parts: TaskRunParts) {
    const { liveLogs, settings } = rooms;
    const { key, contextId, start } = parts;
    this.#rooms = rooms;
    this.#host = host;
    this.#hosted = parts.hosted;
    this.#key = key;
    this.#input = parts.input;
    this.#bytes = parts.bytes;
    this.#recorder = parts.recorder;
    this.#result = parts.result;
    this.#writer = new LogWriter({ liveLogs, settings, task: key, contextId, ...(start && { start }) });
  }

  /** Makes the task: its first record is the message of `parts.input`. */
  static create(
    rooms: RunRooms,
    host: PhaseHost,
    parts: TaskRunParts,
    first: { readonly state: TaskState; readonly once: OnceEffect | undefined },
  ): TaskRun {
    const task = new TaskRun(rooms, host, parts);
    const { turn, attempt, input } = parts.input;
    const run: TaskEffect = { effect: "run", run: { turn, attempt, input } };
    task.#append([parts.recorder.task(first.state)], first.once === undefined ? [run] : [run, first.once]);
    return task;
  }

  get fence(): number | undefined {
    return this.#writer.fence;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isInterrupted(): boolean {
    return isInterrupted(this.#writer.state);
  }

  get stopped(): boolean {
    return this.#leaving || this.#writer.closed || isTerminal(this.#writer.state);
  }

  get silenced(): boolean {
    return this.#silenced;
  }

  get hasSpoken(): boolean {
    return this.#recorder.hasSpoken;
  }

  get storeError(): A2AError | undefined {
    return this.#storeError;
  }

  accept(events: readonly AgentEvent[], context: ContextView): Promise<void> | undefined {
    const recorded = this.#recorder.take(events, this.#writer.state);
    if (recorded instanceof Promise) return recorded.then((later) => this.store(later, context));
    this.store(recorded, context);
    return undefined;
  }

  /** Takes what the recorder made of events. */
  store({ records, effects, silenced }: Recorded, context: ContextView): void {
    if (this.stopped) return;
    this.#silenced = silenced;
    if (records[0]?.kind === "artifactUpdate" && isAtRest(this.#writer.state)) this.#setWorking();
    const all = [...effects, ...stateChange(context)];
    if (records.length > 0 || all.length > 0) this.#append(records, all);
  }

  room(): Promise<void> | undefined {
    return this.#writer.room();
  }

  flush(): Promise<void> {
    return this.#writer.flush();
  }

  /** It is made. */
  makeTask(): void {}

  async endTurn(context: ContextView): Promise<NextTurn | undefined> {
    while (!this.stopped) {
      if ((await this.#writeEnd(context)) === "ended" || this.stopped) return undefined;
      const next = await this.#nextTurn();
      if (next !== undefined) return next;
    }
    return undefined;
  }

  fail(sentence: string, cause: unknown, kind: TurnAbortKind): void {
    if (this.stopped) return;
    const { logger } = this.#rooms.settings;
    const fields = { ...this.#key, turn: this.#input.turn };
    // Where the operator asked for the end, a stack of ours tells nothing.
    if (kind === "shutdown") logger.warn("A task was ended, since the server stops", fields);
    else logger.error("A task failed", { ...fields, cause });
    const message = { parts: [{ text: sentence }] };
    this.#append([this.#recorder.systemStatus({ state: "TASK_STATE_FAILED", message })], []);
    this.#host.abort(kind, sentence, cause);
  }

  lose(loss: Loss): void {
    this.#close(loss);
  }

  async stop(): Promise<void> {
    if (this.#writer.closed) return;
    if (this.#hosted.agent.resumable === true) await this.#handBack();
    else this.fail(safeSentences.stopped, new Error("The server was stopped"), "shutdown");
  }

  async proven(): Promise<void> {
    while (isOnTrial(this.#writer.storedRun) && !this.#writer.closed) await this.#writer.settled();
  }

  acquit(): void {
    const { run, storedRun } = this.#writer;
    if (run?.alone === true && isOnTrial(storedRun)) this.#append([], [{ effect: "run", run: survived(run) }]);
  }

  /** For the committer: the item that stores what has gathered. */
  take(): TaskAppend {
    return this.#writer.take();
  }

  /** For the committer: what came of the item. */
  settle(outcome: AppendOutcome): void {
    this.#submitted = false;
    const result = this.#writer.settle(outcome);
    switch (result.kind) {
      case "created":
        this.#takeResult().resolve({ kind: "task", log: result.log });
        if (result.log !== undefined) this.#close(undefined);
        break;
      case "ended":
        this.#close(undefined);
        break;
      case "full":
        this.#isFull(result.lost);
        break;
      case "refused":
        if (result.once !== undefined) this.#takeResult().resolve({ kind: "duplicate", once: result.once });
        this.#close(result.loss);
        break;
      default:
    }
    if (this.#writer.hasPending) this.#submit();
  }

  /** For the committer. */
  storeFailed(error: unknown): void {
    this.#close("store", error);
  }

  #append(records: readonly NewRecord[], effects: readonly TaskEffect[]): void {
    this.#writer.write(records, effects);
    const { run } = this.#writer;
    if (run !== null && isOnTrial(run) && isProgress(records, effects)) {
      this.#writer.write([], [{ effect: "run", run: cleared(run) }]);
    }
    this.#submit();
  }

  #submit(): void {
    if (this.#submitted || this.#writer.closed) return;
    this.#submitted = true;
    this.#rooms.committer.submit(this);
  }

  #setWorking(): void {
    this.#append([this.#recorder.systemStatus({ state: "TASK_STATE_WORKING" })], []);
  }

  #writeEnd(context: ContextView): Promise<TurnEnd> {
    const change = stateChange(context);
    if (change.length > 0) this.#append([], change);
    const finish = this.isInterrupted ? undefined : this.#recorder.systemStatus({ state: "TASK_STATE_COMPLETED" });
    const end = this.#writer.endTurn(finish);
    this.#submit();
    return end;
  }

  /** Takes up the oldest message that waits, if one does. */
  async #nextTurn(): Promise<NextTurn | undefined> {
    const { settings, budget } = this.#rooms;
    await this.#writer.flush();
    const { head, message, more } = await readNextMessage(settings.store, this.#key, this.#input.input);
    this.#writer.sawLog(head.seq, more);
    // A run that was lost meanwhile has given back all that it held.
    if (message === undefined || this.#writer.closed) return undefined;
    budget.change(this.#key.owner, this.#bytes, head.bytes);
    this.#bytes = head.bytes;
    const task = (await settings.store.load(this.#key, this.#key.taskId, { artifacts: true }))?.task;
    this.#input = nextTurnInput(message, this.#input.turn + 1);
    this.#recorder.begin(this.#input);
    this.#silenced = false;
    if (this.isInterrupted) this.#setWorking();
    const { turn, attempt, input } = this.#input;
    this.#append(
      [],
      [
        { effect: "run", run: { turn, attempt, input } },
        { effect: "checkpoint", value: null },
      ],
    );
    return { input: this.#input, task };
  }

  /** The task has no room for what the agent said, or for the message that was to make it. */
  #isFull(lost: NewRecord | undefined): void {
    if (lost === undefined) return;
    const { taskBytes } = this.#rooms.settings.limits;
    if (lost.kind === "task") {
      this.#takeResult().reject(taskIsFull(taskBytes));
      this.#close("canceled");
      return;
    }
    const size = utf8Length(lost.json);
    const text = `${nameOfRecord(lost)} of ${size} bytes does not fit: limits.taskBytes is ${taskBytes}`;
    this.fail(safeSentences.full, agentMistake(text), "failed");
  }

  async #handBack(): Promise<void> {
    this.#leaving = true;
    this.#host.abort(...lossReasons.shutdown);
    const { run, storedRun } = this.#writer;
    if (run !== null && isOnTrial(storedRun)) this.#append([], [{ effect: "run", run: handedBack(run) }]);
    this.#append([], [{ effect: "lease", op: "release" }]);
    await this.flush().catch(() => {});
    this.#close("shutdown");
  }

  /** Nothing more will be written: the turn has ended (`undefined`), or the run is lost. */
  #close(loss: Loss | undefined, error?: unknown): void {
    if (this.#writer.closed) return;
    if (loss === "store") {
      this.#storeError = new A2AError("Unavailable", undefined, { cause: error });
      const { agent, taskId } = this.#key;
      const { logger } = this.#rooms.settings;
      logger.error("A run was given up because the store failed", { agent, taskId, cause: error });
    }
    this.#writer.close(loss !== undefined, this.#storeError);
    if (loss !== undefined) {
      this.#takeResult().reject(this.#storeError ?? new A2AError("Unavailable"));
      this.#host.abort(...lossReasons[loss], error);
    }
    this.#host.end();
  }

  /** Where the sender of the first message gets its result; used once, and released with that. */
  #takeResult(): Resolver<FirstResult> {
    const result = this.#result;
    this.#result = nobodyWaits;
    return result;
  }
}

/** For a task that was there before: its sender has the answer already. */
export const nobodyWaits: Resolver<FirstResult> = {
  resolve() {},
  reject() {},
};

/** Whether results show that the agent works although the state does not say so: the task is new, or was authorized by another way (§7.6.1). */
function isAtRest(state: TaskState): boolean {
  return state === "TASK_STATE_SUBMITTED" || state === "TASK_STATE_AUTH_REQUIRED";
}

function stateChange(context: ContextView): readonly TaskEffect[] {
  const value = context.takeChange();
  return value === undefined ? none : [{ effect: "contextState", value }];
}

const none: readonly TaskEffect[] = [];
