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
 * What the engine runs (D11). An agent is a function from a turn to events: what it yields is appended to the log of
 * its task, in order, and falling off the end completes the task.
 */

/** Something an agent says. Made by the builders of a turn; plain data, so it can also be written by hand. */
export type AgentEvent =
  | {
      readonly kind: "status";
      readonly state: TaskState;
      readonly message?: AgentMessage;
      readonly metadata?: JsonObject;
      /** Puts a progress message into the task's history; those of interrupted and terminal states are there anyway. */
      readonly keep?: boolean;
    }
  | ArtifactEvent
  /** A direct answer: as the first event there is no task, later it completes the task (D11). */
  | { readonly kind: "reply"; readonly message: AgentMessage }
  /** Where a resumed run goes on from (D6). Yield it in one array with the events that it covers: they are stored together. */
  | { readonly kind: "checkpoint"; readonly value: JsonValue };

/** An artifact, or more of one: a first event without `append` makes it, and it is open until one with `lastChunk`. */
export interface ArtifactEvent {
  readonly kind: "artifact";
  readonly artifact: Artifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
  readonly metadata?: JsonObject;
}

/** A message of the agent's before the engine has given it its ids. */
export interface AgentMessage {
  readonly messageId?: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  readonly referenceTaskIds?: readonly string[];
}

/** An array is stored as one: all of it or nothing. */
export type AgentYield = AgentEvent | readonly AgentEvent[];

export interface ArtifactInit {
  /** Default: a name that a resumed run makes again. */
  readonly artifactId?: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  /** Leaves the artifact open for `turn.append()`, which closes it with `{ last: true }`. Default false: it is whole. */
  readonly open?: boolean;
}

export interface WriterOptions {
  readonly artifactId?: string;
  readonly name?: string;
  readonly description?: string;
  readonly metadata?: JsonObject;
  readonly mediaType?: string;
  /** A chunk goes out when it has this many characters (default 4096). */
  readonly maxChars?: number;
  /** Or when this much time has passed since the last one (default 50 ms). */
  readonly maxDelay?: number;
}

/**
 * Gathers many small pieces of text into few chunks of one artifact: `yield* writer.write(token)`, and
 * `yield* writer.end()` when it is whole. It has no timer: what waits goes out with the next piece that is due.
 */
export interface ArtifactWriter {
  readonly artifactId: string;
  write(text: string): readonly AgentEvent[];
  end(): readonly AgentEvent[];
}

/** How much of a conversation to read. The newest entries are given that are within both bounds; reading costs what is given. */
export interface HistoryOptions {
  /** Most entries, that of this turn's message included. Default 100. */
  readonly limit?: number;
  /** Most bytes of JSON that the entries before this turn's message may have been stored in. Default 256 KiB. */
  readonly bytes?: number;
}

/**
 * Something that was said in a conversation: a message, or an artifact with all of its chunks joined, at the place of its first
 * one. Files and data stand in `parts` as they do in messages (`raw` is base64 text). Progress is in it only where it was yielded
 * with `keep`.
 */
export interface HistoryEntry {
  readonly role: "user" | "agent";
  /** All text parts together: of a message joined by line breaks, of an artifact the text as it was streamed. */
  readonly text: string;
  readonly parts: readonly Part[];
  /** When it was said, milliseconds since the Unix epoch; of an artifact, when its first chunk was. */
  readonly time: number;
  /** Absent for direct replies and what they answer. */
  readonly taskId?: string;
  /** Of a message. */
  readonly messageId?: string;
  /** Of an artifact. */
  readonly artifactId?: string;
  readonly name?: string;
  readonly description?: string;
  readonly metadata?: JsonObject;
  /** The bounds have cut off the beginning of this artifact. */
  readonly cut?: true;
}

/** What belongs to a conversation (`contextId`), beyond its tasks. */
export interface TurnContext {
  readonly id: string;
  /**
   * The conversation so far, oldest first, ready to be given to a model: what was said in all tasks of this context and
   * in direct replies, artifacts included, up to this turn. The message of this turn is the last entry and always whole.
   * What this turn has said itself is not in it, nor what a lost run of it had said: every attempt gets the same.
   */
  history(options?: HistoryOptions): Promise<readonly HistoryEntry[]>;
  /** A small value that all turns of this context share; as the last turn left it. */
  state<T extends JsonValue = JsonValue>(): T | undefined;
  /** Stored with the next events of this turn, or at its end. */
  setState(value: JsonValue | undefined): void;
}

