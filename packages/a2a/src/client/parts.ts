import type { Clock, Ids } from "../base/index.ts";
import type { Readable } from "../extensions/index.ts";
import type { AgentCard, AgentExtension, AgentInterface, OptionNames, StandardSchema, Task } from "../model/index.ts";
import type { AgentService, AnyExtension, ExtensionTypes, ExtensionWrites, FileFetch } from "../protocol/index.ts";
import type { WebhookInbox } from "./conversation.ts";
import type { download, DownloadOptions } from "./download.ts";
import type { CallOptions, SubscribeOptions } from "./requests.ts";
import type { readText } from "./text.ts";
import type { watchTask } from "./watch.ts";

/* The parts of a client, and the options of its methods. */

/** The parts of a client, which `connect()` creates. */
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
  /** Maximum duration of a call in milliseconds. `false` means no limit. */
  readonly timeout: number | false;
  /** URIs of extensions that every call requests. */
  readonly extensions: readonly string[];
  /** `download()`. Absent in small clients, whose method throws. */
  readonly download?: typeof download | undefined;
  /** `Client.fileFetch()`. Absent in small clients, which fetch no links on their own. */
  readonly fileFetch?: ((other?: FileFetch) => FileFetch) | undefined;
  /** `readText()`, for `EventStream.text()`. Absent in small clients, whose streams throw instead. */
  readonly readText?: typeof readText | undefined;
  /** `watchTask()`, for `Client.watch()`. Absent in small clients, whose method throws. */
  readonly watch?: typeof watchTask | undefined;
  /** `client.ext()`. Absent in small clients, whose method throws. */
  readonly ext?: ExtOfClient<AnyExtension> | undefined;
  /** Adds `ext` to a task from a webhook. Absent if the client has no extensions, or only URIs of extensions. */
  readonly received?: ((task: Task, extensions: readonly string[] | undefined) => Task) | undefined;
}

/** Options of `Client.waitFor()`. */
export interface WaitOptions extends CallOptions {
  /** Returns whether to stop waiting. Called with the task after each status change. Default: stops when the task is terminal or interrupted. */
  readonly until?: (task: Task) => boolean;
  /**
   * Waits for webhooks instead of a stream. No connection stays open, so this suits long tasks. The agent must support push
   * notifications. Until a webhook arrives, the client polls the task, first after 10 s, then less often, finally once a minute.
   */
  readonly webhook?: WebhookInbox;
}

/** The option names of all methods in one list, because `waitFor()` and `download()` pass their options on to other methods. */
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

/** The result of `client.ext()`, which is an extension bound to the agent of this client. */
export interface ExtensionClient<Types extends ExtensionTypes> extends Omit<ExtensionWrites<Types>, "subState"> {
  /** The extension's entry on the card. `undefined` if the card does not declare the extension. */
  readonly declared: AgentExtension | undefined;
  /** Whether each call requests the extension, because the card declares it and all extensions that it requires. */
  readonly requested: boolean;
  /** The checked `params` of the extension on the card. `undefined` if they are absent or invalid, or if there is no `paramsSchema`. */
  readonly params: ParamsOf<Types>;
  /**
   * Reads the extension's values in an event, a task, a message or an artifact, even if the extension is not active, such as in stored tasks.
   */
  read(from: Readable): Types["event"];
  /**
   * Calls a method of the extension.
   *
   * @throws A2AError `InvalidParams` for a request that does not match its schema (nothing is sent), `InvalidResponse` for an
   * answer that does not match, `MethodNotFound` if the agent does not have the extension, and errors of the agent.
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

/** The result of `client.ext()` for an extension. */
export type ExtensionClientOf<X> = X extends { readonly "~types"?: infer Types extends ExtensionTypes }
  ? ExtensionClient<Types>
  : never;

/** `client.ext`, of a client with these extensions. */
export type ExtOfClient<E extends AnyExtension> = <X extends E>(extension: X) => ExtensionClientOf<X>;
