import { FieldsLogger, type Logger } from "@parley/a2a/internal/base/index";
import type { A2AError, Task } from "@parley/a2a/internal/model/index";
import {
  AuthorizationNotGiven,
  DelegationFailed,
  observe,
  taskFields,
  type AgentEvent,
  type AgentYield,
  type Begun,
  type Observation,
  type ObservedTurn,
  type TurnAbortKind,
} from "@parley/a2a/internal/protocol/index";
import type { ExtensionsOfTurn } from "@parley/a2a/internal/extensions/turn";
import type { TaskKey, TaskStateEffect } from "../../store/index.ts";
import type { ContextView } from "../conversations/conversations.ts";
import { endsSilently, type Loss } from "../log/index.ts";
import { isOfStore } from "../shared/errors.ts";
import { isMistake } from "../shared/mistakes.ts";
import type { HostedAgent } from "../shared/options.ts";
import { drive, during, type Driven, type Pace } from "./drive.ts";
import { FirstMessage } from "./first-message.ts";
import { safeSentences, type Phase, type PhaseHost, type RunDeps } from "./phase.ts";
import { Recorder } from "./recorder.ts";
import { TaskRun } from "./task-run.ts";
import { EngineTurn } from "./turn.ts";
import { RunHost, type HostedRun } from "./turn-host.ts";
import {
  contextOf,
  firstTurnInput,
  type NextTurn,
  type RunInit,
  type TaskRunInit,
  type TurnInput,
} from "./turn-input.ts";

export interface OwnDeps extends RunDeps {
  readonly pace: Pace;
  readonly onOver: (run: Run) => void;
}

/** Calls the agent turn by turn, until its task is terminal, waits for its user, or is lost. */
export class Run implements HostedRun, PhaseHost, Driven {
  readonly key: TaskKey;
  readonly contextId: string;
  readonly hosted: HostedAgent;
  /** When the turn began; monotonic time. */
  startedAt: number;
  /** When the agent yielded last, or the turn began; monotonic time. */
  lastEventAt: number;

  readonly #deps: OwnDeps;
  #phase: Phase;
  input: TurnInput;
  /** Bytes of the memory budget that this run holds. */
  #bytes: number;
  /** The task at the start of the turn; absent in the turn that creates it. */
  #task: Task | undefined;
  /** Whether the context starts with this turn's message. */
  #isNewContext: boolean;
  #ended = false;
  #storeError: A2AError | undefined;
  #loss: Loss | undefined;
  #executing: Promise<void> | undefined;
  #waiters: readonly (() => void)[] = none;
  readonly #host: RunHost;
  #logger: Logger | undefined;
  /** The part of `#bytes` for results of steps. */
  #resultBytes = 0;

  constructor(deps: OwnDeps, init: RunInit) {
    this.#deps = deps;
    this.key = init.key;
    this.hosted = init.hosted;
    this.contextId = init.contextId;
    this.#bytes = init.bytes;
    this.startedAt = this.lastEventAt = deps.settings.clock.elapsed();
    this.input = firstTurnInput(init);
    this.#host = new RunHost(deps.settings, this, init.start && init.taskState);
    this.#isNewContext = init.start === undefined && init.isNewContext;
    if (init.start === undefined) {
      this.#phase = new FirstMessage(deps, this, init, this.input);
    } else {
      this.#task = init.task;
      this.#phase = this.#taskRun(init);
    }
  }