/** One call of an executor: a message, and what is needed to answer it. The authoring API adds the builders (`Turn`). */
export interface TurnBase {
  readonly message: Message;
  /** All text parts of the message, joined by line breaks. */
  readonly text: string;
  readonly taskId: string;
  readonly contextId: string;
  /** The task as it stands at the start of this turn; `undefined` when this message makes it. */
  readonly task: Task | undefined;
  /** Which turn of its task, from 1. */
  readonly number: number;
  /** Which try of this turn, from 1; more means that a run was lost and this one resumes it. */
  readonly attempt: number;
  /** The last checkpoint of this turn's lost run. */
  readonly checkpoint: JsonValue | undefined;
  /**
   * Who sent the message. `claims` are all that the authenticator found in a turn that begins with its request; in one that
   * waited for its turn, or resumes a lost run, only those that `keepClaims` names.
   */
  readonly principal: Principal;
  readonly call: Pick<CallContext, "version" | "extensions" | "trace">;
  /** `metadata` of the send request. */
  readonly metadata: JsonObject | undefined;
  /** What the caller can show, as it said; empty means anything. */
  readonly acceptedOutputModes: readonly string[];
  /** Extension URIs active in this turn: asked for by the caller and declared by the card. */
  readonly extensions: readonly string[];
  /** Aborted when nothing more of this turn counts; `turn.signal.reason.kind` says why. */
  readonly signal: TurnSignal;
  readonly context: TurnContext;
  readonly logger: Logger;
  readonly clock: Clock;
  /** An identifier, unique in the task, that a resumed run makes again. */
  makeId(): string;
  /** Resolves when everything yielded so far is stored (D3). */
  flush(): Promise<void>;
}

/** What an agent's function is called with. */
export interface Turn extends TurnBase {
  reply(content: Content): AgentEvent;
  /** Progress. It is shown while it is the task's status; only `keep` puts it into the history, for later turns and callers. */
  working(content?: Content, options?: { keep?: boolean; metadata?: JsonObject }): AgentEvent;
  /**
   * Asks the user; return after it. The next message is the next turn. Until then the question stands: a later status of this
   * turn is not stored, unless it ends the task as failed or rejected, and is logged as the agent's mistake.
   */
  inputRequired(content: Content, options?: { metadata?: JsonObject }): AgentEvent;
  /** Asks for an authorization that comes by another way. The turn may wait for it and go on (§7.6.1). */
  authRequired(content: Content, options?: { metadata?: JsonObject }): AgentEvent;
  completed(content?: Content): AgentEvent;
  failed(content: Content): AgentEvent;
  rejected(content: Content): AgentEvent;
  /** A whole artifact, or with `open` the beginning of one: `append` brings the rest of it. */
  artifact(init: ArtifactInit): ArtifactEvent;
  /** More parts for an artifact of this task that is open: made with `open: true`, and no `last` since. */
  append(artifactId: string, parts: readonly Part[], options?: { last?: boolean }): ArtifactEvent;
  writer(options?: WriterOptions): ArtifactWriter;
  /** A source of text, an LLM's tokens, as the chunks of one artifact: `yield* turn.stream(tokens, { name: "answer" })`. */
  stream(source: AsyncIterable<string>, options?: WriterOptions): AsyncGenerator<AgentEvent, void, void>;
  saveCheckpoint(value: JsonValue): AgentEvent;
}

/** What an agent may give back: a generator of events, a promise of one event, or one event. */
export type AgentOutput =
  | AsyncGenerator<AgentYield, AgentEvent | undefined | void, void>
  | Promise<AgentEvent | undefined | void>
  | AgentEvent
  | undefined
  | void;

export type Executor = (turn: TurnBase) => AgentOutput;

/** What an agent may declare. Webhooks are not here yet: `pushNotifications: true` is refused, by the types and at the start. */
export interface OwnCapabilities extends Omit<AgentCapabilities, "pushNotifications"> {
  readonly pushNotifications?: false;
}

/** What stands on an agent's card beside what the host knows (§4.4.1). */
export interface AgentDescription {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly skills: readonly AgentSkill[];
  readonly provider?: AgentProvider;
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
  /** Media types; `*` and `type/*` are understood. Default `["text/plain"]`. */
  readonly defaultInputModes?: readonly string[];
  readonly defaultOutputModes?: readonly string[];
  /** Default: streaming, nothing else. */
  readonly capabilities?: OwnCapabilities;
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  readonly securityRequirements?: readonly SecurityRequirement[];
}

/** How an agent wants to be run. */
export interface AgentBehaviour {
  /** Whether it may answer with a plain Message (default true): then a task is made only once its first event shows that there is one. */
  readonly mayReplyDirectly?: boolean;
  /** Whether a run that was lost may be started again with its checkpoint (default false: the task fails, saying why). */
  readonly resumable?: boolean;
  /**
   * Names of the principal's claims that are stored with its messages, in clear, for turns that begin without their request:
   * those of messages that waited, and those that are resumed. Default: none; subject, organisation and scopes are stored always.
   */
  readonly keepClaims?: readonly string[];
  /** Longest silence of a turn between two events, in milliseconds (default 5 minutes); `false`: no limit. */
  readonly idleTimeout?: number | false;
  /** Longest turn in milliseconds (default 1 hour); `false`: no limit. */
  readonly turnTimeout?: number | false;
}

/** An agent as hosts take it: its description, its behaviour, its function. `defineAgent` makes one. */
export interface Agent extends AgentDescription, AgentBehaviour {
  readonly execute: Executor;
}
