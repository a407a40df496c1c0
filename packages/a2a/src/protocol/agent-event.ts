import type { Artifact, JsonObject, JsonObjectLike, JsonValue, Part, TaskState } from "../model/index.ts";

/* What an agent says: events, and what the builders of events take and make. */

/** Something that an agent says. The builders of `Turn` make it. It is plain data, so it can also be written by hand. */
export type AgentEvent =
  | StatusEvent
  | ArtifactEvent
  | {
      /** An answer. As the first event it is a direct reply, and there is no task. Later it completes the task. */
      readonly kind: "reply";
      /** The answer. */
      readonly message: AgentMessage;
    }
  | {
      /** Where a resumed run continues. Yield it in one array with the events that it covers: they are stored together. */
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
  /** What the agent says with it. */
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
  /** What is kept of the delegation after this event. */
  readonly row: OpenDelegation;
  /** The event. Absent: only `row` is stored. A question ends the turn here, and the answer continues with it. */
  readonly event?: StatusEvent | ArtifactEvent;
}

/**
 * The turn only waits. Made by `turn.sleep()` and `turn.waitFor()`: the function ends here, and is called again when one of the waits is
 * over.
 */
export interface WaitEvent {
  /** Always `wait`. */
  readonly kind: "wait";
  /** What it waits for, by key. */
  readonly waits: readonly { readonly key: string; readonly wait: OpenWait }[];
}

/** A wait that is not over. */
export interface OpenWait {
  /** The event. Absent: it waits for a time alone. */
  readonly event?: string;
  /** When it is over, in whole milliseconds since the Unix epoch. Absent: never without the event. */
  readonly until?: number;
}

/** What a delegation keeps with the task while it is open. It is small. */
export interface OpenDelegation {
  /** Which delegation of the task, from 1: it makes the ids of artifacts. */
  readonly number: number;
  /** Name of the other agent. */
  readonly agent: string;
  /** Hashes of the addresses on its card. Absent in rows of older releases. */
  readonly addresses?: readonly string[];
  /** Hash of the message. */
  readonly hash: string;
  /** The message that was sent last: 1 for the first one, then each answer to a question. */
  readonly round: number;
  /** Its id. */
  readonly messageId: string;
  /** For an answer: the `seq` of the message of this task that has it. */
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
  /** The answer to its question, where another question ended the turn before the answer was sent: the `seq` of the message that has it. */
  readonly unsentAnswer?: number;
  /** Id of the message of the question that was asked last. */
  readonly question?: string;
  /** Set while it waits for an authorization. */
  readonly auth?: true;
  /** Id of the progress message that was shown last. */
  readonly said?: string;
  /** Size of its artifacts so far, in bytes of JSON. */
  readonly bytes?: number;
  /**
   * How much content was taken over, by artifact: characters of text, and 1 for each other part. Negative: complete. Absent if there are
   * too many.
   */
  readonly content?: Readonly<Record<string, number>>;
}

/** An artifact, or more of one. Without `append` it creates the artifact, which stays open until an event with `lastChunk`. */
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
export interface ArtifactInit<Metadata extends JsonObjectLike<Metadata> = JsonObject> {
  /** Identifier, unique in the task. Default: one that a resumed run makes again. */
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

/** What `turn.writer()` and `turn.stream()` take. */
export interface WriterOptions<Metadata extends JsonObjectLike<Metadata> = JsonObject> {
  /** Identifier of the artifact, unique in the task. Default: one that a resumed run makes again. */
  readonly artifactId?: string;
  /** Name of the artifact, for people. */
  readonly name?: string;
  /** Description of the artifact, for people. */
  readonly description?: string;
  /** Anything else about the artifact. */
  readonly metadata?: Metadata;
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
