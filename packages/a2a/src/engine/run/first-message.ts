import { A2AError } from "../../model/index.ts";
import type { AgentEvent, TurnAbortKind } from "../../protocol/index.ts";
import type { ContextView } from "../context-view.ts";
import { agentMessage, type Loss } from "../log/index.ts";
import { agentMistake } from "../mistakes.ts";
import { DirectReply } from "../direct-replies.ts";
import {
  lossReasons,
  type FirstMessageInit,
  type FirstResult,
  type NextTurn,
  type Phase,
  type PhaseHost,
  type RunRooms,
} from "./phase.ts";
import type { TurnInput } from "./turn.ts";
import { Recorder } from "./recorder.ts";
import { TaskRun } from "./task-run.ts";

type ReplyEvent = Extract<AgentEvent, { kind: "reply" }>;

/** A message that has no task yet: the agent answers it directly, or its first event makes the task. */
export class FirstMessage implements Phase {
  readonly #rooms: RunRooms;
  readonly #host: PhaseHost;
  readonly #init: FirstMessageInit;
  readonly #input: TurnInput;
  /** When the message came, on the wall: the time of the task's first record. */
  readonly #arrived: number;
  /** A direct answer is being stored. */
  #answering = false;
  #over = false;

  constructor(rooms: RunRooms, host: PhaseHost, init: FirstMessageInit, input: TurnInput) {
    this.#rooms = rooms;
    this.#host = host;
    this.#init = init;
    this.#input = input;
    this.#arrived = rooms.settings.clock.now();
  }

  get bytes(): number {
    return this.#init.bytes;
  }

  get stopped(): boolean {
    return this.#over;
  }

  // Without a task there is no fence, no question and nothing in the log.
  get fence(): undefined {
    return undefined;
  }

  get isInterrupted(): boolean {
    return false;
  }

  get silenced(): boolean {
    return false;
  }

  get hasSpoken(): boolean {
    return false;
  }

  get storeError(): undefined {
    return undefined;
  }

  accept(events: readonly AgentEvent[], context: ContextView): Promise<unknown> | undefined {
    const [first] = events;
    if (events.length === 1 && first?.kind === "reply") return this.#answer(first, context);
    const recorder = this.#recorder();
    const recorded = recorder.takeFirst(events);
    const task = this.#become(first?.kind === "status" ? "TASK_STATE_SUBMITTED" : "TASK_STATE_WORKING", recorder);
    task.store(recorded, context);
    return undefined;
  }

  makeTask(): void {
    if (!this.#over && !this.#answering) this.#become("TASK_STATE_SUBMITTED", this.#recorder());
  }

  fail(sentence: string, cause: unknown, kind: TurnAbortKind): void {
    if (!this.#over) this.#become("TASK_STATE_WORKING", this.#recorder()).fail(sentence, cause, kind);
  }

  lose(loss: Loss): void {
    if (this.#over) return;
    this.#over = true;
    this.#init.result.reject(new A2AError("Unavailable"));
    this.#host.abort(...lossReasons[loss]);
    this.#host.end();
  }

  stop(): Promise<void> {
    this.lose("shutdown");
    return Promise.resolve();
  }

  room(): undefined {}

  flush(): Promise<void> {
    return Promise.resolve();
  }

  /** There is none without a task. */
  endTurn(): Promise<NextTurn | undefined> {
    return Promise.resolve(undefined);
  }

  /** What has no task has never crashed a process. */
  proven(): Promise<void> {
    return Promise.resolve();
  }

  acquit(): void {}

  #answer(given: ReplyEvent, context: ContextView): Promise<void> | undefined {
    const { conversations, settings } = this.#rooms;
    const { contextId, once } = this.#init;
    const event = this.#extended(given);
    const message = agentMessage(event.message, { messageId: settings.ids.next(), contextId });
    const reply = new DirectReply(message);
    const stored = conversations.keepReply(context, this.#input.message, reply.text, once);
    if (stored === undefined) {
      this.#answered({ kind: "message", reply });
      return undefined;
    }
    this.#answering = true;
    return stored.then((outcome) => {
      const before = outcome.ok ? undefined : outcome.once;
      this.#answered(before === undefined ? { kind: "message", reply } : { kind: "duplicate", once: before });
    });
  }

  /** What extensions make of a direct answer. */
  #extended(event: ReplyEvent): ReplyEvent {
    const { call, message } = this.#input;
    const { extensions } = call;
    if (extensions.length === 0) return event;
    const turn = { contextId: this.#init.contextId, message, extensions };
    const extended = this.#rooms.settings.extensions.append(event, turn);
    if (extended?.kind === "reply") return extended;
    throw agentMistake("an extension turned a direct reply into another event");
  }

  #answered(result: FirstResult): void {
    if (this.#over) return;
    this.#over = true;
    this.#init.result.resolve(result);
    this.#host.end();
  }

  #become(state: "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING", recorder: Recorder): TaskRun {
    const { hosted, key, contextId, once, result, bytes } = this.#init;
    this.#over = true;
    const task = TaskRun.create(
      this.#rooms,
      this.#host,
      { hosted, key, contextId, bytes, input: this.#input, recorder, result },
      { state, once },
    );
    this.#host.becomes(task);
    return task;
  }

  #recorder(): Recorder {
    const { key, contextId } = this.#init;
    const task = { key, contextId, isNew: true, arrived: this.#arrived };
    return new Recorder(this.#rooms.settings, task, this.#input);
  }
}
