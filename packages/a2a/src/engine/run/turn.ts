import type { Clock, Logger } from "../../base/index.ts";
import {
  textOf,
  type AgentCard,
  type JsonObject,
  type JsonLike,
  type JsonValue,
  type Message,
  type Task,
} from "../../model/index.ts";
import {
  TurnAborted,
  unmet,
  type AuthorizationInit,
  type DelegatingCall,
  type DelegationWatch,
  type Delegations,
  type OpenAuthorization,
  type Principal,
  type TurnAbortKind,
  type TurnBase,
  type TurnContext,
  type TurnFiles,
  type TurnMemory,
  type TurnRows,
  type TurnSignal,
} from "../../protocol/index.ts";
import type { ExtensionsOfTurn } from "../../extensions/turn.ts";
import type { StoredRun } from "../../store/index.ts";
import type { StoredCall } from "../log/index.ts";
import type { LostRange } from "./replay.ts";
import type { TaskValue } from "./task-value.ts";

/** A checkpoint as it is stored: the value of the agent, and how many events and ids it had made. */
export interface StoredCheckpoint {
  /** Absent: the agent has saved none. */
  readonly value?: JsonValue;
  readonly events: number;
  readonly ids: number;
  /** What the turn had counted (`TurnBase.count`). Absent: nothing. */
  readonly counts?: readonly (readonly [string, number])[];
  /** Events after it in the log that do not count, since a later attempt did not repeat them. Absent: none. */
  readonly lost?: readonly LostRange[];
  /** The turn had asked a question. */
  readonly asked?: true;
  /** The turn that goes on with the answer to a question of a delegation. */
  readonly suspended?: SuspendedTurn;
  /** The run of a turn that waits. It goes on when one of its waits is over. */
  readonly waiting?: StoredRun;
}

/** A turn that has ended with the question of a delegation, and goes on in the turn of the answer. */
export interface SuspendedTurn {
  /** The turn, from 1. */
  readonly turn: number;
  /** `seq` of its message. */
  readonly input: number;
  /** How many attempts it had, in all turns so far. */
  readonly attempt: number;
}

/** A turn of a task, and the message that it answers. */
export interface TurnInput {
  /** From 1. */
  readonly turn: number;
  /** From 1. A later attempt resumes a run that was lost. */
  readonly attempt: number;
  /** `seq` of the message. */
  readonly input: number;
  readonly message: Message;
  readonly call: StoredCall;
  /** The sender: with all claims where the turn begins with its request, else as far as it was stored. */
  readonly principal: Principal;
  /** The declared headers of the request: all where the turn begins with it, else those that were stored. `undefined`: none. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly checkpoint: StoredCheckpoint | undefined;
  /** The turn that goes on with `message`, which answers the question of a delegation. The agent sees this turn. */
  readonly resumes?: ResumedTurn | undefined;
  /** How many ids `makeId` has returned, those before the checkpoint included: a resumed run makes the same ids again. */
  ids: number;
  /** What it has counted, those before the checkpoint included. Made with the first count. */
  counts?: Map<string, number> | undefined;
  /** The extensions that are active in the turn, from its beginning. `undefined`: none. */
  active?: ExtensionsOfTurn;
}

/** A turn that goes on, and its message. */
export interface ResumedTurn extends SuspendedTurn {
  readonly message: Message;
  /** Of the call that brought this message. */
  readonly call: StoredCall;
}

export interface TurnInit {
  readonly input: TurnInput;
  readonly taskId: string;
  readonly contextId: string;
  readonly task: Task | undefined;
  readonly context: TurnContext;
  /** The skills on the card. */
  readonly skills: AgentCard["skills"];
  readonly logger: Logger;
  readonly clock: Clock;
}

/** What a turn needs of its run. */
export interface TurnHost {
  readonly signal: TurnSignal;
  readonly state: TaskValue;
  flush(): Promise<void>;
  authorization<Init extends AuthorizationInit>(
    init: Init,
    makeId: () => string,
  ): Promise<OpenAuthorization<Init["form"]>>;
  delegations(): Promise<Delegations>;
  memory(): Promise<TurnMemory>;
  /** What an extension keeps with the task, by its URI. */
  rows(feature: string): TurnRows;
  /** Its files outside of the store. `undefined`: there are none. */
  readonly outside: TurnFiles | undefined;
  /** Whether the agent is called again for a turn whose run was lost. */
  readonly resumable: boolean;
}

