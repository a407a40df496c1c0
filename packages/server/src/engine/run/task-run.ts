import type { Logger, Resolver } from "@parley/a2a/internal/base/index";
import { A2AError, isInterrupted, isTerminal, type NewRecord, type TaskState } from "@parley/a2a/internal/model/index";
import type { AgentEvent, StatusEvent, TurnAbortKind } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, StoredRun, TaskEffect, TaskKey } from "../../store/index.ts";
import type { ContextView } from "../conversations/conversations.ts";
import {
  LogWriter,
  endOfRun,
  endOfSuspendedRun,
  endsSilently,
  mirrorOf,
  readNextMessage,
  tooManyRows,
  type AppendResult,
  type Loss,
  type StatusInit,
  type WriterInit,
  type WriterStart,
} from "../log/index.ts";
import { agentMistake, eventDoesNotFit } from "../shared/mistakes.ts";
import type { HostedAgent } from "../shared/options.ts";
import { isOutage, runIsGivenUp, taskIsFull, turnIsLost } from "../shared/errors.ts";
import { CrashSuspicion, isProgress, isSuspect } from "./crash-suspicion.ts";
import { lossReasons, noEvent, safeSentences, type Phase, type PhaseHost, type RunDeps } from "./phase.ts";
import type { Recorded, Recorder } from "./recorder.ts";
import { hasWaits } from "./task-rows.ts";
import {
  readNextTurn,
  runEffect,
  type FirstMessageInit,
  type FirstResult,
  type NextTurn,
  type TurnInput,
  type Waiting,
  seenBy,
} from "./turn-input.ts";

export interface TaskRunParts {
  readonly hosted: HostedAgent;
  readonly key: TaskKey;
  readonly contextId: string;
  readonly input: TurnInput;
  readonly recorder: Recorder;
  /** The stored task, or how to create it. */
  readonly start: WriterStart | NewTask;
}

interface NewTask extends Pick<FirstMessageInit, "once" | "kept" | "result"> {
  readonly run: null;
  readonly state: "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING";
}

function writerOf(
  { committer, liveLogs, settings }: RunDeps,
  files: WriterInit["files"],
  { key: task, contextId, recorder: source, start }: TaskRunParts,
  onResult: (result: AppendResult) => void,
): LogWriter {
  const init = { committer, liveLogs, settings, task, contextId, onResult, source, files };
  return new LogWriter(start.run === null ? init : { ...init, start });
}

/** Writes the events of one task's turns, under one lease. */
export class TaskRun implements Phase {
  stopped = false;
  readonly #deps: RunDeps;
  readonly #host: PhaseHost;
  readonly #hosted: HostedAgent;
  readonly #key: TaskKey;
  readonly #writer: LogWriter;
  readonly #recorder: Recorder;
  #input: TurnInput;
  suspends = false;
  waits: Waiting | undefined;
  /** Resolver for the sender of the message that created the task. Used once, then released. */
  #result: Resolver<FirstResult> | undefined;
  /** The state after all writes, stored or not. */
  #state: TaskState;
  #resting = false;
  #suspicion: CrashSuspicion | undefined;
  /** Resolvers of failed turns, called when the run ends. `loss`: why the failure could not be stored. */
  #failures: readonly ((loss: Loss | undefined) => void)[] = none;
  /** Set when the run releases the task to another process. `stopped` then stays true, even if the task is full. */
  #leaving = false;

