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
  /** URL of its base. Unless `AgentMount.interfaces` says otherwise, JSON-RPC is posted here, and the paths of REST begin here. */
  readonly url: string;
  /** Its tenant, if agents have the same path. */
  readonly tenant?: string;
  /** URL of its card. */
  readonly cardUrl: string;
  /** Its public card. */
  readonly card: AgentCard;
}

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
  /** Makes the card for authenticated callers from the public card (A2A 1.0 §3.1.11). Needs an authenticator. Default: no extended card. */
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
   * At least twice `bodyBytes`. When it is full, large bodies wait for room for up to 10 seconds, then fail (`Unavailable`).
   * A quarter is reserved for bodies of up to 64 KiB.
   */
  readonly unfinishedBytes?: number;
  /**
   * Memory of all large answers until their readers have taken them, in bytes. An answer counts twice its JSON, and four times
   * where it is converted, as for 0.3 and gRPC. Tasks and pages of up to 256 KiB are not counted. Default 128 MiB. A caller gets
   * half of it at most, and a single answer always fits. When it is full, up to a hundred answers wait for 10 seconds; any other
   * fails (`Unavailable`).
   */
  readonly answerBytes?: number;
  /** Deepest nesting of a request. Default 64. */
  readonly depth?: number;
  /** Maximum open streams of one caller. Further ones fail (`TooManyRequests`). Default: no limit. */
  readonly streamsPerCaller?: number;
  /** How many requests a caller may send in how much time. Default: no limit. */
  readonly rate?: RateLimits;
}

/** Limits of a handler: those of its host and of its engine. */
export interface HandlerLimits extends EngineLimits, HostLimits {}

/**
 * How a server signs its cards. The public keys are published at `/.well-known/card-keys.json` below `publicUrl`, which the signatures
 * name as `jku`.
 */
export interface SignCards {
  /** The keys, as `makeCardKey()` makes them. Each of them signs each card, so that a new key can be added before an old one goes. */
  readonly keys: readonly PrivateCardKey[];
  /** Public keys of earlier times, which stay published as long as clients keep cards that these have signed. Default: none. */
  readonly retired?: readonly PublicCardKey[];
  /** See `SignCardOptions.reduced`. Default true. */
  readonly reduced?: boolean;
}

/** A caller who asks for the public card of an agent. */
export interface CardReader {
  /** The caller that the authenticator returned. `anonymous` if `anyone()` is among the authenticators and the caller is unknown. */
  readonly principal: Principal;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
}

/**
 * Who may read the public cards.
 * - `anyone`: all who reach the server.
 * - `authenticated`: callers that the authenticator accepts for the agent. Others get 401.
 * - a function: of these callers, those for which it returns true. Others get 403; unauthenticated ones get 401.
 */
export type CardReaders = "anyone" | "authenticated" | ((reader: CardReader) => boolean | Promise<boolean>);

/** Answers a request of the application; `undefined`: it has nothing there. Its callers are not authenticated. */
export type Routes = (request: Request, facts: RequestFacts) => Response | undefined | Promise<Response | undefined>;

/** Routes and pages at a path of their own, such as those of a console. */
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

/** What a route gets in addition to its request. */
export interface RouteContext {
  /** Path of the request below that of the mount: `""`, or a slash and more. */
  readonly below: string;
  /** Who calls. `anonymous` with `access: "anyone"`. */
  readonly principal: Principal;
  /** What the host knows of the client, such as its address. */
  readonly facts: RequestFacts;
  /** Aborted when the host begins to close. End streams then. */
  readonly closing: AbortSignal;
  /** The agents that the host serves now, without those whose cards the sender of the request may not read. */
  agents(): Promise<readonly ServedAgent[]>;
  /**
   * A page in the style of the host's own, with headers that allow it no script.
   *
   * @param title - Plain text.
   * @param content - HTML: escape what others have written.
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
   * request, because anyone can write its headers. The path of this URL is before every path that the handler answers.
   */
  readonly publicUrl: string;
  /** The path before every path that the handler answers, if a proxy removes or adds a path. Default: that of `publicUrl`. */
  readonly basePath?: string;
  /** The bindings, in the order of the cards. Default: `[jsonRpcBinding(), restBinding()]`. */
  readonly bindings?: readonly ServerBinding[];
  /** Finds the caller of a request. Absent: everyone is the same anonymous caller. */
  readonly authenticator?: Authenticator;
  /**
   * Finds the skill that a message is for. The server rejects callers that do not satisfy the `securityRequirements` of that skill. Default:
   * `metadata.skillId` of the message.
   */
  readonly skillOf?: SkillOf;
  /** Decides what a caller may do, after the authenticator and before the interceptors. Absent: everything is allowed. */
  readonly authorizer?: Authorizer;
  /**
   * Host names that requests may use (`agents.internal`; ports are not compared), in addition to loopback names and the host of
   * `publicUrl`. Requests to other hosts get 403, and so do requests of pages from other hosts unless `cors` allows
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
   * Routes and pages of the application: routes at their own paths, behind the authenticator, or a function that is asked
   * about each path that belongs to nothing else. The function authenticates its callers itself. Default: nothing.
   */
  readonly routes?: Routes | readonly RouteMount[];
}

/**
 * Passes work to the platform, which lets it run after the answer. `platform` is what the runtime passes to `fetch` in addition to the
 * request.
 *
 * @param work - Resolves when nothing runs here any more. Never rejects.
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
  /** Decides what an operator may do. Anything but `true` refuses. Required with `authenticator`. Default: everything is allowed. */
  readonly authorize?: (request: OperatorRequest) => boolean | Promise<boolean>;
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
  /**
   * A REST API for those who run the server: they see the tasks of all owners, and act on them (docs/operate.md). `true`: only for processes of this
   * machine; the server rejects this unless `publicUrl` is a loopback address. Default false.
   */
  readonly operators?: boolean | OperatorOptions;
  /** Limits in bytes and counts. */
  readonly limits?: HandlerLimits;
}
