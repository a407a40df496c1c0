import type { Task } from "../../model/index.ts";
import type { AgentEvent, AgentYield, TurnAbortKind, TurnSignal } from "../../protocol/index.ts";
import type { ContextKey, TaskKey } from "../../store/index.ts";
import type { AskingTurn, ContextView } from "../conversations.ts";
import type { Loss } from "../log/loss.ts";
import { agentMistake, isMistake } from "../mistakes.ts";
import type { HostedAgent } from "../options.ts";
import { RunAbort } from "./abort.ts";
import { drive, type TurnSink } from "./drive.ts";
import { FirstMessage } from "./first-message.ts";
import type { Pace } from "./pace.ts";
import type { NextTurn, Phase, PhaseHost } from "./phase.ts";
import { Recorder } from "./recorder.ts";
import type { RunInit, RunRooms, TaskRunInit } from "./run-init.ts";
import { safeSentences } from "./sentences.ts";
import { nobodyWaits, TaskRun } from "./task-run.ts";
import { EngineTurn, type StoredCheckpoint, type TurnHost, type TurnInput } from "./turn.ts";

/** What a run needs beside the rooms that its phases need. */
export interface OwnRooms extends RunRooms {
  readonly pace: Pace;
  /** Called when the run can write no more. */
  readonly onOver: (run: Run) => void;
}

const noEvent =
  "The agent's turn ended without an event: return turn.reply(…), or yield an event; turn.completed() ends a task without a word";

/** Calls the agent, one turn after the other, until its task is over, waits for its user, or is lost (D6, D11). */
export class Run implements TurnHost, TurnSink, PhaseHost {
  readonly key: TaskKey;
  readonly hosted: HostedAgent;
  /** When the turn began, and when the agent yielded last; on the monotonic clock. */
  startedAt: number;
  lastEventAt: number;

  readonly #rooms: OwnRooms;
  readonly #contextId: string;
  readonly #abort = new RunAbort();
  #phase: Phase;
  #input: TurnInput;
  /** As it stood at the beginning of the turn; absent in the turn that makes it. */
  #task: Task | undefined;
  /** The context begins with the message of this turn. */
  #isNewContext: boolean;
  #ended = false;
  #waiters: readonly (() => void)[] = none;

  constructor(rooms: OwnRooms, init: RunInit) {
    this.#rooms = rooms;
    this.key = init.key;
    this.hosted = init.hosted;
    this.#contextId = init.contextId;
    this.startedAt = this.lastEventAt = rooms.settings.clock.elapsed();
    this.#input = inputOf(init);
    if (init.start === undefined) {
      this.#isNewContext = init.isNewContext;
      this.#phase = new FirstMessage(rooms, this, init, this.#input);
    } else {
      this.#isNewContext = false;
      this.#task = init.task;
      this.#phase = this.#taskRun(init);
    }
  }

