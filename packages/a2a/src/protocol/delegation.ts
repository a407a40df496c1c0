import type {
  AgentCard,
  Artifact,
  Content,
  JsonObject,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  Part,
  SendMessageRequest,
  SendMessageResponse,
  StandardSchema,
  StreamResponse,
  Task,
} from "../model/index.ts";
import type { AgentMessage, OpenDelegation } from "./agent-event.ts";
import type { DelegationFailed } from "./turn-errors.ts";

/* Agents that call agents: arguments, results and stored data of `turn.delegate()`. */

/** Options of a call to another agent. */
export interface DelegateCallOptions {
  /** Ends the call when it is aborted. */
  readonly signal?: AbortSignal;
  /** Maximum duration of a call in milliseconds. `false`: no limit. */
  readonly timeout?: number | false;
  /** W3C `traceparent` to send. */
  readonly trace?: string;
  /** URIs of extensions to request, in addition to the client's (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** For a subscription: continue after the event with this number, if the agent's card promises it. */
  readonly after?: number;
}

/** Events of a task. `seq`: number of the latest event, if the agent's card promises numbers. */
export interface DelegateEvents extends AsyncIterable<StreamResponse> {
  /** Number of the latest event in the log of its task. */
  readonly seq?: number | undefined;
}

/** The part of a client that `turn.delegate()` needs. A `Client` of `@parley/a2a` fits. */
export interface DelegateClient {
  /** The card of the agent. Its name and first address identify the agent; its extensions declare its guarantees. */
  readonly card: Pick<AgentCard, "name" | "capabilities" | "supportedInterfaces">;
  /** Sends a message and follows its task. */
  sendStreamingMessage(request: SendMessageRequest, options?: DelegateCallOptions): DelegateEvents;
  /** Sends a message. */
  sendMessage(request: SendMessageRequest, options?: DelegateCallOptions): Promise<SendMessageResponse>;
  /** Follows a task. */
  subscribeToTask(taskId: string, options?: DelegateCallOptions): DelegateEvents;
  /** Reads a task. */
  getTask(taskId: string, options?: DelegateCallOptions): Promise<Task>;
  /** Lists tasks. */
  listTasks(request: ListTasksRequest, options?: DelegateCallOptions): Promise<ListTasksResponse>;
  /** Cancels a task. */
  cancelTask(taskId: string, options?: DelegateCallOptions): Promise<Task>;
}

/** A message for another agent: content, or a message without the members that the delegation sets. */
export type DelegateMessage = Content | DelegateMessageInit;

/** A message without its id and its role. */
export interface DelegateMessageInit extends Omit<Partial<Message>, "messageId" | "role"> {
  /** The content, at least one part. */
  readonly parts: readonly Part[];
}

/** A delegation that starts, or continues after a restart or a question. Finished delegations are not reported again. */
export interface DelegatingCall {
  /** The card of the other agent. */
  readonly card: DelegateClient["card"];
  /** The parts of the message to it. */
  readonly parts: readonly Part[];
}

/** Receives the events of a delegation. */
export interface DelegationWatch {
  /** URIs of extensions to request in its calls, in addition to the client's. */
  readonly extensions?: readonly string[];
  /** An event of the other agent. The delegation waits until the returned promise settles, for example for a change of rows. */
  onEvent?(event: StreamResponse): void | Promise<void>;
  /** The delegation has ended or was suspended, for example while this task asks its question. `error`: its error, if it failed. */
  onEnd?(end: { readonly error?: unknown }): void;
}

/** Options of `turn.delegate()`. */
export interface DelegateOptions {
  /**
   * Names the delegation for the whole task: a later turn with the same key gets the same result and sends nothing. At most 200 characters.
   * Default: agent and message identify it within a turn.
   */
  readonly key?: string;
  /**
   * Progress of the other agent to show in this task: `false`, or a pure function that returns the content to show
   * (`undefined`: none). Default: every message.
   */
  readonly progress?: false | ((message: Message) => Content | undefined);
  /**
   * Artifacts of the other agent that this task adopts: `false`, or a function that maps each chunk (`undefined`: drops it).
   * Default: all, with ids that are unique here.
   */
  readonly artifacts?: false | ((chunk: Artifact) => Omit<Artifact, "artifactId"> | undefined);
  /**
   * `false`: a question of the other agent ends the delegation, and is in `task.status` of the result; answer it with a message that has
   * that `taskId`. Default: this task asks the question and forwards the answer.
   */
  readonly questions?: false;
  /**
   * When to cancel the other agent's task: if this task ends in any way before it (`always`), only if this task is canceled (`canceled`), or `never`.
   * A stopping server does not cancel it. Default `always`.
   */
  readonly cancel?: "always" | "canceled" | "never";
  /**
   * What to do if a crash leaves it unknown whether the message arrived, and the other agent does not promise idempotent sends: `fail`, or
   * `resend`, which may send it twice. Default `fail`.
   */
  readonly onUncertain?: "fail" | "resend";
  /** The conversation with the other agent. Default: one per conversation of this agent. `false`: a new one. */
  readonly contextId?: string | false;
  /** Media types that the answer may have (A2A 1.0 §3.2.2). Default: any. */
  readonly acceptedOutputModes?: readonly string[];
  /** `metadata` of the send request. */
  readonly metadata?: JsonObject;
  /** Maximum size of the artifacts in the result, in bytes of JSON. Larger ones pass through; reading them from the result throws. Default 1 MiB. */
  readonly resultBytes?: number;
}

