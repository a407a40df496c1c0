import type { Bytes, Clock, Logger } from "@parley/a2a/internal/base/index";
import type { Message, Part } from "@parley/a2a/internal/model/index";
import type {
  Audit,
  AuditRecord,
  AuthorizationInit,
  BodyBudget,
  OpenAuthorization,
  Principal,
  TurnSignal,
  UniversalRequest,
  UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import type { Seal } from "../seal/index.ts";
import type { FeatureEffect, Store, TaskKey } from "../store/index.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/* In-task authorization (A2A 1.0 §7.6): its options, and its port for the engine and the host. */

/** How agents of a server get authorizations for their tasks, by `turn.authorize()`. */
export interface InTaskOptions {
  /**
   * Keys of 32 random bytes, each in base64: `openssl rand -base64 32`. They sign links and seal credentials. The first key is used. The
   * others only open values that they sealed earlier. All processes on one store need the same keys. Default: `push.keys`; with `serve()`
   * the keys of the environment variable `PARLEY_KEYS`, separated by commas; then a key that ends with the process, if `publicUrl` is a
   * loopback address; otherwise `turn.authorize()` fails.
   */
  readonly keys?: readonly string[];
  /**
   * Identifies the user who opened a link, such as by a session cookie of your site. Only the task's principal may then answer; the link is
   * rejected for others. `undefined`: not signed in, and the link is rejected. Default: anyone with the link may answer. A request with
   * credentials for the server's authenticator must always come from the principal of the task.
   */
  identify?(request: UniversalRequest): Principal | undefined | Promise<Principal | undefined>;
}

/** The options with their defaults. `server/features.ts` makes them. */
export interface InTaskSettings extends Pick<InTaskOptions, "identify"> {
  /** 32 bytes each. Throws if the server has no keys; the error names the option to set. */
  readonly keys: () => readonly [Bytes, ...Bytes[]];
  /** The URL of the callback, as clients reach it. */
  readonly url: string;
  /** The caller of a request with credentials; `undefined` for any other. */
  readonly caller: (request: UniversalRequest) => Promise<Principal | undefined>;
}

/** Engine dependencies of authorizations. */
export interface InTaskHost {
  readonly store: Pick<Store, "append" | "dueFeatures" | "features" | "head">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ownerOf: (principal: Principal) => string;
  /** How often waiting turns poll for answers that another process has stored, in milliseconds. */
  readonly pollInterval: number;
  readonly audit?: Audit | undefined;
}

/** The turn that asks. */
export interface AuthorizingTurn {
  readonly task: TaskKey;
  readonly contextId: string;
  /** Name of the agent, for the page. */
  readonly agentName: string;
  readonly principal: Principal;
  readonly number: number;
  readonly signal: TurnSignal;
  makeId(): string;
  /** Stores rows with the task, and creates the task if necessary. */
  keep(effects: readonly FeatureEffect[]): Promise<void>;
  /** Sets whether the turn only waits. A stopping process then releases it to another process. */
  rest(resting: boolean): void;
}

/** Functions for the engine and the host. */
export interface Authorizations {
  /** Opens a request of a turn, or finds the one that it opened before a restart. */
  open<Init extends AuthorizationInit>(init: Init, turn: AuthorizingTurn): Promise<OpenAuthorization<Init["form"]>>;
  /** Whether a turn of the task waits for an authorization, or has not read one yet. */
  isAwaited(task: TaskKey): Promise<boolean>;
  /** Takes the credential out of a message. */
  take(message: Message, answer: Part): Promise<TakenAnswer>;
  /** Wakes the waiting turns of a task after this process has stored something for it. */
  changed(task: TaskKey): void;
  /**
   * Answers a request to the callback.
   *
   * @param bodies - The memory that all bodies share while they are received. Absent: no limit.
   */
  callback(request: UniversalRequest, bodies?: BodyBudget): Promise<UniversalResponse>;
}

/** A message without its credential. */
export interface TakenAnswer {
  /** The message without the credential. */
  readonly message: Message;
  /** Id of the request that it answers. */
  readonly id: string;
  /** Effects to store with the message. Rejects with `InvalidParams` if the task has no such open request. */
  effects(task: TaskKey): Promise<readonly FeatureEffect[]>;
  /** Called after it was stored with the message. */
  stored(task: TaskKey): void;
}

export function audited(
  { audit, clock }: Pick<InTaskHost, "audit" | "clock">,
  { agent, taskId }: TaskKey,
  contextId: string | undefined,
  record: Pick<AuditRecord, "action" | "outcome"> & Partial<AuditRecord>,
): void {
  audit?.({ event: "credential", time: clock.now(), agent, taskId, ...defined({ contextId }), ...record });
}

/** The context of a task, for the audit. `undefined` without an audit, or without the task. */
export async function auditedContext(
  { audit, store }: Pick<InTaskHost, "audit" | "store">,
  task: TaskKey,
): Promise<string | undefined> {
  return audit === undefined ? undefined : (await store.head(task, task.taskId))?.contextId;
}

/** Shared by the files of this folder. */
export interface InTaskParts {
  readonly settings: InTaskSettings;
  readonly host: InTaskHost;
  readonly seal: Seal;
  readonly waits: {
    on(task: TaskKey, run: () => void): () => void;
    changed(task: TaskKey): void;
  };
}
