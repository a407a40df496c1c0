import type { Clock, Logger } from "../base/index.ts";
import type { AgentCard, StandardSchema, Task, TaskState } from "../model/index.ts";
import type { AgentService, CallContext, Principal } from "./service.ts";

/* Methods that an extension adds to the operations of the protocol, and what they are called with. */

/** A method that an extension adds. Callers have to activate the extension. `extensionMethod()` makes one. */
export interface ExtensionMethod<Request = unknown, Response = unknown> {
  /** What a request may be: a JSON object. It must answer at once. */
  readonly request: StandardSchema<Request>;
  /** What a response may be: a JSON object. It must answer at once. */
  readonly response: StandardSchema<Response>;
  /** Whether the same call twice does what one call does, so that a client may repeat it. Default false. */
  readonly idempotent?: boolean;
  /** Its name over JSON-RPC. Default: its name in `methods`. */
  readonly jsonrpc?: string;
  /** Its HTTP method and its path below the base, such as `/tasks:search`. A GET has its fields in the query, as texts. */
  readonly rest: { readonly method: "GET" | "POST"; readonly path: `/${string}` };
  /** Its path over gRPC, such as `/example.tasks.v1.Search/SearchTasks`. Request and response are `google.protobuf.Struct`. */
  readonly grpc: `/${string}/${string}`;
  /**
   * Answers at the server. The caller has been authenticated and authorized as for any operation. Absent in a value that only clients
   * use: a server refuses it.
   *
   * @throws A2AError what the caller is told. Any other error is an `InternalError` to the caller and a line in the log.
   */
  onCall?(request: Request, call: ExtensionCall): Response | Promise<Response>;
}

/** The methods of an extension by their names, which have a slash, as `tasks/search`: no operation of the protocol has one. */
export type ExtensionMethods = Readonly<Record<`${string}/${string}`, ExtensionMethod>>;

/** What the hooks and the methods of an extension are called with. */
export interface ExtensionCall {
  /** Who calls. */
  readonly principal: Principal;
  /** URIs of all extensions that are active in the call. */
  readonly extensions: readonly string[];
  /** The call itself: its version, its headers, its signal. */
  readonly context: CallContext;
  /** The card of the agent. */
  readonly card: AgentCard;
  /** The operations of the agent, as this caller may use them: with the same authorization, and without interceptors. */
  readonly service: AgentService;
  /**
   * Finds tasks of the caller by their texts: those that `ListTasks` of `service` gives. For extensions with `searchesTasks`; of others it
   * rejects.
   *
   * @throws A2AError `InvalidParams` for a text without a word, what `ListTasks` refuses the caller with, and `Unavailable` while the store
   * makes its index.
   */
  readonly searchTasks: (query: TaskTextQuery) => Promise<FoundTasks>;
  /** Time. */
  readonly clock: Clock;
  /** The log of the server. */
  readonly logger: Logger;
}

/** Which tasks to find by their texts. */
export interface TaskTextQuery {
  /** Words, phrases in quotes, and beginnings of words, which end in `*`. All of them are in the task. Anything else separates words. */
  readonly text: string;
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly status?: TaskState;
  /** Most tasks. */
  readonly limit: number;
  /** How many of the first tasks to leave out: those of the pages before. Default 0. */
  readonly skip?: number;
}

/** Tasks that were found by their texts, the best first. */
export interface FoundTasks {
  /** The tasks. One that is deleted meanwhile is missing. */
  readonly tasks: readonly FoundTask[];
  /** How many there are on all pages. */
  readonly total: number;
}

/** A task that was found by its texts. */
export interface FoundTask {
  /** The task, without its history and its artifacts. */
  readonly task: Task;
  /** Parts of its texts with the words, the best first. At most three. */
  readonly snippets: readonly TaskSnippet[];
}

/** A part of a text of a task. */
export interface TaskSnippet {
  /** The message of the history that has the text. */
  readonly messageId?: string;
  /** The artifact that has it. */
  readonly artifactId?: string;
  /** About 160 characters of the text. */
  readonly text: string;
  /** Where the words are in `text`, in UTF-16 units, in order. */
  readonly marks: readonly { readonly start: number; readonly end: number }[];
}
