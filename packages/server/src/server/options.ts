import type { BlobOptions } from "../blobs/port.ts";
import type { Authenticator, Authorizer, SkillOf } from "@parley/a2a/internal/auth/index";
import type { DeleteOwnerOptions, EngineLimits, EngineOptions, Erasure } from "../engine/index.ts";
import type { InTaskOptions } from "../intask/index.ts";
import type { AgentCapabilities, AgentCard, JsonValue } from "@parley/a2a/internal/model/index";
import type {
  Agent,
  AgentDescription,
  AgentService,
  Interceptor,
  Principal,
  SignalOptions,
  UniversalHandler,
  UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import type { PushOptions } from "../push/index.ts";
import type { RateLimits } from "../limits/index.ts";
import type { InterfacePaths } from "@parley/a2a/internal/transport/router/claims";
import type { Found } from "@parley/a2a/internal/transport/router/router";
import type { ServerBinding, ServerHost } from "@parley/a2a/internal/transport/server/binding";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import type { CardReaders, SignCards } from "./cards.ts";
import type { FetchFacts, FetchHandler } from "@parley/a2a/internal/transport/server/fetch";
import type { HealthOptions } from "./health.ts";
import type { RouteMount, Routes } from "./routes.ts";
import type { WaitUntil, Wake, WakeOptions } from "./fetch.ts";

/** Where an agent is served. */
export interface MountAddress {
  /** Path of its base below `publicUrl`, such as `/weather`. Default: `publicUrl` itself. */
  readonly path?: string;
  /**
   * Paths of the bindings below the base, by the names of the bindings on cards: `{ JSONRPC: "/jsonrpc", "HTTP+JSON": "/rest" }`.
   * Default: JSON-RPC requests are posted to the base itself, and the paths of REST begin there. Agents with the same `path` must
   * have the same `interfaces`.
   */
  readonly interfaces?: InterfacePaths;
  /** Further paths of its card below the base, such as `/jsonrpc/.well-known/agent-card.json`. Default: none. */
  readonly cardPaths?: readonly string[];
  /** The protocol's routing label, for agents that share a path (A2A 1.0 §8.3.2). Default: none. */
  readonly tenant?: string;
  /**
   * The name that its tasks are stored under. Default: its path and tenant. Set it before an agent gets another path, so that it
   * keeps its tasks.
   */
  readonly id?: string;
}

/** An agent and where it is served. */
export interface AgentMount extends MountAddress {
  /** The agent. */
  readonly agent: Agent;
  /** Makes the card for authenticated callers from the public card (A2A 1.0 §3.1.11). Needs an authenticator. Default: there is none. */
  readonly extendedCard?: (card: AgentCard, principal: Principal) => AgentCard | Promise<AgentCard>;
}

/** A service that answers the calls of an agent, and where it is served: a gateway, a proxy, or an engine of your own. */
export interface HostedService extends MountAddress {
  /** Answers the calls. It refuses what the card does not declare, and keeps callers apart by `context.principal`. */
  readonly service: AgentService;
  /** What the card says. The host adds the addresses, and how callers authenticate. */
  readonly card: HostedCard;
}

/** What the card of a service says, without addresses. */
export interface HostedCard extends Omit<AgentDescription, "capabilities"> {
  /** What the service can do. Default: streaming, nothing else. */
  readonly capabilities?: AgentCapabilities;
}

/** Limits of a host. A value must be at least 1. */
export interface HostLimits {
  /** Largest request body in bytes. Default 10 MiB. */
  readonly bodyBytes?: number;
  /**
   * Memory of all request bodies that are being received, in bytes. Default 64 MiB, or four times `bodyBytes` where that is more.
   * A large file that is stored while it comes takes a part of it: 1.5 MiB with a folder, 25.5 MiB with S3, where the default is 400 MiB.
   * At least twice `bodyBytes`. When it is full, large bodies wait for room for up to 10 seconds, or are refused (`Unavailable`).
   * A quarter is reserved for bodies of up to 64 KiB.
   */
  readonly unfinishedBytes?: number;
  /**
   * Memory of all large answers until their readers have taken them, in bytes. An answer counts twice its JSON, and four times
   * where it is converted, as for 0.3 and gRPC. Tasks and pages of up to 256 KiB are not counted. Default 128 MiB. A caller gets
   * half of it at most, and a single answer always fits. When it is full, up to a hundred answers wait for 10 seconds; any other
   * is refused (`Unavailable`).
   */
  readonly answerBytes?: number;
  /** Deepest nesting of a request. Default 64. */
  readonly depth?: number;
  /** Most streams that one caller has open at a time. Further ones are refused (`TooManyRequests`). Default: no limit. */
  readonly streamsPerCaller?: number;
  /** How many requests a caller may send in how much time. Default: no limit. */
  readonly rate?: RateLimits;
}

/** Limits of a handler: those of its host and of its engine. */
export interface HandlerLimits extends EngineLimits, HostLimits {}

/** Options of `createHost`. `Version`: the names of all versions of the protocol. */
export interface HostOptions<Version extends string = string> extends Pick<
  EngineOptions,
  "audit" | "clock" | "extensions" | "logger" | "observer"
> {
  /**
   * The URL of this handler for clients, such as `https://agents.example.com`. Cards contain it. It is never taken from a
   * request, because anyone can write its headers. The path of this URL is before every path that the handler answers.
   */
  readonly publicUrl: string;
  /** The path before every path that the handler answers, where a proxy removes or adds a path. Default: that of `publicUrl`. */
  readonly basePath?: string;
  /** The bindings, in the order of the cards. Default: `[jsonRpcBinding(), restBinding()]`. */
  readonly bindings?: readonly ServerBinding[];
  /** Finds the caller of a request. Absent: everyone is the same anonymous caller. */
  readonly authenticator?: Authenticator;
  /**
   * Finds the skill that a message is for. Callers who do not satisfy the `securityRequirements` of that skill are refused. Default:
   * `metadata.skillId` of the message.
   */
  readonly skillOf?: SkillOf;
  /** Decides what a caller may do, after the authenticator and before the interceptors. Absent: everything is allowed. */
  readonly authorizer?: Authorizer;
  /**
   * Host names that requests may use (`agents.internal`; ports are not compared), in addition to loopback names and the host of
   * `publicUrl`. Requests to other hosts are refused with 403, and so are requests of pages from other hosts unless `cors` allows
   * them. An element `"*"` allows any host. Default: any.
   */
  readonly allowedHosts?: readonly string[];
  /** For `fetch`: returns what the runtime or the framework knows about a client. Called when an authenticator reads it. Default: nothing. */
  readonly facts?: FetchFacts;
  /** The pages of other origins that may call. `true`: any. Default: none. */
  readonly cors?: CorsOptions | boolean;
  /** Versions of the protocol to speak, the preferred one first. Default: all. */
  readonly versions?: readonly Version[];
  /**
   * Whether a request that names no version has the version 0.3 (A2A 1.0 §3.6.2), and is refused where the server does not speak
   * 0.3. Default: its method or its path tells the version.
   */
  readonly strictVersion?: boolean;
  /** Interceptors around every service. The first one is the outermost. Default: none. */
  readonly interceptors?: readonly Interceptor[];
  /** Limits in bytes and counts. */
  readonly limits?: HostLimits;
  /** Time between two keep-alive comments on an open stream, in milliseconds. Default 15 s. */
  readonly keepAlive?: number;
  /** How long clients may cache a card, in seconds. Default 300. A card that not anyone may read is revalidated at each use. */
  readonly cardMaxAge?: number;
  /**
   * Who may read the public cards and the pages that show them: `"anyone"`, `"authenticated"`, or a function that decides by the caller.
   * Callers authenticate as for calls. Default `"anyone"`.
   */
  readonly cardReaders?: CardReaders;
  /** Signs the cards, extended ones too (A2A 1.0 §8.4). Default: they are not signed. */
  readonly signCards?: SignCards;
  /**
   * Where probes of an orchestrator or a load balancer ask whether the server works: `/healthz` and `/readyz`, or other paths. They are
   * paths of the host, whatever the path of `publicUrl` is. Probes need no credentials, may name any host and are not limited. Default
   * false; with `serve()` true.
   */
  readonly health?: boolean | HealthOptions;
  /**
   * Whether browsers get a page at the addresses of the agents: what the public card says, and how to call the agent. Other clients,
   * and clients that post, get what they get without it. Default true.
   */
  readonly page?: boolean;
  /**
   * What the application answers beside the agents: routes at paths of their own, or a function that is asked about each path that belongs
   * to nothing else. Default: nothing.
   */
  readonly routes?: Routes | readonly RouteMount[];
}

/** Options of `createHandler`. */
export interface HandlerOptions<Version extends string = string>
  extends
    Omit<EngineOptions, "agents" | "files" | "inTask" | "limits" | "outbox" | "push">,
    Omit<HostOptions<Version>, "limits"> {
  /**
   * For `fetch` on platforms that run code only for requests: Workers, and functions that are frozen after their answer. Called for each
   * request, with a promise that resolves when its answer is written and nothing runs here any more: no turn, no delivery of a webhook.
   * It passes the promise to the platform. The handler then does nothing before its first request or `wake()`, so that it can be made
   * at the top of a module, and it renews leases only while such a promise is pending. Default: the process runs all the time.
   */
  readonly waitUntil?: WaitUntil;
  /**
   * Whether callers may register webhooks for their tasks (A2A 1.0 §4.3), and how events are delivered to them. Cards then declare
   * `pushNotifications`, except that of an agent whose capabilities have it as false. Default false.
   */
  readonly push?: boolean | PushOptions;
  /** How agents get authorizations for their tasks, by `turn.authorize()` (A2A 1.0 §7.6). */
  readonly authorization?: InTaskOptions;
  /**
   * Keeps large files of messages and artifacts outside of the database. Answers have links to them, or the files themselves where a
   * client asks for that. Default: every file is in the database, within `limits.eventBytes` and `limits.taskBytes`.
   */
  readonly blobs?: BlobOptions;
  /** Limits in bytes and counts. */
  readonly limits?: HandlerLimits;
}

/** An agent at its address. */
export interface ServedAgent {
  /** The name that its tasks are stored under. */
  readonly id: string;
  /** URL of its base. Unless `AgentMount.interfaces` says otherwise, JSON-RPC is posted here, and the paths of REST begin here. */
  readonly url: string;
  /** Its tenant, where agents have the same path. */
  readonly tenant?: string;
  /** URL of its card. */
  readonly cardUrl: string;
  /** Its public card. */
  readonly card: AgentCard;
}

/** The agents of a host, which can change while it serves. */
export interface Mounts<Mount = HostedService> {
  /** Those that are served now, with their addresses. */
  readonly agents: readonly ServedAgent[];
  /**
   * Serves more agents: all of them from the next request on, or none.
   *
   * @throws A2AError `InvalidParams` where an address or an id is taken or not valid, and where an agent has an extension that none had when the
   * host was made. `Unavailable` after `close`.
   */
  add(mounts: Mount | readonly Mount[]): readonly ServedAgent[];
  /**
   * Serves another mount in place of the one with the same id: another card, service or address. Every request reaches one of the two. Calls that are
   * open are answered by the former one.
   *
   * @throws A2AError as `add`; `InvalidParams` also where nothing has this id.
   */
  replace(mount: Mount): ServedAgent;
  /**
   * Stops serving an agent: the next request to its paths gets 404. Open calls and streams continue. Resolves when they and
   * its turns have ended; at once for an unknown id. Stored tasks stay.
   */
  remove(id: string): Promise<void>;
}

/** Agents that are ready to be served. `createHost()` makes one without an engine. */
export interface Host<Mount = HostedService> {
  /** For hosts: answers a request. */
  readonly handle: UniversalHandler;
  /** For runtimes and frameworks of the Fetch API: Bun, Deno, Workers, Hono. */
  readonly fetch: FetchHandler;
  /** Whether the handler serves something at a URL of `UniversalRequest`, by any HTTP method. If not, a framework may serve it. */
  answers(this: void, url: string): boolean;
  /**
   * For hosts: the endpoint at a URL, for a binding that takes the connection over. The host has to admit the request itself: see
   * `host.admit`.
   */
  find(this: void, url: string): Found | undefined;
  /** For hosts: whether a request belongs to a binding that recognizes its requests by their headers at any path, as gRPC does. */
  claims(this: void, request: UniversalRequest): boolean;
  /** For hosts: whether a URL of `UniversalRequest` is one of `health`, which is answered to any sender. */
  isProbe(this: void, url: string): boolean;
  /** The agents, with their addresses. */
  readonly agents: readonly ServedAgent[];
  /**
   * For bindings without paths, such as gRPC: the agents by their labels. A label is the path and the tenant of an agent:
   * `weather`, `weather/berlin`. The agent at the root has none.
   */
  readonly host: ServerHost;
  /** The agents, to add, replace and remove. */
  readonly mounts: Mounts<Mount>;
  /** Makes probes of readiness fail from now on, so that load balancers send requests elsewhere. Everything is still served until `close`. */
  drain(this: void): void;
  /**
   * Stops the host. Running turns, and calls of services, get `grace` milliseconds. Unfinished resumable tasks continue on the next server of
   * the store.
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

/** Agents with the engine that runs them. `createHandler()` makes one. */
export interface Handler extends Host<AgentMount | HostedService> {
  /**
   * Tells a task of something that has happened outside: `turn.waitFor(name)` continues with the data. An event that comes before the agent
   * waits for it is kept, up to 32 of a task, until the task is over. It may be called in any process that shares the store. It is for the
   * operator's own code, which has checked who calls: it takes tasks of every owner.
   *
   * With `waitUntil` the event is stored, and nothing runs yet: the task continues with the next request, or with `wake()`.
   *
   * @param data - Any JSON, at most 16 KiB. Default `null`.
   * @throws A2AError `TaskNotFound`; `UnsupportedOperation` where the task is over; `TooManyRequests` where 32 events of it wait; `InvalidParams`
   * for a name, an id or data that is not valid; `Unavailable`.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * await handler.signal("0199-task", "approved", { by: "ada" }, { id: "delivery-17" });
   * ```
   */
  signal(this: void, taskId: string, name: string, data?: JsonValue, options?: SignalOptions): Promise<void>;
  /**
   * Deletes all that a caller has, in the store with whatever agent and in the memory of this process: tasks, conversations, webhooks with their
   * secrets, idempotency keys, the index of full text search, and its name. Tasks that are not over are canceled first, and messages that
   * this process is answering are given up. Withdraw its access before. It is for the operator's own code.
   *
   * @param owner - The caller, or the name that `ownerOf` gives to it.
   * @throws A2AError `Unavailable` where it continues creating tasks, or the store cannot work; what is deleted then stays deleted.
   * `UnsupportedOperation` where the store has no `upkeep`.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * const { tasks } = await handler.deleteOwner({ subject: "ada" });
   * ```
   */
  deleteOwner(this: void, owner: Principal | string, options?: DeleteOwnerOptions): Promise<Erasure>;
  /**
   * All that a caller has in the store with whatever agent, as JSON Lines in pieces of any length: conversations with their direct replies, and
   * tasks with history, artifacts and files. The last line has the type `end`; without it the export is not complete.
   *
   * @param owner - The caller, or the name that `ownerOf` gives to it.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * for await (const piece of handler.exportOwner({ subject: "ada" })) console.log(piece);
   * ```
   */
  exportOwner(this: void, owner: Principal | string): AsyncIterable<string>;
  /**
   * Does what is due: takes over lost runs, wakes tasks that wait, delivers webhooks, deletes what is too old. For a cron trigger or an alarm, on platforms
   * that run code only when something calls.
   *
   * @throws A2AError `Unavailable` after `close`.
   */
  wake(this: void, options?: WakeOptions): Promise<Wake>;
}
