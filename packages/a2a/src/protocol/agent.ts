import type {
  AgentCapabilities,
  AgentProvider,
  AgentSkill,
  Artifact,
  Content,
  JsonValue,
  Message,
  Part,
  SecurityRequirement,
  SecurityScheme,
  Task,
  TaskState,
  JsonObject,
} from "../model/index.ts";
import type { Clock, Logger } from "../base/index.ts";
import type { CallContext, Principal } from "./service.ts";
import type { TurnSignal } from "./turn-aborted.ts";

/**
 * What an agent is: a function from a turn to events. The engine appends what it yields to the log of the task, in order.
 * When the function ends without a final status, the task is completed.
 */

/** Something that an agent says. The builders of `Turn` make it. It is plain data, so it can also be written by hand. */
export type AgentEvent =
  | {
      /** A new status. */
      readonly kind: "status";
      /** The state that the task gets. */
      readonly state: TaskState;
      /** What the agent says with it. */
      readonly message?: AgentMessage;
      /** `metadata` of the status update. */
      readonly metadata?: JsonObject;
      /** Whether a progress message enters the task's history. Messages of interrupted and terminal states always do. */
      readonly keep?: boolean;
    }
  | ArtifactEvent
  | {
      /** An answer. As the first event it is a direct message, and there is no task. Later it completes the task. */
      readonly kind: "reply";
      /** The answer. */
      readonly message: AgentMessage;
    }
  | {
      /** Where a resumed run continues. Yield it in one array with the events that it covers: they are stored together. */
      readonly kind: "checkpoint";
      /** The value that `turn.checkpoint` has in the resumed run. */
      readonly value: JsonValue;
    };

/**
 * An artifact, or more of one. An event without `append` makes the artifact. It stays open until an event with
 * `lastChunk`.
 */
export interface ArtifactEvent {
  /** Always `artifact`. */
  readonly kind: "artifact";
  /** The artifact, or its next parts. */
  readonly artifact: Artifact;
  /** Whether the parts are added to an artifact of this task. Default false. */
  readonly append?: boolean;
  /** Whether the artifact is complete with this event. Default false. */
  readonly lastChunk?: boolean;
  /** `metadata` of the artifact update. */
  readonly metadata?: JsonObject;
}

/** A message of the agent before the engine adds task and context. */
export interface AgentMessage {
  /** Identifier. Default: the engine makes one. */
  readonly messageId?: string;
  /** The content, at least one part. */
  readonly parts: readonly Part[];
  /** Anything else about the message. */
  readonly metadata?: JsonObject;
  /** URIs of the extensions that contributed to it. */
  readonly extensions?: readonly string[];
  /** Other tasks that it refers to. */
  readonly referenceTaskIds?: readonly string[];
}

/** What an agent yields: one event, or several that are stored together or not at all. */
export type AgentYield = AgentEvent | readonly AgentEvent[];

/** What `turn.artifact()` takes. */
export interface ArtifactInit {
  /** Identifier, unique in the task. Default: one that a resumed run makes again. */
  readonly artifactId?: string;
  /** Name for people. */
  readonly name?: string;
  /** Description for people. */
  readonly description?: string;
  /** The content, at least one part. */
  readonly parts: readonly Part[];
  /** Anything else about the artifact. */
  readonly metadata?: JsonObject;
  /** URIs of the extensions that contributed to it. */
  readonly extensions?: readonly string[];
  /** Whether `turn.append()` adds more parts. Its `{ last: true }` closes the artifact. Default false: it is complete. */
  readonly open?: boolean;
}

/** What `turn.writer()` and `turn.stream()` take. */
export interface WriterOptions {
  /** Identifier of the artifact, unique in the task. Default: one that a resumed run makes again. */
  readonly artifactId?: string;
  /** Name of the artifact, for people. */
  readonly name?: string;
  /** Description of the artifact, for people. */
  readonly description?: string;
  /** Anything else about the artifact. */
  readonly metadata?: JsonObject;
  /** Media type of its text, such as `text/markdown`. */
  readonly mediaType?: string;
  /** Size of a chunk in characters: it is sent when it has as many. Default 4096. */
  readonly maxChars?: number;
  /** Longest time in milliseconds that text waits for a chunk to fill. Default 50. */
  readonly maxDelay?: number;
}