  constructor(deps: RunDeps, host: PhaseHost, parts: TaskRunParts) {
    const { key, start } = parts;
    this.#deps = deps;
    this.#host = host;
    this.#hosted = parts.hosted;
    this.#key = key;
    this.#input = parts.input;
    this.#recorder = parts.recorder;
    this.#state = start.state;
    this.#writer = writerOf(deps, host.files, parts, (result) => this.#appended(result));
    if (start.run === null) {
      this.#result = start.result;
      const { once, kept } = start;
      const begun = [runEffect(this.#input), ...(once === undefined ? [] : [once]), ...kept];
      this.#append([parts.recorder.task(start.state)], begun);
    } else if (isSuspect(start.run)) this.#suspicion = this.#suspicionOf(start.run);
    this.#writer.by = this.#input.principal;
  }

  get fence(): number | undefined {
    return this.#writer.fence;
  }

  get isInterrupted(): boolean {
    return isInterrupted(this.#state);
  }

  accept(events: readonly AgentEvent[], context: ContextView): boolean | Promise<boolean> {
    if (this.stopped) return false;
    const [first] = events;
    if (this.#mirrors && events.length === 1 && endsSilently(first)) return this.#acceptEnd(first, context);
    return this.#take(events, context);
  }

  #take(events: readonly AgentEvent[], context: ContextView): boolean | Promise<boolean> {
    const recorded = this.#recorder.take(events, this.#state);
    if (recorded instanceof Promise) return recorded.then((later) => this.store(later, context));
    return this.store(recorded, context);
  }

  get #mirrors(): boolean {
    return this.#hosted.agent.mirrorArtifactText === true;
  }

  async #acceptEnd(event: StatusEvent, context: ContextView): Promise<boolean> {
    await this.#restore();
    const message = await this.#mirror();
    if (this.stopped) return false;
    return this.#take([{ ...event, ...message }], context);
  }

  async #mirror(): Promise<Pick<StatusInit, "message">> {
    await this.flush();
    const { turn, input } = seenBy(this.#input);
    const message = await mirrorOf(this.#deps.settings.store, this.#key, { turn, after: input });
    return message === undefined ? {} : { message };
  }

  /** Writes recorded events. Returns whether the turn continues. */
  store(recorded: Recorded, context: ContextView): boolean | Promise<boolean> {
    if (this.stopped) return false;
    const { records, kept, effects, endsTurn, suspends, waits } = recorded;
    this.suspends = suspends === true;
    this.waits = waits;
    const works = showsWork(records[0], this.#state) || (waits !== undefined && this.#state === "TASK_STATE_SUBMITTED");
    if (works) this.#append([this.#recorder.systemStatus(working)], []);
    const all = withStates(effects, context, this.#host);
    if (records.length > 0 || all.length > 0) this.#append(records, all, kept);
    else this.#suspicion?.noteReplay(this.#recorder.replayedTo, this.#input.input);
    const room = this.#writer.room();
    if (room !== undefined) return room.then(() => !endsTurn && !this.stopped);
    return !endsTurn && !this.stopped;
  }

  flush(): Promise<void> {
    return this.#writer.flush();
  }

  makeTask(): void {}

  keep(effects: readonly FeatureEffect[]): Promise<void> {
    if (this.stopped) return Promise.reject(new A2AError("Unavailable", "The turn is over"));
    this.#append([], effects);
    return this.flush();
  }

  /** A step counts as work, even while the turn waits. */
  get resting(): boolean {
    return this.#resting && !this.#host.inStep;
  }

  rest(resting: boolean, clearsSuspicion: boolean): void {
    this.#resting = resting;
    if (resting) this.#deps.onRest?.();
    // This run has come as far as the lost run waited without a crash, so it did not cause that run's crash.
    if (clearsSuspicion && resting && this.#suspicion !== undefined && !this.stopped) {
      this.#endSuspicion();
      this.#append([], [runEffect(this.#input)]);
    }
  }

  async endTurn(context: ContextView): Promise<NextTurn | undefined> {
    if (this.waits !== undefined) return this.#letGo(context);
    if (!this.#recorder.hasEvents) this.fail(safeSentences.silent, agentMistake(noEvent), "failed");
    const states = withStates([], context, this.#host);
    while (!this.stopped) {
      if (this.#recorder.mayRestore && !this.isInterrupted) await this.#restore();
      const mirror = this.#mirrors && !this.isInterrupted ? await this.#mirror() : {};
      if (this.stopped) return undefined;
      const finish = this.isInterrupted
        ? undefined
        : this.#recorder.endStatus({ state: "TASK_STATE_COMPLETED", ...mirror });
      const end = await this.#writer.endTurn(finish, this.suspends ? "suspends" : "ends", states);
      if (end === "ended" || this.stopped) return undefined;
      const next = await this.#nextTurn(states);
      if (next !== undefined) return next;
    }
    return undefined;
  }

  async #restore(): Promise<void> {
    const records = await this.#recorder.restore();
    if (records.length > 0 && !this.stopped) this.#append(records, []);
  }

  /** Ends the run of a turn that waits. Queued messages stay queued for later turns. */
  async #letGo(context: ContextView): Promise<undefined> {
    if (!this.stopped) await this.#writer.endTurn(undefined, "waits", withStates([], context, this.#host));
    return undefined;
  }

  fail(sentence: string, cause: unknown, kind: TurnAbortKind): void {
    if (this.stopped) return;
    const fields = { owner: this.#key.owner, turn: this.#input.turn, cause };
    // Log after the failure is stored, but in this call's async context, so that the line carries its trace ID.
    void new Promise<Loss | undefined>((resolve) => (this.#failures = [...this.#failures, resolve])).then((loss) =>
      logFailure(this.#host.logger, fields, kind, loss),
    );
    const status = { state: "TASK_STATE_FAILED", message: { parts: [{ text: sentence }] } } as const;
    // A full task has no room for the status message.
    const isFull = sentence === safeSentences.full;
    this.#append([isFull ? this.#recorder.systemStatus(status) : this.#recorder.endStatus(status)], []);
    this.#host.abort(kind, sentence, cause);
  }

  /** If a question is open, the turn ends without a second question, which would not be stored. */
  refuse(): boolean {
    return this.stopped || this.#state === "TASK_STATE_INPUT_REQUIRED";
  }

  lose(loss: Loss, cause?: unknown): void {
    this.#close(loss, cause);
  }

  async stop(): Promise<void> {
    if (this.#writer.closed) return;
    const { turn } = seenBy(this.#input);
    const isWaiting = (): Promise<boolean> => hasWaits(this.#deps.settings.store, this.#key, turn).catch(() => false);
    const { resumable } = this.#hosted.agent;
    const continues = this.#resting || resumable === true || this.#state === "TASK_STATE_INPUT_REQUIRED";
    if (continues || (await isWaiting())) await this.#handBack();
    else this.fail(safeSentences.stopped, new Error("The server was stopped"), "shutdown");
  }

  async proven(): Promise<void> {
    while (isSuspect(this.#writer.storedRun) && !this.#writer.closed) await this.#writer.settled();
  }

  clearCrashSuspicion(): void {
    if (!this.stopped) this.#suspicion?.clear();
  }

  excuse(): void {
    if (!this.stopped) this.#suspicion?.excuse();
  }

  async joined(): Promise<void> {
    if (!this.stopped) await this.#suspicion?.joined();
  }

  #suspicionOf(run: StoredRun): CrashSuspicion {
    const of = {
      store: this.#deps.settings.store,
      task: this.#key,
      isStopped: () => this.stopped,
      append: (effects: readonly TaskEffect[]) => this.#append([], effects),
      flush: () => this.flush(),
    };
    return new CrashSuspicion(of, run);
  }

  #endSuspicion(): void {
    this.#suspicion?.end();
    this.#suspicion = undefined;
  }

  #append(records: readonly NewRecord[], effects: readonly TaskEffect[], kept?: Recorded["kept"]): void {
    const cleared = this.#suspicion !== undefined && isProgress(records, effects);
    if (cleared) this.#endSuspicion();
    this.#state = this.#writer.write(records, cleared ? [runEffect(this.#input), ...effects] : effects, kept);
    if (isTerminal(this.#state)) this.stopped = true;
  }

  #appended(result: AppendResult): void {
    switch (result.kind) {
      case "created":
        this.#takeResult()?.resolve({ kind: "task", log: result.log });
        if (result.ended) this.#close(undefined);
        break;
      case "ended":
        this.#close(undefined);
        break;
      case "full":
        this.#state = result.state;
        this.stopped = this.#leaving;
        if (result.lost !== undefined || result.rows) this.#isFull(result.lost, result.rows);
        break;
      case "refused":
        if (result.once !== undefined) this.#takeResult()?.resolve({ kind: "duplicate", once: result.once });
        this.#close(result.loss);
        break;
      case "failed":
        this.#close("store", result.error);
        break;
      default:
    }
  }

  /** Begins the turn of the oldest queued message, if any. `states`: effects that store the state set by the last turn. */
  async #nextTurn(states: readonly TaskEffect[]): Promise<NextTurn | undefined> {
    const { store } = this.#deps.settings;
    await this.#writer.flush();
    const { head, message, more } = await readNextMessage(store, this.#key, this.#input.input);
    this.#writer.sawLog(head.seq, more);
    // If the run was lost during these calls, its share of the memory budget is already released, so do not call `hold`.
    if (message === undefined || this.#writer.closed) return undefined;
    const run = { turn: this.#input.turn + 1, input: message.seq };
    const queued = this.#deps.queue?.(this.#key, run, (row) => this.#queue([...states, row]));
    if (queued !== undefined) {
      await queued;
      return undefined;
    }
    this.#host.hold(head.bytes);
    const next = await readNextTurn(store, this.#key, message, run.turn, this.suspends);
    this.#input = next.input;
    const { resumes } = this.#input;
    this.suspends = false;
    this.#recorder.begin(this.#input);
    this.#writer.by = this.#input.principal;
    const forgotten: readonly TaskEffect[] = resumes === undefined ? [{ effect: "checkpoint", value: null }] : [];
    this.#append(this.isInterrupted ? [this.#recorder.systemStatus(working)] : [], [
      runEffect(this.#input),
      ...forgotten,
      ...states,
    ]);
    // The turn reads the state of its context from the store.
    if (states.length > 0) await this.flush();
    return next;
  }

  /** Ends the run. `effects`: queue the task's next turn, and store the state set by the last turn. */
  #queue(effects: readonly TaskEffect[]): Promise<void> {
    const ends = this.suspends ? endOfSuspendedRun : endOfRun;
    this.#append([this.#recorder.systemStatus({ state: "TASK_STATE_SUBMITTED" })], [...ends, ...effects]);
    return this.flush();
  }

  /** Handles a task that has no room for an event of the agent, for the event's extension rows, or for the first message. */
  #isFull(lost: NewRecord | undefined, rows: boolean): void {
    const { taskBytes } = this.#deps.settings.limits;
    if (lost?.kind === "task") {
      this.#takeResult()?.reject(taskIsFull(taskBytes));
      this.#close("canceled");
      return;
    }
    if (rows || lost === undefined) this.fail(safeSentences.failed, tooManyRows(), "failed");
    else this.fail(safeSentences.full, eventDoesNotFit(lost, taskBytes), "failed");
  }

  async #handBack(): Promise<void> {
    this.#leaving = this.stopped = true;
    this.#host.abort(...lossReasons.shutdown);
    this.#append([], [...(this.#suspicion?.handBack ?? []), { effect: "lease", op: "release" }]);
    await this.flush().catch(() => {});
    this.#close("shutdown");
  }

  /** Closes the writer. `loss`: why the run is lost; `undefined` if the turn has ended. */
  #close(loss: Loss | undefined, cause?: unknown): void {
    if (this.#writer.closed) return;
    for (const tell of this.#failures) tell(loss);
    const error = loss === "store" ? runIsGivenUp(cause) : undefined;
    // An outage is logged once, with the number of runs.
    if (error !== undefined && !isOutage(cause)) {
      this.#host.logger.error("Run ended: the store failed", { cause });
    }
    this.stopped = true;
    this.#writer.close(loss !== undefined, error);
    if (loss !== undefined) {
      this.#takeResult()?.reject(turnIsLost(cause));
      this.#host.abort(...lossReasons[loss], cause);
    }
    this.#host.end(loss, error);
  }

  #takeResult(): Resolver<FirstResult> | undefined {
    const result = this.#result;
    this.#result = undefined;
    return result;
  }
}

/**
 * Whether a record proves that the state is outdated: the agent has started, or was authorized elsewhere (A2A 1.0 §7.6.1). A result of one
 * delegation does not prove the authorization for another.
 */
function showsWork(record: NewRecord | undefined, state: TaskState): boolean {
  if (record?.kind !== "artifactUpdate") return false;
  return state === "TASK_STATE_SUBMITTED" || (state === "TASK_STATE_AUTH_REQUIRED" && record.actor !== "delegate");
}

const none: readonly never[] = [];

/** The status that the engine sets when an agent starts or continues. */
const working: StatusInit = { state: "TASK_STATE_WORKING" };

function withStates(
  effects: readonly TaskEffect[],
  context: ContextView,
  host: Pick<PhaseHost, "takeState">,
): readonly TaskEffect[] {
  const ofContext = context.takeChange();
  const ofTask = host.takeState();
  if (ofContext === undefined && ofTask === undefined) return effects;
  return [...effects, ...(ofContext === undefined ? [] : [ofContext]), ...(ofTask === undefined ? [] : [ofTask])];
}

/** Logs why a task failed. `logger`: adds the task to each line. */
function logFailure(
  logger: Logger,
  { cause, ...fields }: { readonly owner: string; readonly turn: number; readonly cause: unknown },
  kind: TurnAbortKind,
  loss: Loss | undefined,
): void {
  if (loss !== undefined) logger.warn("Run failed after its task was lost", { ...fields, loss, cause });
  // An operator stopped the server, so a stack trace would not help.
  else if (kind === "shutdown") logger.warn("Task ended: the server is stopping", fields);
  else logger.error("A task failed", { ...fields, cause });
}
