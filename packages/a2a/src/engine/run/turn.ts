import type { Clock, Logger } from "../../base/index.ts";
import { textOf, type JsonObject, type JsonValue, type LogRecord, type Message, type Task } from "../../model/index.ts";
import {
  TurnAborted,
  type Principal,
  type TurnAbortKind,
  type TurnBase,
  type TurnContext,
  type TurnSignal,
} from "../../protocol/index.ts";
import type { StoredCall } from "../log/index.ts";

/** A checkpoint as it is stored: the agent's value, and how far its events and ids had come. */
export interface StoredCheckpoint {
  readonly value: JsonValue;
  readonly events: number;
  readonly ids: number;
  /** A question of this turn stands. */
  readonly asked?: true;
}

/** Which turn of its task it is, and the message that it answers. */
export interface TurnInput {
  /** From 1. */
  readonly turn: number;
  /** Which try of it; more than 1 resumes a run that was lost. */
  readonly attempt: number;
  /** `seq` of the message. */
  readonly input: number;
  readonly message: Message;
  readonly call: StoredCall;
  /** Who sent it: with all that the authenticator found where the turn begins with the request, else as it was stored. */
  readonly principal: Principal;
  readonly checkpoint: StoredCheckpoint | undefined;
  /** How many ids the agent has asked for, those before its checkpoint included: a resumed run makes the same ids again. */
  ids: number;
}

export interface TurnInit {
  readonly input: TurnInput;
  readonly taskId: string;
  readonly contextId: string;
  readonly task: Task | undefined;
  readonly context: TurnContext;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** What a turn needs of its run. */
export interface TurnHost {
  readonly signal: TurnSignal;
  flush(): Promise<void>;
}

/** A turn as an executor sees it. A class of getters, made for every message: what nobody asks for costs nothing. */
export class EngineTurn implements TurnBase {
  readonly message: Message;
  readonly taskId: string;
  readonly contextId: string;
  readonly task: Task | undefined;
  readonly context: TurnContext;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly #input: TurnInput;
  readonly #host: TurnHost;

  constructor({ input, taskId, contextId, task, context, logger, clock }: TurnInit, host: TurnHost) {
    this.message = input.message;
    this.taskId = taskId;
    this.contextId = contextId;
    this.task = task;
    this.context = context;
    this.logger = logger;
    this.clock = clock;
    this.#input = input;
    this.#host = host;
  }

  get text(): string {
    return textOf(this.message);
  }

  get number(): number {
    return this.#input.turn;
  }

  get attempt(): number {
    return this.#input.attempt;
  }

  get checkpoint(): JsonValue | undefined {
    return this.#input.checkpoint?.value;
  }

  get principal(): TurnBase["principal"] {
    return this.#input.principal;
  }

  get call(): TurnBase["call"] {
    return this.#input.call;
  }

  get metadata(): JsonObject | undefined {
    return this.#input.call.metadata;
  }

  get acceptedOutputModes(): readonly string[] {
    return this.#input.call.acceptedOutputModes;
  }

  get extensions(): readonly string[] {
    return this.#input.call.extensions;
  }

  get signal(): TurnSignal {
    return this.#host.signal;
  }

  makeId(): string {
    const { turn } = this.#input;
    this.#input.ids += 1;
    return `${turn}-${this.#input.ids}`;
  }

  flush(): Promise<void> {
    return this.#host.flush();
  }
}

interface Reason {
  readonly kind: TurnAbortKind;
  readonly text: string;
  readonly cause: unknown;
}

/** The signal of a run, which most agents never ask for: the controller is made for those that do. */
export class RunAbort {
  #reason: Reason | undefined;
  #controller: AbortController | undefined;

  get signal(): TurnSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(errorOf(this.#reason));
    }
    return this.#controller.signal;
  }

  /** Fires the signal; only the first reason counts. */
  abort(kind: TurnAbortKind, text: string, cause?: unknown): void {
    this.#reason ??= { kind, text, cause };
    this.#controller?.abort(errorOf(this.#reason));
  }

  /** The run is over: a signal that is asked for from now on has fired. One that an agent has already does not fire for it. */
  end(): void {
    this.#reason ??= over;
  }
}

const over: Reason = { kind: "over", text: "The turn is over", cause: undefined };

function errorOf({ kind, text, cause }: Reason): TurnAborted {
  return new TurnAborted(kind, text, { cause });
}

/** The turn of a message that waited in the log. */
export function nextTurnInput({ seq, json, call: stored }: LogRecord, turn: number): TurnInput {
  const call = JSON.parse(stored ?? "null") as StoredCall;
  const message = JSON.parse(json) as Message;
  return { turn, attempt: 1, input: seq, message, call, principal: call.principal, checkpoint: undefined, ids: 0 };
}