/**
 * Collects small pieces of text into few chunks of one artifact. It has no timer: text that waits is sent with the next
 * piece that is due. `turn.stream()` does all of this for an async iterable.
 *
 * @example
 * ```ts
 * const writer = turn.writer({ name: "answer" });
 * for await (const token of tokens) yield* writer.write(token);
 * yield* writer.end();
 * ```
 */
export interface ArtifactWriter {
  /** Identifier of the artifact. */
  readonly artifactId: string;
  /** Takes a piece of text. Yield what it returns: the chunks that are due, often none. Throws after `end()`. */
  write(text: string): readonly AgentEvent[];
  /** Closes the artifact. Yield what it returns: the last chunk. */
  end(): readonly AgentEvent[];
}

/** How much of a conversation to read: the newest entries within both limits. No more is read from the store. */
export interface HistoryOptions {
  /** Most entries, the message of this turn included. Default 100. */
  readonly limit?: number;
  /** Most bytes of stored JSON, the message of this turn not counted. Default 256 KiB. */
  readonly bytes?: number;
}

/**
 * One entry of a conversation: a message, or an artifact with all of its chunks joined, at the position of its first chunk.
 * Progress messages are entries only where they were yielded with `keep`.
 */
export interface HistoryEntry {
  /** Who said it. Artifacts are the agent's. */
  readonly role: "user" | "agent";
  /** All text parts as one text: those of a message joined by line breaks, those of an artifact by nothing. */
  readonly text: string;
  /** The content. Files and data are in it as they are in messages: `raw` is base64 text. */
  readonly parts: readonly Part[];
  /** When it was said, in milliseconds since the Unix epoch. For an artifact: when its first chunk was. */
  readonly time: number;
  /** The task that it belongs to. Absent for direct replies and the messages that they answer. */
  readonly taskId?: string;
  /** Identifier of the message. Absent for artifacts. */
  readonly messageId?: string;
  /** Identifier of the artifact. Absent for messages. */
  readonly artifactId?: string;
  /** Name of the artifact. */
  readonly name?: string;
  /** Description of the artifact. */
  readonly description?: string;
  /** `metadata` of the message or the artifact. */
  readonly metadata?: JsonObject;
  /** Set where the limits have cut off the beginning of this artifact. */
  readonly cut?: true;
}

/** The conversation of a turn (`contextId`): what was said in it, and a small state. */
export interface TurnContext {
  /** The `contextId`. */
  readonly id: string;
  /**
   * The conversation so far, oldest first, in a form that can be given to a model: the messages and artifacts of all tasks
   * of this context, and direct replies. The message of this turn is the last entry, always whole. What this turn says is
   * not in it, also not what an earlier attempt of it said: every attempt reads the same.
   *
   * @throws A2AError `Unavailable` where the store cannot be read.
   */
  history(options?: HistoryOptions): Promise<readonly HistoryEntry[]>;
  /** A small value that all turns of this context share, as the last turn stored it. `undefined` where there is none. */
  state<T extends JsonValue = JsonValue>(): T | undefined;
  /**
   * Sets the state, or deletes it with `undefined`. It is stored with the next events of this turn, or at its end.
   *
   * @throws A2AError `InvalidAgentResponse` where the value is no JSON, or larger than `limits.stateBytes`.
   */
  setState(value: JsonValue | undefined): void;
}