/** A turn as an executor sees it. It is made for every message, so members that few agents read are getters. */
export class EngineTurn implements TurnBase {
  readonly message: Message;
  readonly taskId: string;
  readonly contextId: string;
  readonly task: Task | undefined;
  readonly context: TurnContext;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly #input: TurnInput;
  readonly #skills: AgentCard["skills"];
  readonly #host: TurnHost;

  constructor({ input, taskId, contextId, task, context, skills, logger, clock }: TurnInit, host: TurnHost) {
    this.message = (input.resumes ?? input).message;
    this.taskId = taskId;
    this.contextId = contextId;
    this.task = task;
    this.context = context;
    this.logger = logger;
    this.clock = clock;
    this.#input = input;
    this.#skills = skills;
    this.#host = host;
  }

  get text(): string {
    return textOf(this.message);
  }

  get number(): number {
    return (this.#input.resumes ?? this.#input).turn;
  }

  get attempt(): number {
    return attemptOf(this.#input);
  }

  get checkpoint(): JsonValue | undefined {
    return this.#input.checkpoint?.value;
  }

  state(): JsonValue | undefined {
    return this.#host.state.read();
  }

  setState<Value extends JsonLike<Value>>(value: Value | undefined): void {
    this.#host.state.set(value);
  }

  get principal(): TurnBase["principal"] {
    return this.#input.principal;
  }

  allows(skillId: string): boolean {
    const skill = this.#skills.find(({ id }) => id === skillId);
    return skill !== undefined && unmet(skill.securityRequirements, this.principal) === undefined;
  }

  get call(): TurnBase["call"] {
    return this.#input.call;
  }

  get headers(): TurnBase["headers"] {
    // Without a prototype, since a name may be that of one of its members.
    return Object.assign(Object.create(null) as Record<string, string>, this.#input.headers);
  }

  get metadata(): JsonObject | undefined {
    return (this.#input.resumes ?? this.#input).call.metadata;
  }

  get acceptedOutputModes(): readonly string[] {
    return (this.#input.resumes ?? this.#input).call.acceptedOutputModes;
  }

  extension(uri: string): unknown {
    return this.#input.active?.get(uri);
  }

  extensionRows(uri: string): TurnRows {
    return this.#host.rows(uri);
  }

  watchDelegation(call: DelegatingCall): DelegationWatch | undefined {
    return this.#input.active?.delegating(call);
  }

  get resumable(): boolean {
    return this.#host.resumable;
  }

  get outside(): TurnFiles | undefined {
    return this.#host.outside;
  }

  get extensions(): readonly string[] {
    return activeIn(this.#input);
  }

  get signal(): TurnSignal {
    return this.#host.signal;
  }

  makeId(): string {
    this.#input.ids += 1;
    return `${this.number}-${this.#input.ids}`;
  }

  count(of: string, more: number): number {
    const counts = (this.#input.counts ??= new Map<string, number>());
    const count = (counts.get(of) ?? 0) + more;
    if (more > 0) counts.set(of, count);
    return count;
  }

  delegations(): Promise<Delegations> {
    return this.#host.delegations();
  }

  memory(): Promise<TurnMemory> {
    return this.#host.memory();
  }

  flush(): Promise<void> {
    return this.#host.flush();
  }

  requestAuthorization<Init extends AuthorizationInit>(init: Init): Promise<OpenAuthorization<Init["form"]>> {
    return this.#host.authorization(init, () => this.makeId());
  }
}

/** URIs of the extensions that are active in the turn that the agent sees. One that goes on with an answer has those of its message. */
export function activeIn({ call, resumes }: TurnInput): readonly string[] {
  return (resumes?.call ?? call).extensions;
}

/** Which attempt of the turn that the agent sees. */
export function attemptOf({ attempt, resumes }: TurnInput): number {
  return attempt + (resumes?.attempt ?? 0);
}

interface Reason {
  readonly kind: TurnAbortKind;
  readonly text: string;
  readonly cause: unknown;
}

/** The signal of a run. Most agents never read it, so the controller is made when one does. */
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

  /** Fires the signal. Only the first reason counts. */
  abort(kind: TurnAbortKind, text: string, cause?: unknown): void {
    this.#reason ??= { kind, text, cause };
    this.#controller?.abort(errorOf(this.#reason));
  }

  /** The run is over: a signal that is read from now on has fired. A signal that was read before does not fire. */
  end(): void {
    this.#reason ??= over;
  }
}

const over: Reason = { kind: "over", text: "The turn is over", cause: undefined };

function errorOf({ kind, text, cause }: Reason): TurnAborted {
  return new TurnAborted(kind, text, { cause });
}
