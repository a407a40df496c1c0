import type { Clock, Logger } from "../../base/index.ts";
import { textOf, type JsonObject, type JsonValue, type Message, type Task } from "../../model/index.ts";
import type { TurnBase, TurnContext, TurnSignal } from "../../protocol/index.ts";
import type { TurnAtHand } from "./intake.ts";

export interface TurnInit {
  readonly at: TurnAtHand;
  readonly taskId: string;
  readonly contextId: string;
  readonly task: Task | undefined;
  readonly context: TurnContext;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** What a turn asks of its run. */
export interface TurnHost {
  readonly signal: TurnSignal;
  makeId(): string;
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
  readonly #at: TurnAtHand;
  readonly #host: TurnHost;

  constructor({ at, taskId, contextId, task, context, logger, clock }: TurnInit, host: TurnHost) {
    this.message = at.message;
    this.taskId = taskId;
    this.contextId = contextId;
    this.task = task;
    this.context = context;
    this.logger = logger;
    this.clock = clock;
    this.#at = at;
    this.#host = host;
  }

  get text(): string {
    return textOf(this.message);
  }

  get number(): number {
    return this.#at.turn;
  }

  get attempt(): number {
    return this.#at.attempt;
  }

  get checkpoint(): JsonValue | undefined {
    return this.#at.checkpoint?.value;
  }

  get principal(): TurnBase["principal"] {
    return this.#at.principal;
  }

  get call(): TurnBase["call"] {
    return this.#at.call;
  }

  get metadata(): JsonObject | undefined {
    return this.#at.call.metadata;
  }

  get acceptedOutputModes(): readonly string[] {
    return this.#at.call.acceptedOutputModes;
  }

  get extensions(): readonly string[] {
    return this.#at.call.extensions;
  }

  get signal(): TurnSignal {
    return this.#host.signal;
  }

  makeId(): string {
    return this.#host.makeId();
  }

  flush(): Promise<void> {
    return this.#host.flush();
  }
}
