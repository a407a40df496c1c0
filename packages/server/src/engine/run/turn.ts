import type { Clock, Logger } from "@parley/a2a/internal/base/index";
import {
  textOf,
  type AgentCard,
  type JsonObject,
  type JsonLike,
  type JsonValue,
  type Message,
  type Task,
} from "@parley/a2a/internal/model/index";
import {
  unmet,
  type AuditDetails,
  type AuthorizationInit,
  type Begun,
  type DelegatingCall,
  type DelegationWatch,
  type Delegations,
  type OpenAuthorization,
  type TurnBase,
  type TurnContext,
  type TurnFiles,
  type TurnMemory,
  type TurnObserver,
  type TurnRows,
  type TurnSignal,
} from "@parley/a2a/internal/protocol/index";
import { activeIn, attemptOf, seenBy, type TurnInput } from "./turn-input.ts";
import type { RunHost } from "./turn-host.ts";

export interface TurnInit {
  readonly input: TurnInput;
  readonly taskId: string;
  readonly contextId: string;
  readonly task: Task | undefined;
  readonly context: TurnContext;
  readonly skills: AgentCard["skills"];
  readonly logger: Logger;
  readonly clock: Clock;
  /** W3C `traceparent` of the observer's span for the turn. */
  readonly trace: string | undefined;
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
  readonly #trace: string | undefined;
  readonly #skills: AgentCard["skills"];
  readonly #host: RunHost;

  constructor({ input, taskId, contextId, task, context, skills, logger, clock, trace }: TurnInit, host: RunHost) {
    this.message = seenBy(input).message;
    this.taskId = taskId;
    this.contextId = contextId;
    this.task = task;
    this.context = context;
    this.logger = logger;
    this.clock = clock;
    this.#input = input;
    this.#trace = trace;
    this.#skills = skills;
    this.#host = host;
  }

  get text(): string {
    return textOf(this.message);
  }

  get number(): number {
    return seenBy(this.#input).turn;
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
    const { call } = this.#input;
    return this.#trace === undefined ? call : { ...call, trace: this.#trace };
  }

  get headers(): TurnBase["headers"] {
    // No prototype, because a header may have the name of a prototype's member.
    return Object.assign(Object.create(null) as Record<string, string>, this.#input.headers);
  }

  get metadata(): JsonObject | undefined {
    return seenBy(this.#input).call.metadata;
  }

  get acceptedOutputModes(): readonly string[] {
    return seenBy(this.#input).call.acceptedOutputModes;
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

  get observed(): TurnObserver<Begun> | undefined {
    return this.#host.observed;
  }

  audit(action: string, details?: AuditDetails): void {
    this.#host.audit(action, details);
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
