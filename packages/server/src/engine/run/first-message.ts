import { A2AError, type Message } from "@parley/a2a/internal/model/index";
import type { AgentEvent, MessageRefused, TurnAbortKind } from "@parley/a2a/internal/protocol/index";
import { DirectReply, type ContextView } from "../conversations/conversations.ts";
import { agentMessage, type Loss } from "../log/index.ts";
import { agentMistake, checkReply } from "../shared/mistakes.ts";
import { turnIsLost } from "../shared/errors.ts";
import { lossReasons, noEvent, safeSentences, type Phase, type PhaseHost, type RunDeps } from "./phase.ts";
import { Recorder } from "./recorder.ts";
import { isReference, type RunFiles } from "./run-files.ts";
import { TaskRun } from "./task-run.ts";
import type { FirstMessageInit, FirstResult, TurnInput } from "./turn-input.ts";

type ReplyEvent = Extract<AgentEvent, { kind: "reply" }>;

/** A message that has no task yet. The agent answers the message directly, or the agent's first event creates the task. */
export class FirstMessage implements Phase {
  stopped = false;
  readonly resting = false;
  readonly suspends = false;
  readonly waits = undefined;
  readonly #deps: RunDeps;
  readonly #host: PhaseHost;
  readonly #init: FirstMessageInit;
  readonly #input: TurnInput;
  /** Wall time of the message's arrival, which becomes the time of the task's first record. */
  readonly #arrived: number;
  #answering = false;

  constructor(deps: RunDeps, host: PhaseHost, init: FirstMessageInit, input: TurnInput) {
    this.#deps = deps;
    this.#host = host;
    this.#init = init;
    this.#input = input;
    this.#arrived = deps.settings.clock.now();
  }

  get fence(): undefined {
    return undefined;
  }

  get isInterrupted(): boolean {
    return false;
  }

  accept(events: readonly AgentEvent[], context: ContextView): boolean | Promise<boolean> {
    if (this.stopped) return false;
    const [first] = events;
    if (events.length === 1 && first?.kind === "reply") return this.#answer(first, context);
    const recorder = this.#recorder();
    const recorded = recorder.takeFirst(events);
    const task = this.#become(first?.kind === "status" ? "TASK_STATE_SUBMITTED" : "TASK_STATE_WORKING", recorder);
    return task.store(recorded, context);
  }

  makeTask(): void {
    if (!this.stopped && !this.#answering) this.#become("TASK_STATE_SUBMITTED", this.#recorder());
  }

  fail(sentence: string, cause: unknown, kind: TurnAbortKind): void {
    if (!this.stopped) this.#become("TASK_STATE_WORKING", this.#recorder()).fail(sentence, cause, kind);
  }

  refuse({ ask, code, message, fields }: MessageRefused): boolean {
    if (this.stopped) return true;
    if (ask !== undefined) return false;
    this.stopped = true;
    // Copy the error: if the caller is an agent in this process, the original would seem to reject that agent's own message.
    this.#init.result.reject(new A2AError(code, message, { fields }));
    this.#host.end();
    return true;
  }

  lose(loss: Loss): void {
    if (this.stopped) return;
    this.stopped = true;
    this.#init.result.reject(turnIsLost());
    this.#host.abort(...lossReasons[loss]);
    this.#host.end();
  }

  stop(): Promise<void> {
    this.lose("shutdown");
    return Promise.resolve();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  keep(): Promise<void> {
    return Promise.reject(new A2AError("Unavailable", "The message has no task"));
  }

  rest(): void {}

  /** Fails, because the turn has neither created a task nor given an answer. */
  endTurn(): Promise<undefined> {
    this.fail(safeSentences.silent, agentMistake(noEvent), "failed");
    return Promise.resolve(undefined);
  }

  /** Only stored tasks are taken over after a crash, so a message without a task is never on trial. */
  proven(): Promise<void> {
    return Promise.resolve();
  }

  clearCrashSuspicion(): void {}

  excuse(): void {}

  joined(): Promise<void> {
    return Promise.resolve();
  }

  #answer(given: ReplyEvent, context: ContextView): false | Promise<false> {
    const { settings } = this.#deps;
    const { contextId } = this.#init;
    const state = this.#host.takeState();
    if (state !== undefined && state.value !== null) throw agentMistake(noPlaceForState);
    checkReply(given);
    const event = this.#extended(given);
    const message = agentMessage(event.message, { messageId: settings.ids.next(), contextId });
    const files = this.#host.outside;
    const asked = this.#input.message;
    if (files !== undefined && [message, asked].some(({ parts }) => parts.some(isReference))) {
      return this.#inlined(files, message, context);
    }
    return this.#reply(message, asked, context);
  }

  /** Inlines the files of a direct reply, because there is no task to store them. */
  async #inlined(files: RunFiles, given: Message, context: ContextView): Promise<false> {
    this.#answering = true;
    const message = await files.inlined(given);
    if (message.parts.some(({ url }, at) => url !== given.parts[at]?.url && url !== undefined))
      throw agentMistake(noPlaceForFile);
    const asked = await files.inlined(this.#input.message);
    return this.stopped ? false : this.#reply(message, asked, context);
  }

  #reply(message: Message, asked: Message, context: ContextView): false | Promise<false> {
    const { conversations } = this.#deps;
    const reply = new DirectReply(message);
    const stored = conversations.keepReply(context, asked, reply.text, this.#init.once);
    if (stored === undefined) return this.#answered({ kind: "message", reply });
    this.#answering = true;
    return stored.then((outcome) => {
      const before = outcome.ok ? undefined : outcome.once;
      return this.#answered(before === undefined ? { kind: "message", reply } : { kind: "duplicate", once: before });
    });
  }

  /** Applies extensions to a direct reply. */
  #extended(event: ReplyEvent): ReplyEvent {
    const { active, call, message } = this.#input;
    const { extensions } = call;
    if (extensions.length === 0) return event;
    const { clock } = this.#deps.settings;
    const turn = { contextId: this.#init.contextId, message, extensions, clock };
    const extended = this.#deps.settings.extensions.append(event, turn, active);
    if (extended?.kind === "reply") return extended;
    throw agentMistake("an extension turned a direct reply into another event");
  }

  #answered(result: FirstResult): false {
    if (this.stopped) return false;
    this.stopped = true;
    this.#init.result.resolve(result);
    this.#host.end();
    return false;
  }

  #become(state: "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING", recorder: Recorder): TaskRun {
    const { hosted, key, contextId, once, kept, result } = this.#init;
    this.stopped = true;
    const start = { run: null, state, once, kept, result };
    const task = new TaskRun(this.#deps, this.#host, { hosted, key, contextId, input: this.#input, recorder, start });
    this.#host.becomes(task);
    return task;
  }

  #recorder(): Recorder {
    const { key, contextId } = this.#init;
    const task = { key, contextId, isNew: true, arrived: this.#arrived, logger: this.#host.logger };
    return new Recorder(this.#deps.settings, task, this.#input);
  }
}

const noPlaceForState =
  "turn.setState(): a direct reply has no task to store a state; use turn.context.setState(), or yield an event before";

const noPlaceForFile =
  "turn.reply(): a direct reply has no task that could keep a file of more than 6 MiB; yield an artifact instead";