/** One call of an executor: a message, and what is needed to answer it. `Turn` adds the builders of events. */
export interface TurnBase {
  /** The message of the user that this turn answers. */
  readonly message: Message;
  /** All text parts of the message, joined by line breaks. */
  readonly text: string;
  /** Identifier of the task. It is known before the task exists. */
  readonly taskId: string;
  /** Identifier of the conversation. */
  readonly contextId: string;
  /** The task at the start of this turn. `undefined` where this message begins it. */
  readonly task: Task | undefined;
  /** Which turn of its task this is, from 1. */
  readonly number: number;
  /** Which attempt of this turn, from 1. A higher number means that an earlier run was lost and this one resumes it. */
  readonly attempt: number;
  /** The last checkpoint of the run that was lost. `undefined` where there is none. */
  readonly checkpoint: JsonValue | undefined;
  /**
   * Who sent the message. A turn that begins with its request has all `claims` of the authenticator. A turn whose message
   * waited, or that resumes a lost run, has only those that `keepClaims` names.
   */
  readonly principal: Principal;
  /** Of the request: its protocol version, the extensions that it asked for, and its W3C `traceparent`. */
  readonly call: Pick<CallContext, "version" | "extensions" | "trace">;
  /** `metadata` of the send request (A2A 1.0 §3.2.1). */
  readonly metadata: JsonObject | undefined;
  /** Media types that the caller can read (A2A 1.0 §3.2.2). Empty: any. */
  readonly acceptedOutputModes: readonly string[];
  /** URIs of the extensions that are active in this turn: the caller asked for them, and the card declares them. */
  readonly extensions: readonly string[];
  /** Aborted when the result of this turn is no longer wanted. `turn.signal.reason.kind` says why. */
  readonly signal: TurnSignal;
  /** The conversation: its history and its state. */
  readonly context: TurnContext;
  /** The server's log. */
  readonly logger: Logger;
  /** The server's clock. Tests replace it. */
  readonly clock: Clock;
  /** Makes an identifier that is unique in the task. A resumed run makes the same ones again. */
  makeId(): string;
  /**
   * Resolves when everything yielded so far is stored.
   *
   * @throws A2AError `Unavailable` where it could not be stored.
   */
  flush(): Promise<void>;
}

/**
 * What the function of an agent is called with: a message, what is known about it, and builders of events. A builder does
 * nothing by itself: yield or return what it makes.
 */
export interface Turn extends TurnBase {
  /**
   * An answer. As the first event it is a direct message, and there is no task (A2A 1.0 §3.1.1). Later it completes the task.
   *
   * @example
   * ```ts
   * if (turn.text === "") return turn.reply("Ask me something.");
   * ```
   */
  reply(content: Content): AgentEvent;
  /**
   * Progress. Clients see it while it is the task's status. With `keep` it also enters the history, for later turns and
   * callers.
   *
   * @example
   * ```ts
   * yield turn.working("Reading the file", { keep: true });
   * ```
   */
  working(content?: Content, options?: { keep?: boolean; metadata?: JsonObject }): AgentEvent;
  /**
   * Asks the user a question; return after it. The answer is the next turn. Until it comes, the task stays at the question:
   * a later status of this turn is not stored and is logged as an error, unless it is `failed` or `rejected`.
   *
   * @example
   * ```ts
   * yield turn.inputRequired("Which city?");
   * return;
   * ```
   */
  inputRequired(content: Content, options?: { metadata?: JsonObject }): AgentEvent;
  /** Asks for an authorization that is given outside of this protocol. The turn may wait for it and go on (A2A 1.0 §7.6.1). */
  authRequired(content: Content, options?: { metadata?: JsonObject }): AgentEvent;
  /** Ends the task as completed. The end of the function does the same. */
  completed(content?: Content): AgentEvent;
  /** Ends the task as failed. The client reads the content; an error that is thrown tells it nothing. */
  failed(content: Content): AgentEvent;
  /** Ends the task as rejected: the agent does not take it on. */
  rejected(content: Content): AgentEvent;
  /**
   * A complete artifact, or the beginning of one with `open`.
   *
   * @example
   * ```ts
   * yield turn.artifact({ name: "forecast", parts: [text("Sunny")] });
   * ```
   */
  artifact(init: ArtifactInit): ArtifactEvent;
  /**
   * More parts of an open artifact. `last` closes it. An unknown or closed artifact is an error of the agent: the task fails.
   *
   * @example
   * ```ts
   * const rows = turn.artifact({ name: "rows", parts: [data(1)], open: true });
   * yield rows;
   * yield turn.append(rows.artifact.artifactId, [data(2)], { last: true });
   * ```
   */
  append(artifactId: string, parts: readonly Part[], options?: { last?: boolean }): ArtifactEvent;
  /** Makes a writer that collects pieces of text into chunks of one artifact. */
  writer(options?: WriterOptions): ArtifactWriter;
  /**
   * Streams text, such as the tokens of a model, as chunks of one artifact.
   *
   * @example
   * ```ts
   * yield* turn.stream(tokens, { name: "answer" });
   * ```
   */
  stream(source: AsyncIterable<string>, options?: WriterOptions): AsyncGenerator<AgentEvent, void, void>;
  /**
   * Where a resumed run continues: it finds the value in `turn.checkpoint`. Yield it in one array with the events that it
   * covers, so that they are stored together. Only agents with `resumable` are resumed.
   *
   * @example
   * ```ts
   * yield [turn.artifact({ parts: [text("Page 1")] }), turn.saveCheckpoint(1)];
   * ```
   */
  saveCheckpoint(value: JsonValue): AgentEvent;
}

