import type { Clock, Logger } from "../base/index.ts";
import type { AgentCard, Message, SendMessageRequest, StandardSchema, Task, TaskState } from "../model/index.ts";
import type { AgentEvent } from "./agent-event.ts";
import type { CoreName, OperationName, Operations } from "./operations.ts";
import type { AgentService, CallContext, Principal } from "./service.ts";
import type { TurnFacts } from "./turn-context.ts";

/* Arguments of extension hooks. */

/** A call that requests an extension. */
export interface ActivatingCall extends Pick<CallContext, "principal" | "version" | "headers"> {
  /** The operation. */
  readonly operation: OperationName;
  /** Its request. */
  readonly request: Operations[OperationName]["request"];
  /** The card of the agent. */
  readonly card: AgentCard;
}

/** The stored part of a send. */
export type AcceptedInput = Pick<SendMessageRequest, "message" | "metadata">;

/** Facts about a call, for hooks and methods. */
interface CallFacts {
  /** The caller. */
  readonly principal: Principal;
  /** URIs of all extensions that are active in the call. */
  readonly extensions: readonly string[];
  /** The card of the agent. */
  readonly card: AgentCard;
  /** Time. */
  readonly clock: Clock;
  /** The log of the server. */
  readonly logger: Logger;
}

/** The call that sends a message. */
export interface AcceptedCall extends CallFacts {
  /** The extension's rows for the message's task. Changes are stored with the message, unless the agent replies directly. */
  readonly rows: TaskRows;
}

/** A status, an artifact, or a reply of the agent. */
export type AppendedEvent = Exclude<AgentEvent, { readonly kind: "checkpoint" | "wait" }>;

/** The turn that yields an event. */
export interface AppendingTurn {
  /** The conversation. */
  readonly contextId: string;
  /** Absent for a direct reply, which creates no task. */
  readonly taskId?: string;
  /** The message of the turn, after `onAccept`. */
  readonly message: Message;
  /** URIs of all extensions that are active in the turn. */
  readonly extensions: readonly string[];
  /** Time. */
  readonly clock: Clock;
  /** The result of this extension's `onTurnStart` for the turn; without this hook, the values of the message. */
  readonly started?: unknown;
  /** Changes the extension's rows, together with the event. Absent for a direct reply, which has no task. */
  readonly rows?: Omit<TaskRows, "read">;
}

/** A turn, as the hooks of an extension see it. */
export interface ExtensionTurn
  extends
    Pick<
      TurnFacts,
      "message" | "metadata" | "taskId" | "contextId" | "number" | "attempt" | "principal" | "extensions"
    >,
    Pick<TurnFacts, "clock" | "logger" | "requestAuthorization"> {
  /** Aborted when the result of the turn is no longer wanted. */
  readonly signal: AbortSignal;
  /** Whether the agent is called again for a turn whose run was lost in a crash (`resumable`). */
  readonly resumable: boolean;
  /** The extension's rows for the task. */
  readonly rows: TurnRows;
  /** In `onTurnStart`: delays the agent until this work, such as a read of rows, settles. It must settle within `limits.hookTimeout`. */
  waitFor(work: Promise<unknown>): void;
  /** The result of this extension's `onTurnStart`. `undefined` before that. */
  readonly started: unknown;
}

/** The end of a turn. */
export interface TurnEnd {
  /** The agent's error. */
  readonly error?: unknown;
}

/** A request of a client. */
export interface RequestingCall<Name extends CoreName = CoreName> {
  /** The operation. */
  readonly operation: Name;
  /** The card of the agent. */
  readonly card: AgentCard;
  /** `params` of the extension on that card, checked; `undefined` if they are absent or invalid. */
  readonly params: unknown;
  /** Time. */
  readonly clock: Clock;
}

/* Methods that an extension adds to the operations of the protocol, and their arguments. */

/** A method of an extension. Callers must activate the extension. Created by `extensionMethod()`. */
export interface ExtensionMethod<Request = unknown, Response = unknown> {
  /** Schema of a request, a JSON object. Must be synchronous. */
  readonly request: StandardSchema<Request>;
  /** Schema of a response, a JSON object. Must be synchronous. */
  readonly response: StandardSchema<Response>;
  /** Whether the method is idempotent, so that a client may retry it. Default false. */
  readonly idempotent?: boolean;
  /** Its name over JSON-RPC. Default: its name in `methods`. */
  readonly jsonrpc?: string;
  /** Its HTTP method and its path below the base, such as `/tasks:search`. A GET request carries its fields in the query, as strings. */
  readonly rest: { readonly method: "GET" | "POST"; readonly path: `/${string}` };
  /** Its path over gRPC, such as `/example.tasks.v1.Search/SearchTasks`. Request and response are `google.protobuf.Struct`. */
  readonly grpc: `/${string}/${string}`;
  /**
   * Answers at the server, after authentication and authorization. Absent if the value is only for clients. Throws an `A2AError` for the caller;
   * any other error is logged and answered as `InternalError`.
   */
  onCall?(request: Request, call: ExtensionCall): Response | Promise<Response>;
}

