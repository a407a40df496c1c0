import type { AgentExtension, Message, SendMessageRequest, StreamResponse } from "../model/index.ts";
import type { AgentEvent, Principal } from "../protocol/index.ts";

/**
 * An extension of the protocol, as a server implements it (A2A 1.0 §4.6). Cards declare it. Its hooks run in calls and turns that
 * have activated it, and in no others. They have three places; nothing else may change a message or an event.
 *
 * A hook that throws loses nothing that is stored: `onAccept` refuses the message, `onAppend` fails the task, `onDeliver` fails
 * the one answer or stream. An `A2AError` of `onAccept` and `onDeliver` is told to the caller. Any other error is an
 * `InternalError` to the caller and a line in the log.
 *
 * @example
 * ```ts
 * const drafts: Extension = {
 *   uri: "https://example.com/extensions/drafts/v1",
 *   description: "Artifacts say that they are drafts",
 *   onAppend: (event) => (event.kind === "artifact" ? { ...event, metadata: { draft: true } } : event),
 * };
 * ```
 */
export interface Extension extends Omit<AgentExtension, "uri"> {
  /** The URI on the card, which callers ask for. */
  readonly uri: string;
  /**
   * Whether each new record of a task wakes the rows that the extension keeps with it: rows without `due` are due at once. It
   * holds for every record: messages, events of the agent, and states that the server sets. Default: no.
   */
  readonly wakeRows?: boolean;
  /**
   * A message comes in, for the first time: repeated sends join the first one and do not come here. What it returns is stored and
   * given to the agent, so it may take secrets out. Ids and role of the message must stay.
   */
  onAccept?(input: AcceptedInput, call: AcceptedCall): AcceptedInput | Promise<AcceptedInput>;
  /**
   * The agent has said something, which is about to be stored or, for a direct reply, given. A run that is resumed after a crash
   * repeats events and comes here again: return the same for the same event. Rows that go with a repeated event are not set again.
   */
  onAppend?(event: AppendedEvent, turn: AppendingTurn): AppendedEvent;
  /**
   * An event or a task goes out to a reader who has activated the extension. It must depend on nothing but `event`, since what
   * it returns for a stored event is kept for other readers.
   */
  onDeliver?(event: StreamResponse): StreamResponse;
}

/** What of a send is stored. */
export type AcceptedInput = Pick<SendMessageRequest, "message" | "metadata">;

/** The call that a message came with. */
export interface AcceptedCall {
  /** Who calls. */
  readonly principal: Principal;
  /** URIs of all extensions that are active in the call. */
  readonly extensions: readonly string[];
  /** What the extension keeps with the task of the message. What is set is stored with the message, unless the agent answers it directly. */
  readonly rows: TaskRows;
}

/**
 * The rows that an extension keeps with a task. Changes are stored in the transaction of what the hook returns, or not at all.
 * Only this extension sees the rows. They are deleted with the task. The store bounds them (`featureBounds`).
 */
export interface TaskRows {
  /**
   * Sets a row. `value` is JSON text. `due`: when somebody has to look at it, in whole milliseconds since the Unix epoch;
   * `Store.dueFeatures` returns the row from then on, under the URI of the extension.
   *
   * @throws TypeError for what the store does not accept, and after the hook has returned.
   */
  set(key: string, value: string, options?: { readonly due?: number }): void;
  /** Deletes a row. Throws as `set` does. */
  delete(key: string): void;
  /** What is stored, in the order in which keys were set first. Empty where the message makes its task. */
  read(): Promise<readonly ExtensionRow[]>;
}

/** A row that an extension keeps with a task. */
export interface ExtensionRow {
  /** Its key, unique in its task and extension. */
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** When somebody has to look at it, in milliseconds since the Unix epoch. */
  readonly due?: number;
}

/** A status, an artifact, or a reply of the agent. */
export type AppendedEvent = Exclude<AgentEvent, { readonly kind: "checkpoint" }>;

/** The turn in which the agent said it. */
export interface AppendingTurn {
  /** The conversation. */
  readonly contextId: string;
  /** Absent for a direct reply, which makes no task. */
  readonly taskId?: string;
  /** The message that the turn answers, as `onAccept` left it. */
  readonly message: Message;
  /** URIs of all extensions that are active in the turn. */
  readonly extensions: readonly string[];
  /** Changes what the extension keeps with the task, together with the event. Absent for a direct reply, which makes no task. */
  readonly rows?: Omit<TaskRows, "read">;
}