  /** Resolves when nothing more will be written. */
  get done(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters = [...this.#waiters, resolve];
    });
  }

  /** Fence under which the run writes; `undefined` while there is no task. */
  get fence(): number | undefined {
    return this.#phase.fence;
  }

  /** Bytes of the budget that it holds. */
  get bytes(): number {
    return this.#phase.bytes;
  }

  /** The task waits for somebody outside, so that silence is no sign of trouble. */
  get isInterrupted(): boolean {
    return this.#phase.isInterrupted;
  }

  get stopped(): boolean {
    return this.#phase.stopped;
  }

  get silenced(): boolean {
    return this.#phase.silenced;
  }

  get storeError(): TurnSink["storeError"] {
    return this.#phase.storeError;
  }

  /** For the turn: fires when the run is over, in whatever way. */
  get signal(): TurnSignal {
    return this.#abort.signal;
  }

  /** Runs until the task is over, waits for its user, or is lost. Never rejects. */
  async execute(): Promise<void> {
    try {
      for (;;) {
        const context = this.#isNewContext ? this.#beginContext() : await this.#openContext();
        const turn = this.#turn(context);
        const finished = await drive(this.hosted.agent.execute(turn), this, context, this.#rooms.pace);
        if (this.stopped) return;
        if (finished && !this.#phase.hasSpoken) {
          this.#phase.fail(safeSentences.silent, agentMistake(noEvent), "failed");
          return;
        }
        const next = await this.#phase.endTurn(context);
        if (next === undefined) return;
        this.#begin(next);
      }
    } catch (error) {
      this.#agentFailed(error);
    }
  }

  accept(yielded: AgentYield, context: ContextView): Promise<unknown> | undefined {
    this.lastEventAt = this.#rooms.settings.clock.elapsed();
    return this.#phase.accept(isArray(yielded) ? yielded : [yielded], context);
  }

  room(): Promise<void> | undefined {
    return this.#phase.room();
  }

  /** Resolves once everything yielded so far is stored; rejects when it cannot be. */
  flush(): Promise<void> {
    return this.#phase.flush();
  }

  /** Makes the task although the agent has said nothing yet (§3.2.2 `returnImmediately`). */
  makeTask(): void {
    this.#phase.makeTask();
  }

  /** Ends the task as failed, whatever the agent is doing. */
  expire(limit: "idleTimeout" | "turnTimeout", reason: string): void {
    const sentence = limit === "idleTimeout" ? safeSentences.idle : safeSentences.late;
    this.#phase.fail(sentence, new Error(reason), limit);
  }

  /** Another took the task away, or this process gives it up. */
  lose(loss: Loss): void {
    this.#phase.lose(loss);
  }

  /** Stops for good: a resumable task is left for another process, any other fails and says why. */
  stop(): Promise<void> {
    return this.#phase.stop();
  }

  /** Resolves once something new of the run is stored, so that the process has survived it, or the run is over. */
  proven(): Promise<void> {
    return this.#phase.proven();
  }

  /** The process has survived the run for a while: if it crashes later, this run is no more to blame than others. */
  acquit(): void {
    this.#phase.acquit();
  }

  // For its phases.

  becomes(task: Phase): void {
    this.#phase = task;
  }

  abort(kind: TurnAbortKind, text: string, cause?: unknown): void {
    this.#abort.abort(kind, text, cause);
  }

  end(): void {
    this.#ended = true;
    this.#abort.end();
    this.#rooms.onOver(this);
    for (const resolve of this.#waiters) resolve();
  }

  #taskRun({ hosted, key, contextId, bytes, start }: TaskRunInit): TaskRun {
    const { settings } = this.#rooms;
    const task = { key, contextId, isNew: false, arrived: settings.clock.now() };
    const recorder = new Recorder(settings, task, this.#input);
    const parts = { hosted, key, contextId, bytes, input: this.#input, recorder, result: nobodyWaits, start };
    return new TaskRun(this.#rooms, this, parts);
  }

  #turn(context: ContextView): EngineTurn {
    const { logger, clock } = this.#rooms.settings;
    const { taskId } = this.key;
    const init = { input: this.#input, taskId, contextId: this.#contextId, task: this.#task, context, logger, clock };
    return new EngineTurn(init, this);
  }

  #beginContext(): ContextView {
    this.#isNewContext = false;
    return this.#rooms.conversations.begin(this.#contextKey(), this.#asking());
  }

  #openContext(): Promise<ContextView> {
    return this.#rooms.conversations.open(this.#contextKey(), this.#asking());
  }

  #contextKey(): ContextKey {
    const { agent, owner } = this.key;
    return { agent, owner, contextId: this.#contextId };
  }

  #asking(): AskingTurn {
    const { turn, input, message } = this.#input;
    return { taskId: this.key.taskId, turn, seq: input, message };
  }

  #begin({ input, task }: NextTurn): void {
    this.#input = input;
    this.#task = task;
    this.startedAt = this.lastEventAt = this.#rooms.settings.clock.elapsed();
  }

  #agentFailed(error: unknown): void {
    const { taskId } = this.key;
    const { logger } = this.#rooms.settings;
    if (this.stopped) logger.debug("An agent threw after its task was over", { taskId, cause: error });
    else this.#phase.fail(isMistake(error) ? safeSentences.invalid : safeSentences.failed, error, "failed");
  }
}

const none: readonly (() => void)[] = [];

/** The first turn of a run: of a message that makes its task, or of the one that the task stands at. */
function inputOf(init: RunInit): TurnInput {
  const { message, call, principal = call.principal } = init;
  if (init.start === undefined) {
    return { turn: 1, attempt: 1, input: 1, message, call, principal, checkpoint: undefined, ids: 0 };
  }
  const { turn, attempt, input } = init.start.run;
  const checkpoint = init.checkpoint === undefined ? undefined : (JSON.parse(init.checkpoint) as StoredCheckpoint);
  return { turn, attempt, input, message, call, principal, checkpoint, ids: checkpoint?.ids ?? 0 };
}

function isArray(yielded: AgentYield): yielded is readonly AgentEvent[] {
  return Array.isArray(yielded);
}