/** The methods of an extension, by name. Names contain a slash (`tasks/search`), unlike the names of the protocol's operations. */
export type ExtensionMethods = Readonly<Record<`${string}/${string}`, ExtensionMethod>>;

/** The argument of an extension's method. */
export interface ExtensionCall extends CallFacts {
  /** The call itself: its version, its headers, its signal. */
  readonly context: CallContext;
  /** The operations of the agent, as this caller may use them: with the same authorization, and without interceptors. */
  readonly service: AgentService;
  /**
   * Finds tasks of the caller by their texts. Rejects unless the extension has `searchesTasks`. Throws `InvalidParams`
   * if the text has no word to search for, `Unavailable` while the index is built, and the errors of `ListTasks`.
   */
  readonly searchTasks: (query: TaskTextQuery) => Promise<FoundTasks>;
}

/** Which tasks to find by their texts. */
export interface TaskTextQuery {
  /** Words, phrases in quotes, and prefixes, which end in `*`. A task must contain all of them. Anything else separates words. */
  readonly text: string;
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly status?: TaskState;
  /** Maximum number of tasks. */
  readonly limit: number;
  /** Number of tasks to skip: the tasks of previous pages. Default 0. */
  readonly skip?: number;
}

/** The tasks that match a text query, best match first. */
export interface FoundTasks {
  /** The tasks, except those that were deleted during the search. */
  readonly tasks: readonly FoundTask[];
  /** Number of matching tasks on all pages. */
  readonly total: number;
}

/** A task that matches a text query. */
export interface FoundTask {
  /** The task, without its history and its artifacts. */
  readonly task: Task;
  /** Excerpts of its texts that contain the words, best match first. At most three. */
  readonly snippets: readonly TaskSnippet[];
}

/** An excerpt of a text of a task. */
export interface TaskSnippet {
  /** The message of the history that contains the text. */
  readonly messageId?: string;
  /** The artifact that contains it. */
  readonly artifactId?: string;
  /** About 160 characters of the text. */
  readonly text: string;
  /** Positions of the words in `text`, in UTF-16 units, in order. */
  readonly marks: readonly { readonly start: number; readonly end: number }[];
}

/* The rows of an extension, for hooks: with a message or an event, and during a turn. */

/**
 * The rows of an extension for a task, stored in the transaction of the hook's result. Other extensions do not see them. They are deleted
 * with the task, and limited by the store (`featureBounds`).
 */
export interface TaskRows {
  /**
   * Sets a row. `value` is JSON text; `due`, in milliseconds since the Unix epoch, is when `Store.dueFeatures` returns the
   * row. Throws TypeError for a change that the store does not accept, and after the hook has returned.
   */
  set(key: string, value: string, options?: { readonly due?: number }): void;
  /** Deletes a row. Throws as `set` does. */
  delete(key: string): void;
  /**
   * The stored rows, in insertion order; empty if the message creates its task. If they change before later `set` calls are
   * stored, the hook runs again.
   */
  read(): Promise<readonly ExtensionRow[]>;
}

/** A row of an extension for a task. */
export interface ExtensionRow {
  /** Its key, unique in its task and extension. */
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** When it is due, in milliseconds since the Unix epoch. */
  readonly due?: number;
}

/** A change of a row. */
export type RowChange =
  | {
      /** Sets the row. */
      readonly op: "set";
      /** Its key, unique in its task and extension. */
      readonly key: string;
      /** JSON text. */
      readonly value: string;
      /** When it is due, in whole milliseconds since the Unix epoch. */
      readonly due?: number;
    }
  | { readonly op: "delete"; readonly key: string };

/** The rows of an extension during a turn. */
export interface TurnRows {
  /** The stored rows, in the order in which their keys were first set. Empty before the task exists. */
  read(): Promise<readonly ExtensionRow[]>;
  /**
   * Stores changes and everything yielded before, in one transaction, and creates the task if needed. Throws `Unavailable` if
   * the turn is over or was taken over, and TypeError for a change that the store does not accept.
   */
  store(changes: readonly RowChange[]): Promise<void>;
  /**
   * Claims a name, such as a nonce, for this turn among all tasks of the agent and all owners. A resumed run keeps it, so the task is created first.
   * `name`: at most 512 bytes. `until`: when it becomes free, in milliseconds since the Unix epoch. `family`: a URI; extensions with the same family
   * share names. Default: the extension's URI. Returns `false` if another turn has the name.
   */
  claim(name: string, until: number, family?: string): Promise<boolean>;
}
