import type { BlobOptions } from "../blobs/port.ts";
import type { Authenticator, Authorizer, SkillOf } from "@parley/a2a/internal/auth/index";
import type { EngineLimits, EngineOptions } from "../engine/index.ts";
import type { InTaskOptions } from "../intask/index.ts";
import type { PrivateCardKey, PublicCardKey } from "@parley/a2a/internal/cards/port";
import type { AgentCapabilities, AgentCard } from "@parley/a2a/internal/model/index";
import type {
  Agent,
  AgentDescription,
  AgentService,
  Interceptor,
  Principal,
  RequestFacts,
} from "@parley/a2a/internal/protocol/index";
import type { PushOptions } from "../push/index.ts";
import type { RateLimits } from "../limits/port.ts";
import type { InterfacePaths } from "@parley/a2a/internal/transport/router/claims";
import type { ServerBinding } from "@parley/a2a/internal/transport/server/binding";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import type { FetchFacts } from "@parley/a2a/internal/transport/server/fetch";
import type { HealthOptions } from "./health.ts";
import type { OperatorRequest } from "../operate/routes.ts";

/** An agent at its address. */
export interface ServedAgent {
  /** The name that its tasks are stored under. */
  readonly id: string;
  /** URL of its base. By default (`AgentMount.interfaces`), JSON-RPC is posted here, and REST paths begin here. */
  readonly url: string;
  /** Its tenant, if agents have the same path. */
  readonly tenant?: string;
  /** URL of its card. */
  readonly cardUrl: string;
  /** Its public card. */
  readonly card: AgentCard;
}

/** The address of a mounted agent. */
export interface MountAddress {
  /** Path of its base below `publicUrl`, such as `/weather`. Default: `publicUrl` itself. */
  readonly path?: string;
  /**
   * Paths of the bindings below the base, by the names of the bindings on cards: `{ JSONRPC: "/jsonrpc", "HTTP+JSON": "/rest" }`.
   * Default: JSON-RPC requests are posted to the base itself, and REST paths begin there. Agents with the same `path` must
   * have the same `interfaces`.
   */
  readonly interfaces?: InterfacePaths;
  /** Further paths of its card below the base, such as `/jsonrpc/.well-known/agent-card.json`. Default: none. */
  readonly cardPaths?: readonly string[];
  /** The protocol's routing label, for agents that share a path (A2A 1.0 §8.3.2). Default: none. */
  readonly tenant?: string;
  /**
   * The name that its tasks are stored under. Default: its path and tenant. Set it before you change the agent's path, so
   * that the agent keeps its tasks.
   */
  readonly id?: string;
}

/** An agent and its address. */
export interface AgentMount extends MountAddress {
  /** The agent. */
  readonly agent: Agent;
  /** Makes the card for authenticated callers from the public card (A2A 1.0 §3.1.11). Needs an authenticator. Default: no extended card. */
  readonly extendedCard?: (card: AgentCard, principal: Principal) => AgentCard | Promise<AgentCard>;
}

/** A service that answers the calls of an agent, such as a gateway, a proxy, or your own engine, and its address. */
export interface HostedService extends MountAddress {
  /** Answers the calls. It must reject operations that the card does not declare, and isolate callers by `context.principal`. */
  readonly service: AgentService;
  /** The card. The host adds the addresses, and how callers authenticate. */
  readonly card: HostedCard;
}

/** The card of a service, without addresses. */
export interface HostedCard extends Omit<AgentDescription, "capabilities"> {
  /** Capabilities of the service. Default: only streaming. */
  readonly capabilities?: AgentCapabilities;
}

/** Limits of a host. A value must be at least 1. */
export interface HostLimits {
  /** Largest request body in bytes. Default 10 MiB. */
  readonly bodyBytes?: number;
  /**
   * Memory for all incoming request bodies, in bytes. Default 64 MiB, or four times `bodyBytes` if that is more. A large file
   * in a message uses a part of this memory while it is stored: 1.5 MiB with a folder, 25.5 MiB with S3 (with S3, the default
   * is 400 MiB). At least twice `bodyBytes`. When it is full, large bodies wait for room for up to 10 seconds, then fail
   * (`Unavailable`). A quarter is reserved for bodies of up to 64 KiB.
   */
  readonly unfinishedBytes?: number;
  /**
   * Memory for all large answers until their clients have read them, in bytes. An answer counts as twice the size of its JSON, or
   * four times if it is converted, such as for 0.3 and gRPC. Tasks and pages of up to 256 KiB are not counted. Default 128 MiB. A
   * caller gets at most half of it, and a single answer always fits. When it is full, up to a hundred answers wait for 10 seconds;
   * further answers fail (`Unavailable`).
   */
  readonly answerBytes?: number;
  /** Deepest nesting of a request. Default 64. */
  readonly depth?: number;
  /** Maximum open streams of one caller. Further ones fail (`TooManyRequests`). Default: no limit. */
  readonly streamsPerCaller?: number;
  /** Rate limits of callers. Default: no limits. */
  readonly rate?: RateLimits;
}