/** What the function of an agent may return: a generator of events, a promise of one event, or one event. */
export type AgentOutput =
  | AsyncGenerator<AgentYield, AgentEvent | undefined | void, void>
  | Promise<AgentEvent | undefined | void>
  | AgentEvent
  | undefined
  | void;

/** The function that the engine calls for each message of an agent. */
export type Executor = (turn: TurnBase) => AgentOutput;

/** What an agent may declare (A2A 1.0 §4.4.3). Webhooks are not supported yet: `pushNotifications: true` is refused at start. */
export interface OwnCapabilities extends Omit<AgentCapabilities, "pushNotifications"> {
  /** Webhooks are not supported yet. */
  readonly pushNotifications?: false;
}

/** What an agent says about itself on its card (A2A 1.0 §4.4.1). The host adds the rest, such as addresses. */
export interface AgentDescription {
  /** Name for people. */
  readonly name: string;
  /** What the agent does, for people and for models that choose an agent. */
  readonly description: string;
  /** Version of the agent, such as `1.0.0`. */
  readonly version: string;
  /** What it is good at. May be empty. */
  readonly skills: readonly AgentSkill[];
  /** Who offers it. */
  readonly provider?: AgentProvider;
  /** Address of its documentation. */
  readonly documentationUrl?: string;
  /** Address of an icon. */
  readonly iconUrl?: string;
  /** Media types that it reads. `*` and `type/*` match any. Messages of others are refused. Default `["text/plain"]`. */
  readonly defaultInputModes?: readonly string[];
  /** Media types that it writes. Default `["text/plain"]`. */
  readonly defaultOutputModes?: readonly string[];
  /** What it can do beyond the required operations. Default: streaming, nothing else. */
  readonly capabilities?: OwnCapabilities;
  /** Ways to authenticate that its card lists beside those of the host's authenticator. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  /** What a caller has to satisfy. Default: what the host's authenticator says. */
  readonly securityRequirements?: readonly SecurityRequirement[];
}

/** How an agent is run. */
export interface AgentBehaviour {
  /** Whether it may answer with a direct message, without a task. A task is then made with its first event. Default true. */
  readonly mayReplyDirectly?: boolean;
  /** Whether a run that was lost, as in a crash, is started again with its checkpoint. Default false: the task fails. */
  readonly resumable?: boolean;
  /**
   * Names of the principal's claims that are stored in clear with its messages. Turns that begin without their request need
   * them: those of messages that waited, and those that are resumed. Default: none. Subject, organization and scopes are
   * always stored.
   */
  readonly keepClaims?: readonly string[];
  /** Longest time between two events of a turn, in milliseconds. `false`: no limit. Default 5 minutes. Then the task fails. */
  readonly idleTimeout?: number | false;
  /** Longest turn, in milliseconds. `false`: no limit. Default 1 hour. Then the task fails. */
  readonly turnTimeout?: number | false;
}

/** An agent as hosts take it: its description, its behaviour and its function. `defineAgent()` makes one. */
export interface Agent extends AgentDescription, AgentBehaviour {
  /** The function that is called for each message. */
  readonly execute: Executor;
}