  get logger(): Logger {
    return (this.#logger ??= new FieldsLogger(this.#deps.settings.logger, () => {
      const { agent, taskId } = this.key;
      return taskFields({ agent, taskId, contextId: this.contextId, trace: this.input.call.trace });
    }));
  }

  /** Resolves when the run will not write anymore. */
  get done(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => void (this.#waiters = [...this.#waiters, resolve]));
  }

  /** The object that this run writes to: a message without a task, or a task. */
  get phase(): Phase {
    return this.#phase;
  }

  /** Functions that cancel other agents' tasks, if this task waits for the answer to a question of another agent. */
  get cancels(): readonly (() => void)[] {
    return this.#phase.suspends ? this.#host.cancels : none;
  }

  /** Runs until the task is terminal, waits for its user, or is lost. */
  start(): void {
    this.#executing = this.#execute();
  }

  /** Resolves once the agent's function has returned and no step is running, so that the run has no further effects. */
  async returned(): Promise<void> {
    await this.done;
    await this.#executing;
    await this.#host.stepsOver();
  }

  /** Executes the turns. Never rejects. */
  async #execute(): Promise<void> {
    try {
      if (this.hosted.agent.mayReplyDirectly === false) this.#phase.makeTask();
      for (;;) {
        const { conversations, settings } = this.#deps;
        const opening = contextOf(conversations, this.key, this.contextId, this.input, this.#isNewContext);
        this.#isNewContext = false;
        // For a new conversation, this is not a promise.
        const context = opening instanceof Promise ? await opening : opening;
        await (settings.observer?.turn === undefined
          ? this.#runTurn(context)
          : this.#runObserved(settings.observer.turn(this.#observed()), context));
        // Return here after a direct reply, which saves two promises per message.
        if (this.#phase.stopped) return;
        // The turn resumes later, so wait for the result of a running step, at most until `idleTimeout`.
        if (this.inStep && (this.#phase.suspends || this.#phase.waits !== undefined)) {
          await Promise.race([this.#host.stepsOver(), this.done]);
        }
        const next = await this.#phase.endTurn(context);
        if (next === undefined) return;
        this.#begin(next);
      }
    } catch (error) {
      this.#agentFailed(error);
    }
  }

  #runObserved(begun: Begun, context: ContextView): Promise<void> {
    const observation = typeof begun === "object" ? begun : undefined;
    return observe(begun, () => this.#runTurn(context, observation));
  }

  /** `observation`: the observer's span for the turn. */
  #runTurn(context: ContextView, observation?: Observation): Promise<void> {
    const turn = this.#turn(context, observation?.trace);
    const driven = observation?.yielded === undefined ? this : telling(this, observation.yielded);
    const extensions = this.#deps.settings.extensions.turn(turn);
    if (extensions === undefined) return drive(this.hosted.agent.execute(turn), driven, context);
    this.input.active = extensions;
    return this.#runExtended(extensions, turn, driven, context);
  }

  /** Separate from `#runTurn`, where its closure would cost memory for every message. */
  #runExtended(extensions: ExtensionsOfTurn, turn: EngineTurn, driven: Driven, context: ContextView): Promise<void> {
    return during(extensions, () => drive(this.hosted.agent.execute(turn), driven, context));
  }

  #observed(): ObservedTurn {
    const { turn, attempt, call, principal } = this.input;
    const { message } = this.input.resumes ?? this.input;
    const { agent, taskId } = this.key;
    const { card } = this.hosted;
    const { contextId } = this;
    return { agent, taskId, contextId, turn, attempt, trace: call.trace, card, message, principal };
  }

  progressed(): void {
    this.lastEventAt = this.#deps.settings.clock.elapsed();
  }

  /** For `drive()`: accepts the events that the agent yielded. Returns whether the turn continues. */
  accept(yielded: AgentYield, context: ContextView): boolean | Promise<boolean> {
    this.progressed();
    const events = isArray(yielded) ? yielded : [yielded];
    // The final message repeats stored artifacts, so store the events before it first.
    const end = this.hosted.agent.mirrorArtifactText === true && events.length > 1 ? events.at(-1) : undefined;
    if (endsSilently(end)) return this.#acceptBefore(end, events.slice(0, -1), context);
    return this.#accept(events, context);
  }

  async #acceptBefore(end: AgentEvent, events: readonly AgentEvent[], context: ContextView): Promise<boolean> {
    const continues = await this.#accept(events, context);
    return continues && this.#accept([end], context);
  }

  #accept(events: readonly AgentEvent[], context: ContextView): boolean | Promise<boolean> {
    const files = this.#host.outside;
    const accept = (given: readonly AgentEvent[]): boolean | Promise<boolean> => this.#phase.accept(given, context);
    // Files are durable before the record that refers to them.
    const isOutside = files?.has(events) === true && !this.#phase.stopped;
    const take = isOutside ? () => files.stored(events).then(accept) : () => accept(events);
    return this.#host.pass(events, take);
  }

  get outside(): PhaseHost["outside"] {
    return this.#host.outside;
  }

  get files(): PhaseHost["files"] {
    const { outside } = this.#host;
    return outside && ((record) => outside.rowsOf(record));
  }

  /** For `drive()`: yields to other runs of a busy process. `undefined`: not needed. */
  rest(): Promise<void> | undefined {
    return this.#deps.pace.rest();
  }

  /** For `drive()`: the store's error, if it has failed. */
  get storeError(): A2AError | undefined {
    return this.#storeError;
  }

  get loss(): Loss | undefined {
    return this.#loss;
  }

  // For the phases (`PhaseHost`).

  becomes(task: Phase): void {
    this.#phase = task;
  }

  abort(kind: TurnAbortKind, text: string, cause?: unknown): void {
    this.#host.abort.abort(kind, text, cause);
  }

  takeState(): TaskStateEffect | undefined {
    return this.#host.takeState();
  }

  hold(bytes: number): void {
    this.#deps.budget.change(this.key.owner, this.#bytes, bytes);
    this.#bytes = bytes;
    this.#resultBytes = 0;
  }

  get inStep(): boolean {
    return this.#host.inStep;
  }

  end(loss?: Loss, storeError?: A2AError): void {
    if (loss === "fenced" || loss === "cutOff") {
      const { agent, taskId } = this.key;
      this.#deps.settings.observer?.lease?.({ agent, taskId, contextId: this.contextId, change: "lost" });
    }
    this.#ended = true;
    this.#loss = loss;
    this.#storeError = storeError;
    this.#host.abort.end();
    this.#deps.budget.give(this.key.owner, this.#bytes);
    this.#deps.onOver(this);
    for (const resolve of this.#waiters) resolve();
  }

  #taskRun({ hosted, key, contextId, start }: TaskRunInit): TaskRun {
    const { settings } = this.#deps;
    const input = this.input;
    const { logger } = this;
    const task = { key, contextId, isNew: false, arrived: settings.clock.now(), logger };
    const recorder = new Recorder(settings, task, input);
    return new TaskRun(this.#deps, this, { hosted, key, contextId, input, recorder, start });
  }

  holdResults(bytes: number): void {
    if (this.#ended) return;
    this.hold(this.#bytes - this.#resultBytes + bytes);
    this.#resultBytes = bytes;
  }

  #turn(context: ContextView, trace: string | undefined): EngineTurn {
    const { clock } = this.#deps.settings;
    const { taskId } = this.key;
    const { skills } = this.hosted.card;
    const { input, logger } = this;
    const init = { input, taskId, contextId: this.contextId, task: this.#task, context, skills, logger, clock, trace };
    return new EngineTurn(init, this.#host);
  }

  #begin({ input, task }: NextTurn): void {
    this.#host.begin();
    this.input = input;
    this.#task = task;
    this.startedAt = this.lastEventAt = this.#deps.settings.clock.elapsed();
  }

  #agentFailed(error: unknown): void {
    if (isOfStore(error)) this.#phase.lose("store", error);
    if (this.#phase.stopped) this.logger.debug("Agent threw after its task had ended", { cause: error });
    else this.#phase.fail(sentenceFor(error), error, "failed");
  }
}

const none: readonly (() => void)[] = [];

/** Wraps a run so that it reports the agent's events to an observer first. */
function telling(run: Driven, yielded: NonNullable<Observation["yielded"]>): Driven {
  return {
    get phase() {
      return run.phase;
    },
    get storeError() {
      return run.storeError;
    },
    accept(given, context) {
      yielded(isArray(given) ? given : [given]);
      return run.accept(given, context);
    },
    rest: () => run.rest(),
  };
}

function isArray(yielded: AgentYield): yielded is readonly AgentEvent[] {
  return Array.isArray(yielded);
}

function sentenceFor(error: unknown): string {
  if (error instanceof AuthorizationNotGiven && error.kind !== "message") return safeSentences[error.kind];
  if (error instanceof DelegationFailed) return error.message;
  return isMistake(error) ? safeSentences.invalid : safeSentences.failed;
}