/** Limits of a handler: its host's and its engine's. */
export interface HandlerLimits extends EngineLimits, HostLimits {}

/**
 * How a server signs its cards. The public keys are published at `/.well-known/card-keys.json` below `publicUrl`, which the signatures
 * name as `jku`.
 */
export interface SignCards {
  /** The keys, from `makeCardKey()`. Every key signs each card, so that you can add a new key before you remove an old one. */
  readonly keys: readonly PrivateCardKey[];
  /** Former public keys. Publish them as long as clients may have cards that they signed. Default: none. */
  readonly retired?: readonly PublicCardKey[];
  /** See `SignCardOptions.reduced`. Default true. */
  readonly reduced?: boolean;
}

/** A caller that requests the public card of an agent. */
export interface CardReader {
  /** The caller that the authenticator returned. `anonymous` if `anyone()` is among the authenticators and the caller is unknown. */
  readonly principal: Principal;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
}

/**
 * Who may read the public cards.
 * - `anyone`: everyone who can reach the server.
 * - `authenticated`: callers that the authenticator accepts for the agent. Others get 401.
 * - a function: those authenticated callers for which it returns true. Others get 403; unauthenticated ones get 401.
 */
export type CardReaders = "anyone" | "authenticated" | ((reader: CardReader) => boolean | Promise<boolean>);

/** Answers requests outside the agents; `undefined`: not found. Its callers are not authenticated. */
export type Routes = (request: Request, facts: RequestFacts) => Response | undefined | Promise<Response | undefined>;

/** Routes and pages at their own path, such as a console's. */
export interface RouteMount {
  /** Their path below `publicUrl`, such as `/console`, with everything below it. It must not be an address of an agent. */
  readonly path: string;
  /**
   * Who may call: callers that the authenticator of the host accepts, or anyone. Default `"authenticated"`. Without an authenticator
   * everyone is anonymous.
   */
  readonly access?: "anyone" | "authenticated";
  /**
   * Answers a request. Its URL has the origin of `publicUrl`. `undefined` is 404. If it throws, the answer is 500 and the log has the cause.
   */
  readonly answer: (request: Request, context: RouteContext) => Response | undefined | Promise<Response | undefined>;
  /**
   * A link to the route on the pages that browsers get at the addresses of agents. Its `href` is relative to `publicUrl`.
   *
   * @param agent - Id of the agent of the page. `undefined`: the page lists several.
   */
  readonly link?: (agent: string | undefined) => PageLink;
}

/** A link on a page for browsers. */
export interface PageLink {
  readonly text: string;
  readonly href: string;
}

/** The context of a request to a route. */
export interface RouteContext {
  /** Path of the request below the mount: `""`, or a path that starts with a slash. */
  readonly below: string;
  /** The caller. `anonymous` with `access: "anyone"`. */
  readonly principal: Principal;
  /** Facts about the client, such as its address. */
  readonly facts: RequestFacts;
  /** Aborted when the host starts to close. End streams then. */
  readonly closing: AbortSignal;
  /** The served agents whose cards the sender of the request may read. */
  agents(): Promise<readonly ServedAgent[]>;
  /**
   * A page in the style of the host's pages, with headers that forbid scripts.
   *
   * @param title - Plain text.
   * @param content - HTML. Escape untrusted text.
   */
  page(title: string, content: string): Promise<Response>;
}

/** Options of `createHost`. `Version`: the names of all versions of the protocol. */
export interface HostOptions<Version extends string = string> extends Pick<
  EngineOptions,
  "audit" | "clock" | "extensions" | "logger" | "observer"