/** The result of `turn.delegate()`. */
export interface Delegated {
  /** The task of the other agent, without its artifacts and history. `undefined` for a direct reply. */
  readonly task: Task | undefined;
  /** The direct reply. `undefined` if the agent created a task. */
  readonly message: Message | undefined;
  /** The artifacts of the task, unchanged; empty for a direct reply. Throws `UnsupportedOperation` if they exceed `resultBytes`. */
  readonly artifacts: readonly Artifact[];
  /**
   * The text of the direct reply, of the artifacts, or of the last status. Texts are joined by line breaks. Throws `UnsupportedOperation`
   * if the artifacts exceed `resultBytes`.
   */
  readonly text: string;
  /**
   * The first data in the reply or the artifacts that matches a Standard Schema. Throws as `dataOf()` does, and
   * `UnsupportedOperation` if the artifacts exceed `resultBytes`.
   */
  data<Output>(schema: StandardSchema<Output>): Promise<Output>;
}

/** Results of `turn.all()` with `settled`. */
export type Settled<T> =
  | { readonly status: "fulfilled"; readonly value: T }
  | { readonly status: "rejected"; readonly reason: unknown };

/** The return type of a generator. */
export type ReturnOf<T> = T extends AsyncGenerator<unknown, infer Value, never> ? Value : never;

/* Data that the engine stores with the task, and only `turn.delegate()` reads. */

/** The stored result of a delegation, so that a later attempt gets the same result. */
export interface ClosedDelegation {
  /** Same as in `OpenDelegation`. */
  readonly number: number;
  /** Same as in `OpenDelegation`. */
  readonly agent: string;
  /** Same as in `OpenDelegation`. */
  readonly addresses?: readonly string[];
  /** Same as in `OpenDelegation`. */
  readonly hash: string;
  /** The result. Absent if it failed. */
  readonly result?: {
    /** The direct reply. */
    readonly message?: Message;
    /** The task, without artifacts and history. */
    readonly task?: Task;
    /** Its artifacts, if they are small. */
    readonly artifacts?: readonly Artifact[];
    /** Size of its artifacts in bytes of JSON, if they are not stored here. */
    readonly bytes?: number;
  };
  /** Why it failed. */
  readonly failure?: {
    /** `DelegationFailed.kind`. */
    readonly kind: DelegationFailed["kind"];
    /** Its message. */
    readonly text: string;
    /** Its task. */
    readonly task?: Task;
    /** `DelegationFailed.untaken`. */
    readonly untaken?: true;
  };
}

/** The delegations of a task, for one turn. Created by `TurnBase.delegations()`, used by `Turn.delegate()`. */
export interface Delegations {
  /** Open delegations by key. */
  readonly open: ReadonlyMap<string, OpenDelegation>;
  /** Finished delegations by key. */
  readonly closed: ReadonlyMap<string, ClosedDelegation>;
  /** `seq` of the message that answers the question of a delegation; `undefined` if this turn has none. */
  readonly answer: number | undefined;
  /** A message of the user, by its `seq` in the log of the task. */
  message(seq: number): Promise<Message | undefined>;
  /** The time, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Whether this task asks the question of a delegation: the turn has ended, and resumes with the answer. */
  readonly asking: boolean;
  /** The requests for an authorization that this task shows, by delegation. `undefined`: shown before a restart. */
  readonly authorizations: Map<string, AgentMessage | undefined>;
  /** Keys of running delegations. */
  readonly running: Set<string>;
  /** Keys that this attempt has reached. */
  readonly had: Set<string>;
  /** Settles when no other delegation of this turn is searching for its row. */
  identified: Promise<unknown>;
  /** Stores an open delegation, and creates the task if necessary. Resolves once it and all earlier events are stored. */
  store(key: string, row: OpenDelegation): Promise<void>;
  /** Stores this turn's answer with the delegation that asked, unless it was already sent. Resolves once it is stored. */
  keepAnswer(): Promise<void>;
  /** Closes a delegation. Resolves once this and all earlier events are stored. */
  close(key: string, row: ClosedDelegation): Promise<void>;
  /** Registers a function that cancels the other agent's task while this task waits for the answer. */
  onCancel(cancel: () => void): void;
  /** A name of 32 hexadecimal digits, equal in each attempt, and unique among agents, owners and tasks. */
  nameOf(...parts: readonly string[]): Promise<string>;
  /** Counts awaited delegations. During a wait, a stopping server releases the turn to another process. */
  wait(): () => void;
}
