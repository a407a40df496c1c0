import type { Clock, Ids, Logger } from "../base/index.ts";
import type {
  AuthenticationInfo,
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from "../model/index.ts";
import type { GuardedFetch } from "../net/index.ts";
import type { UniversalHandler } from "../protocol/index.ts";
import type { FetchHandler } from "../transport/server/fetch.ts";

/* The receiver of webhooks: its options, its callbacks, and the port of its memory (docs/decisions/webhooks.md). */

/**
 * A way to verify that a delivery comes from a trusted sender. Each delivery must pass one. All except
 * `tokenOnly` authenticate the sender and the unchanged body.
 */
export type WebhookTrust = TrustKeySet | TrustPublicKey | TrustSecret | TrustJwt | TrustToken;

/** Standard Webhooks `v1a`: a signature by an Ed25519 key of a server's key set. Parley servers sign every delivery this way. */
export interface TrustKeySet {
  /** URL of the key set (RFC 7517), such as `https://agents.example.com/.well-known/jwks.json`. */
  readonly keySet: string;
}

/** Standard Webhooks `v1a`: a signature by this Ed25519 key. */
export interface TrustPublicKey {
  /** `whpk_` and the key in base64. */
  readonly publicKey: string;
}

/** Standard Webhooks `v1`: an HMAC with a secret that sender and receiver share. */
export interface TrustSecret {
  /** `whsec_` and 24 to 64 random bytes in base64. */
  readonly secret: string;
}

/** `Authorization: Bearer` with a JWT that the server signed, as the A2A guide describes. */
export interface TrustJwt {
  /** Required claims of the JWT. */
  readonly jwt: {
    /** URL of the key set (RFC 7517). */
    readonly keySet: string;
    /** `iss`: the sender. */
    readonly issuer: string;
    /** `aud`: this receiver. Default: `url` of the receiver, without its query. */
    readonly audience?: string;
  };
}

/**
 * No signature: anyone who knows the token is trusted. Other SDKs work in this way. The body is not protected, and recorded
 * deliveries can be replayed. Use it over HTTPS only.
 */
export interface TrustToken {
  /** Confirms that you accept this. The receiver then needs `token`, or a subscription. */
  readonly tokenOnly: true;
  /** Required `Authorization` of the sender. Default: none. */
  readonly authentication?: AuthenticationInfo;
}

/** Options of `webhookReceiver()`. */
export interface WebhookReceiverOptions {
  /** The URL that senders call. Requests to other paths are not answered. */
  readonly url: string;
  /** The path that the host sees, if a proxy or a framework changes it. Default: the path of `url`. */
  readonly path?: string;
  /** Trusted senders. Each delivery must match one. `config()` requests the first from the sender. */
  readonly accept: WebhookTrust | readonly WebhookTrust[];
  /** A secret that each delivery must carry as its token, in addition to `accept`. Default: none. Subscriptions have their own. */
  readonly token?: string;
  /**
   * Called with each event, in order and one at a time per task. When it resolves, the sender gets a 204. If it throws, the
   * sender gets a 500 and retries. Senders wait at least 10 seconds, so put longer work into a queue. A repeated event
   * waits for the first call. Absent: only subscriptions get events.
   */
  readonly onEvent?: WebhookListener;
  /**
   * Reads tasks, for missing events and for events that were too large to send. A `Client` can do it. Absent: your code gets
   * `WebhookDelivery.missed`, and events without their content.
   */
  readonly client?: TaskReader;
  /** Remembers handled deliveries. Default: in memory, at most 16 MiB. */
  readonly memory?: WebhookMemory;
  /** Returns whether a task is expected. Other deliveries get a 404. Default: all tasks of trusted senders. */
  readonly expects?: (taskId: string) => boolean | Promise<boolean>;
  /** Maximum difference between a delivery's time and the clock of this process, in milliseconds. Default 5 minutes. */
  readonly tolerance?: number;
  /** Maximum size of a body in bytes. Default 10 MiB. */
  readonly bodyBytes?: number;
  /** Maximum total bytes of the bodies that wait for your code. Beyond that, senders get a 503. Default 64 MiB. */
  readonly pendingBytes?: number;
  /** Fetches key sets. Default: the `fetch` of the runtime, without redirects, 10 s and 64 KiB at most. */
  readonly fetch?: GuardedFetch;
  /** Logs rejected deliveries, and errors of your code. Default: no log. */
  readonly logger?: Logger;
  /** The clock. Default: the runtime's. */
  readonly clock?: Clock;
}

/** Your listener. `event` is a status, an artifact, the whole task, or a message. */
export type WebhookListener = (event: StreamResponse, delivery: WebhookDelivery) => void | Promise<void>;

/** Facts about a delivery, in addition to its event. */
export interface WebhookDelivery {
  /** Its id, equal in every attempt. Absent: the sender sends no id, like other SDKs. */
  readonly id?: string;
  /** The task. */
  readonly taskId: string;
  /** The trust that authenticated the sender. */
  readonly trust: WebhookTrust;
  /** Its number among the deliveries of its config, from 1. Only if a signature protects it. */
  readonly sequence?: number;
  /** The generation of the task at the event, according to the sender. */
  readonly generation?: number;
  /** The number of the attempt, from 1, according to the sender. */
  readonly attempt?: number;
  /**
   * URIs of the extensions that were active in the call that registered the webhook, according to the sender. Absent: none.
   * `client.ext(extension).read(event)` reads their values in the event.
   */
  readonly extensions?: readonly string[];
  /**
   * The number of missing events before this event. With a client, the event is then the current task, which may include
   * later deliveries. After the memory was emptied, the count starts from 0.
   */
  readonly missed?: number;
  /** Why `client` read the event from the agent. Absent: the delivery contained it. */
  readonly fetched?: "missed" | "reference";
}

/** Reads a task. */
export interface TaskReader {
  /** The current task. */
  getTask(id: string): Promise<Task>;
}

/** The part of a client that `waitFor()` needs. A `Client` has it. */
export interface WebhookClient {
  /** The current task. */
  getTask(id: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<Task>;
  /** Registers a webhook. */
  createTaskPushNotificationConfig(
    config: TaskPushNotificationConfig,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<TaskPushNotificationConfig>;
  /** Removes a webhook. */
  deleteTaskPushNotificationConfig(config: { readonly taskId: string; readonly id: string }): Promise<void>;
}

/** The way in which a client reads tasks of webhooks. A client with extensions adds `ext` to the task. */
export interface WebhookReading {
  /**
   * Called with each delivered task, before `until`. Its result replaces the task. `extensions`: URIs of the webhook's active
   * extensions, according to the sender. Not called for tasks that the client reads itself. Default: the task is not changed.
   */
  readonly received?: ((task: Task, extensions: readonly string[] | undefined) => Task) | undefined;
}

/** The part of a client that `onUpdate()` needs and returns. A `Client` has it. */
export interface MessageSender<Stream> extends TaskReader {
  /** Makes the ids of messages. */
  readonly ids: Ids;
  /** Sends a message and waits for its answer. */
  sendMessage(request: SendMessageRequest, options?: object): Promise<SendMessageResponse>;
  /** Sends a message and follows its task. `observe` is called with each event just before the reader gets it. */
  sendStreamingMessage(
    request: SendMessageRequest,
    options?: object,
    observe?: (event: StreamResponse) => void,
  ): Stream;
}

/** Options of `config()`. */
export interface WebhookConfigInit {
  /** The task to report. Absent: the config is sent with a message. */
  readonly taskId?: string;
  /** Id of the config. Default: the server creates an id. */
  readonly id?: string;
}

/** Receives webhooks. Created by `webhookReceiver()`. */
export interface WebhookReceiver {
  /** For hosts: `nodeListener(receiver.handle)` of `@parley/node`, `expressMount(receiver)`, `fastifyMount(receiver)`. */
  readonly handle: UniversalHandler;
  /** For runtimes and frameworks of the Fetch API: Bun, Deno, Workers, Hono. */
  readonly fetch: FetchHandler;
  /** Whether a URL of `UniversalRequest` is this receiver's. */
  answers(this: void, url: string): boolean;
  /** The config to register at the agent, separately or with a message, so that this receiver accepts its deliveries. */
  config(init?: WebhookConfigInit): TaskPushNotificationConfig;
  /**
   * Makes a separate token, whose deliveries go to `listener` and not to `onEvent`. It lasts until it is closed, at most as long as
   * this process. Senders that deliver afterwards get a 410, which ends their config.
   */
  subscribe(listener: WebhookListener, client?: TaskReader): WebhookSubscription;
  /**
   * Registers a webhook for a task, waits until `until` returns true for the task, and removes the webhook. After 10 s without a webhook it
   * polls the task, and then less and less often, up to once a minute. `Client.waitFor()` uses it.
   *
   * @throws A2AError `UnsupportedOperation` when the task ends before, and errors of `client` and `reading`.
   */
  waitFor(
    client: WebhookClient,
    taskId: string,
    until: (task: Task) => boolean,
    options?: { readonly signal?: AbortSignal | undefined },
    reading?: WebhookReading,
  ): Promise<Task>;
  /**
   * Wraps a client: adds a webhook to each message whose task has none yet. `listener` receives the events of these tasks,
   * and `note` receives the events of the last message's task. `Conversation.onUpdate()` uses it.
   */
  onUpdate<Stream>(
    client: MessageSender<Stream>,
    listener: (event: StreamResponse) => void | Promise<void>,
    note: (event: StreamResponse) => void,
  ): MessageSender<Stream> & { close(this: void): void };
  /** Rejects further deliveries with a 503, and resolves when your code has finished the accepted ones. */
  close(): Promise<void>;
}

/** Deliveries for one listener. */
export interface WebhookSubscription {
  /** The config to register at the agent. */
  config(init?: WebhookConfigInit): TaskPushNotificationConfig;
  /** Ends the subscription. */
  close(): void;
}

/** A delivery that was handled. */
export interface HandledDelivery {
  /** The receiver's `url`: several receivers may share a memory. */
  readonly receiver: string;
  /**
   * Identifies the sender that `accept` has authenticated. It is equal in each process, and contains no secret. Two senders
   * may choose the same delivery id: both deliveries must be handled.
   */
  readonly sender: string;
  /** The id of the delivery, as its sender chose it. */
  readonly id: string;
  /** The config, if the sender numbers its deliveries: the part of the id before the number. */
  readonly stream?: string;
  /** The number of the delivery in `stream`. */
  readonly sequence?: number;
  /** When, in milliseconds since the Unix epoch. */
  readonly at: number;
}

/** The record of a delivery in a memory. */
export interface RecalledDelivery {
  /** Whether it was handled. */
  readonly seen: boolean;
  /** The highest handled number of its stream. Absent: unknown. */
  readonly last?: number;
}

/**
 * Remembers handled deliveries, so that no delivery is handled twice, and the numbers of streams, so that gaps are detected.
 * It is bounded, and forgets the oldest first. `webhookMemory()` keeps it in this process, `sqliteWebhookMemory()` of
 * `@parley/sql/sqlite` in a file.
 */
export interface WebhookMemory {
  /** The record of the delivery with this receiver, sender and id. */
  recall(delivery: Omit<HandledDelivery, "at">): Promise<RecalledDelivery>;
  /** Remembers a delivery, and its number if it is the highest of its stream. Resolves when this is stored. */
  remember(delivery: HandledDelivery): Promise<void>;
  /** Releases its resources, such as a file. */
  close?(): Promise<void> | void;
}