> {
  /**
   * The URL of this handler for clients, such as `https://agents.example.com`. Cards contain it. It is never taken from a
   * request, because anyone can forge its headers. The path of this URL is the prefix of every path that the handler answers.
   */
  readonly publicUrl: string;
  /** The prefix of every path that the handler answers, if a proxy removes or adds a path. Default: the path of `publicUrl`. */
  readonly basePath?: string;
  /** The bindings, in the order of the cards. Default: `[jsonRpcBinding(), restBinding()]`. */
  readonly bindings?: readonly ServerBinding[];
  /** Finds the caller of a request. Absent: all callers are the same anonymous principal. */
  readonly authenticator?: Authenticator;
  /**
   * Finds the skill that a message is for. The server rejects callers that do not satisfy the `securityRequirements` of that skill. Default:
   * `metadata.skillId` of the message.
   */
  readonly skillOf?: SkillOf;
  /** Authorizes calls, after the authenticator and before the interceptors. Absent: everything is allowed. */
  readonly authorizer?: Authorizer;
  /**
   * Host names that requests may use (`agents.internal`; ports are not compared), in addition to loopback names and the host
   * of `publicUrl`. Requests to other hosts get 403. Requests from pages of other hosts also get 403, unless `cors` allows
   * them. An element `"*"` allows any host. Default: any.
   */
  readonly allowedHosts?: readonly string[];
  /** For `fetch`: returns the runtime's or framework's facts about a client. Called when an authenticator reads them. Default: none. */
  readonly facts?: FetchFacts;
  /** The pages of other origins that may call. `true`: any. Default: none. */
  readonly cors?: CorsOptions | boolean;
  /** Versions of the protocol to speak, the preferred one first. Default: all. */
  readonly versions?: readonly Version[];
  /**
   * Treats a request without a version as version 0.3 (A2A 1.0 §3.6.2), and rejects it if the server does not speak
   * 0.3. Default: its method or path determines the version.
   */
  readonly strictVersion?: boolean;
  /** Interceptors around every service. The first one is the outermost. Default: none. */
  readonly interceptors?: readonly Interceptor[];
  /** Limits in bytes and counts. */
  readonly limits?: HostLimits;
  /** Time between two keep-alive comments on an open stream, in milliseconds. Default 15 s. */
  readonly keepAlive?: number;
  /** How long clients may cache a card, in seconds. Default 300. A card with restricted readers is revalidated at each use. */
  readonly cardMaxAge?: number;
  /**
   * Who may read the public cards and the pages that show them: `"anyone"`, `"authenticated"`, or a function that decides by the caller.
   * Callers authenticate as for calls. Default `"anyone"`.
   */
  readonly cardReaders?: CardReaders;
  /** Signs the cards, including extended ones (A2A 1.0 §8.4). Default: they are not signed. */
  readonly signCards?: SignCards;
  /**
   * Health checks for orchestrators and load balancers: `/healthz` and `/readyz`, or other paths. They are at the root of the
   * host, even if `publicUrl` has a path. Probes need no credentials, may name any host and are not rate limited. Default
   * false; with `serve()` true.
   */
  readonly health?: boolean | HealthOptions;
  /**
   * Shows browsers a page at the addresses of the agents, with the public card and how to call the agent. Other clients and POST
   * requests are not affected. Default true.
   */
  readonly page?: boolean;
  /**
   * Routes and pages of the application: routes at their own paths, behind the authenticator, or a function that gets
   * all requests for unknown paths. The function authenticates its callers itself. Default: none.
   */
  readonly routes?: Routes | readonly RouteMount[];
}

/**
 * Passes work to the platform, which keeps it running after the answer. `platform`: the further arguments of the runtime's call of
 * `fetch`.
 *
 * @param work - Resolves when no work is running anymore. Never rejects.
 *
 * @example
 * ```ts
 * const inWorkers: WaitUntil = (work, _env, ctx) => (ctx as { waitUntil(work: Promise<void>): void }).waitUntil(work);
 * ```
 */
export type WaitUntil = (work: Promise<void>, ...platform: readonly unknown[]) => void;

/** The REST API of operators, who see and change the tasks of all owners. */
export interface OperatorOptions {
  /** Its path below `publicUrl`. Default `/ops`. */
  readonly path?: string;
  /**
   * Authenticates operators, independently of the agents' callers. Default: anyone who opens a direct connection from this machine is
   * an operator. The server rejects this default unless `publicUrl` is a loopback address.
   */
  readonly authenticator?: Authenticator;
  /** Authorizes operators. Only `true` allows the request. Required with `authenticator`. Default: everything is allowed. */
  readonly authorize?: (request: OperatorRequest) => boolean | Promise<boolean>;
}

/** Options of `createHandler`. */
export interface HandlerOptions<Version extends string = string>
  extends
    Omit<EngineOptions, "agents" | "files" | "inTask" | "limits" | "outbox" | "push">,
    Omit<HostOptions<Version>, "limits"> {
  /**
   * For `fetch` on platforms that run code only for requests: Workers, and functions that are frozen after their answer. Called for each
   * request, with a promise that resolves when its answer is written and no turn or webhook delivery is running.
   * Pass the promise to the platform. The handler then does nothing before its first request or `wake()`, so you can create it
   * at the top of a module, and it renews leases only while such a promise is pending. Default: the process runs all the time.
   */
  readonly waitUntil?: WaitUntil;
  /**
   * Lets callers register webhooks for their tasks (A2A 1.0 §4.3). Cards then declare `pushNotifications`, unless the agent's
   * capabilities set it to false. Default false.
   */
  readonly push?: boolean | PushOptions;
  /** How agents get authorizations for their tasks, by `turn.authorize()` (A2A 1.0 §7.6). */
  readonly authorization?: InTaskOptions;
  /**
   * Stores large files of messages and artifacts outside the database. Answers contain links to them, or the files themselves if a
   * client requests that. Default: all files are in the database, within `limits.eventBytes` and `limits.taskBytes`.
   */
  readonly blobs?: BlobOptions;
  /**
   * A REST API for operators, who see and control the tasks of all owners (docs/operate.md). `true`: only for processes of this
   * machine; the server rejects this unless `publicUrl` is a loopback address. Default false.
   */
  readonly operators?: boolean | OperatorOptions;
  /** Limits in bytes and counts. */
  readonly limits?: HandlerLimits;
}
