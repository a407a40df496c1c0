import type { Clock, Ids } from "../base/index.ts";
import type { Readable } from "../extensions/index.ts";
import type { AgentCard, AgentExtension, AgentInterface, OptionNames, StandardSchema, Task } from "../model/index.ts";
import type { AgentService, AnyExtension, ExtensionTypes, ExtensionWrites, FileFetch } from "../protocol/index.ts";
import type { WebhookInbox } from "./conversation.ts";
import type { download, DownloadOptions } from "./download.ts";
import type { CallOptions, SubscribeOptions } from "./requests.ts";
import type { readText } from "./text.ts";
import type { watchTask } from "./watch.ts";

/* What a client is made of, and the options of its methods. */

/** What a client is made of. `connect()` puts it together. */
export interface ClientParts {
  /** The card of the agent. */
  readonly card: AgentCard;
  /** Sends the calls. */
  readonly service: AgentService;
  /** Returns the interface that is in use. */
  readonly chosen: () => AgentInterface;
  /** Measures timeouts. */
  readonly clock: Clock;
  /** Makes the ids of messages. */
  readonly ids: Ids;
  /** Longest call in milliseconds. `false`: no limit. */
  readonly timeout: number | false;
  /** URIs of extensions that every call asks for. */
  readonly extensions: readonly string[];
  /** `download()`. Absent: the client has no method for it, and is small. */
  readonly download?: typeof download | undefined;
  /** `Client.fileFetch()`. Absent: the client reads no links on its own, and is small. */
  readonly fileFetch?: ((other?: FileFetch) => FileFetch) | undefined;
  /** `readText()`, for `EventStream.text()`. Absent: streams have no such method, and are small. */
  readonly readText?: typeof readText | undefined;
  /** `watchTask()`, for `Client.watch()`. Absent: the client has no method for it, and is small. */
  readonly watch?: typeof watchTask | undefined;
  /** `client.ext()`. Absent: the client has no method for it, and is small. */
  readonly ext?: ExtOfClient<AnyExtension> | undefined;
  /** Gives a task that came in a webhook its `ext`. Absent: the client has no extensions that are values. */
  readonly received?: ((task: Task, extensions: readonly string[] | undefined) => Task) | undefined;
}

/** Options of `Client.waitFor()`. */
export interface WaitOptions extends CallOptions {
  /** Whether to stop waiting. Called with the task after each change of its status. Default: it is terminal or interrupted. */
  readonly until?: (task: Task) => boolean;
  /**
   * Waits by webhook, in place of a stream: no connection is open meanwhile, so it suits tasks that take long. The agent must have push
   * notifications. While no webhook comes, the task is polled after 10 s, and then less and less often, up to once a minute.
   */
  readonly webhook?: WebhookInbox;
}

/** The names of the options of all calls together: `waitFor()` and `download()` pass their own options on to other methods. */
export const callNames: OptionNames<SubscribeOptions & WaitOptions & DownloadOptions> = {
  after: 1,
  connectTimeout: 1,
  extensionOf: 1,
  extensions: 1,
  fetch: 1,
  headers: 1,
  idleTimeout: 1,
  maxBytes: 1,
  method: 1,
  signal: 1,
  timeout: 1,
  trace: 1,
  until: 1,
  webhook: 1,
};

/** What `client.ext()` returns: an extension in calls to the agent of the client. */
export interface ExtensionClient<Types extends ExtensionTypes> extends Omit<ExtensionWrites<Types>, "subState"> {
  /** How the card declares it. `undefined`: it does not. */
  readonly declared: AgentExtension | undefined;
  /** Whether each call asks for it: the card declares it, and the extensions that it requires. */
  readonly requested: boolean;
  /** `params` of the card, checked. `undefined` if they are absent or invalid, and without `paramsSchema`. */
  readonly params: ParamsOf<Types>;
  /**
   * Reads what the extension has put into an event, a task, a message or an artifact, whether or not it was active: for what was kept,
   * or came in another way.
   */
  read(from: Readable): Types["event"];
  /**
   * Calls a method of the extension.
   *
   * @throws A2AError `InvalidParams` for a request that does not fit, which is not sent, `InvalidResponse` for an answer that does not,
   * `MethodNotFound` if the agent does not have the extension, and what the agent answers.
   */
  call<Name extends keyof Types["methods"] & string>(
    method: Name,
    request: RequestOf<Types["methods"][Name]>,
    options?: CallOptions,
  ): Promise<ResponseOf<Types["methods"][Name]>>;
}

type ParamsOf<Types> = Types extends { readonly params: infer Params } ? Params | undefined : unknown;

type RequestOf<Method> = Method extends { readonly request: StandardSchema<infer Request> } ? Request : never;

type ResponseOf<Method> = Method extends { readonly response: StandardSchema<infer Response> } ? Response : never;

/** What `client.ext()` returns for an extension. */
export type ExtensionClientOf<X> = X extends { readonly "~types"?: infer Types extends ExtensionTypes }
  ? ExtensionClient<Types>
  : never;

/** `client.ext`, of a client with these extensions. */
export type ExtOfClient<E extends AnyExtension> = <X extends E>(extension: X) => ExtensionClientOf<X>;
