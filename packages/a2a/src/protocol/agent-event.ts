import type { Artifact, JsonObject, JsonObjectLike, JsonValue, Part, TaskState } from "../model/index.ts";

/* The events of an agent, with the arguments and results of their builders. */

/** An event of an agent, made by the builders of `Turn`. It is plain data, so you can also write it by hand. */
export type AgentEvent =
  | StatusEvent
  | ArtifactEvent
  | {
      /** An answer. As the first event, it is a direct reply without a task. Later it completes the task. */
      readonly kind: "reply";
      /** The answer. */
      readonly message: AgentMessage;
    }
  | {
      /** The point from which a resumed run continues. Yield it in one array with the events that it covers, so that they are stored together. */
      readonly kind: "checkpoint";
      /** The value that `turn.checkpoint` has in the resumed run. */
      readonly value: JsonValue;
    }
  | DelegatedEvent
  | WaitEvent;

/** A new status. */
export interface StatusEvent {
  /** Always `status`. */
  readonly kind: "status";
  /** The state that the task gets. */
  readonly state: TaskState;
  /** The agent's message with this status. */
  readonly message?: AgentMessage;
  /** `metadata` of the status update. */
  readonly metadata?: JsonObject;
  /** Whether a progress message enters the task's history. Messages of interrupted and terminal states always do. */
  readonly keep?: boolean;
}

/**
 * An event of another agent, made by `turn.delegate()`. It is stored with the progress of the delegation, so a resumed run repeats nothing.
 */
export interface DelegatedEvent {
  /** Always `delegated`. */
  readonly kind: "delegated";
  /** Key of the delegation. */
  readonly key: string;
  /** The delegation's row after this event. */
  readonly row: OpenDelegation;
  /** The event. Absent: only `row` is stored. A question ends the turn here, and the turn with the answer continues the delegation. */
  readonly event?: StatusEvent | ArtifactEvent;
}

/**
 * The turn only waits. Made by `turn.sleep()` and `turn.waitFor()`: the function ends here, and is called again when one of the waits is
 * over.
 */
export interface WaitEvent {
  /** Always `wait`. */
  readonly kind: "wait";
  /** The waits, by key. */
  readonly waits: readonly { readonly key: string; readonly wait: OpenWait }[];
}

/** A wait that is not over. */
export interface OpenWait {
  /** The event. Absent: it waits only for a time. */
  readonly event?: string;
  /** When it is over, in whole milliseconds since the Unix epoch. Absent: only the event ends it. */
  readonly until?: number;
  /** When it began, in milliseconds since the Unix epoch. Absent in rows of older releases. */
  readonly since?: number;
}

/** The stored state of an open delegation. It is small. */
export interface OpenDelegation {
  /** The number of the delegation in its task, from 1. It is part of the ids of its artifacts. */
  readonly number: number;
  /** Name of the other agent. */
  readonly agent: string;
  /** Hashes of the addresses on its card. Absent in rows of older releases. */
  readonly addresses?: readonly string[];
  /** When it began, in milliseconds since the Unix epoch. Absent in rows of older releases. */
  readonly since?: number;
  /** Hash of the message. */
  readonly hash: string;
  /** Number of the last message that was sent: 1 is the first message, higher numbers are answers to questions. */
  readonly round: number;
  /** Id of that message. */
  readonly messageId: string;
  /** If that message is an answer: the `seq` of this task's message that contains it. */
  readonly answer?: number;
  /** Set until it is known that the message arrived. */
  readonly unsure?: true;
  /** The conversation at the other agent. */
  readonly contextId?: string;
  /** The task of the other agent, once it is known. */
  readonly taskId?: string;
  /** Number of the last event that is stored in this task, if the other agent has numbers. */
  readonly seq?: number;
  /** Set while this task asks its question, and until the answer is sent. */
  readonly asked?: true;
  /** The `seq` of the message that answers its question, if another question ended the turn before the answer was sent. */
  readonly unsentAnswer?: number;
  /** Id of the message with the last question. */
  readonly question?: string;
  /** Set while it waits for an authorization. */
  readonly auth?: true;
  /** Id of the progress message that was shown last. */
  readonly said?: string;
  /** Size of its artifacts so far, in bytes of JSON. */
  readonly bytes?: number;
  /**
   * Amount of copied content, by artifact: characters of text, plus 1 for each other part. Negative: the artifact is complete. Absent if there are
   * too many artifacts.
   */
  readonly content?: Readonly<Record<string, number>>;
}

/** An artifact, or more parts of one. Without `append` it creates the artifact, which stays open until an event with `lastChunk`. */
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
  /** Identifier. Default: the engine creates one. */
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

/** The yield of an agent: one event, or several events that are stored together or not at all. */
export type AgentYield = AgentEvent | readonly AgentEvent[];

/** The argument of `turn.artifact()`. */
export interface ArtifactInit<Metadata extends JsonObjectLike<Metadata> = JsonObject> {
  /** Identifier, unique in the task. Default: an id that is the same in a resumed run. */
  readonly artifactId?: string;
  /** Name for people. */
  readonly name?: string;
  /** Description for people. */
  readonly description?: string;
  /** The content, at least one part. */
  readonly parts: readonly Part[];
  /** Anything else about the artifact. */
  readonly metadata?: Metadata;
  /** URIs of the extensions that contributed to it. */
  readonly extensions?: readonly string[];
  /** Whether `turn.append()` adds more parts. Its `{ last: true }` closes the artifact. Default false: it is complete. */
  readonly open?: boolean;
}

/** Options of `turn.writer()` and `turn.stream()`. */
export interface WriterOptions<Metadata extends JsonObjectLike<Metadata> = JsonObject> {
  /** Identifier of the artifact, unique in the task. Default: an id that is the same in a resumed run. */
  readonly artifactId?: string;
  /** Name of the artifact, for people. */
  readonly name?: string;
  /** Description of the artifact, for people. */
  readonly description?: string;
  /** Anything else about the artifact. */
  readonly metadata?: Metadata;
  /** Media type of its text, such as `text/markdown`. */
  readonly mediaType?: string;
  /** Maximum characters of a chunk, which is sent when it is full. Default 4096. */
  readonly maxChars?: number;
  /** Maximum time in milliseconds that text waits for its chunk to fill. Default 50. */
  readonly maxDelay?: number;
}

/**
 * Collects small pieces of text into few chunks of one artifact. It has no timer: overdue text is sent with the next piece. `turn.stream()` does all
 * of this for an async iterable.
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
  /** Takes a piece of text. Returns the chunks that are due, often none. Yield them. Throws after `end()`. */
  write(text: string): readonly AgentEvent[];
  /** Closes the artifact. Returns the last chunk. Yield it. */
  end(): readonly AgentEvent[];
}
