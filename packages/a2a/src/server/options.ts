import type { Authenticator, Authorizer } from "../auth/index.ts";
import type { EngineLimits, EngineOptions } from "../engine/index.ts";
import type { AgentCard } from "../model/index.ts";
import type { Agent, Interceptor, Principal, UniversalHandler } from "../protocol/index.ts";
import type { Found, InterfacePaths } from "../transport/router/index.ts";
import type { FetchFacts, FetchHandler } from "./fetch.ts";
import type { CorsOptions, ServerBinding, ServerHost } from "../transport/server/index.ts";

/** An agent and where it is served. */
export interface AgentMount {
  /** The agent. */
  readonly agent: Agent;
  /** Path of its base below `publicUrl`, such as `/weather`. Default: `publicUrl` itself. */
  readonly path?: string;
  /**
   * Where its bindings are below that, by the names that they have on cards: `{ JSONRPC: "/jsonrpc", "HTTP+JSON": "/rest" }`.
   * Default: JSON-RPC is posted to the base itself, and the paths of REST follow it. Agents that share a path share these.
   */
  readonly interfaces?: InterfacePaths;
  /** Further paths below that which its card is found at, such as `/jsonrpc/.well-known/agent-card.json`. */
  readonly cardPaths?: readonly string[];
  /** The protocol's routing label, for agents that share a path (A2A 1.0 §8.3.2). */
  readonly tenant?: string;
  /**
   * Under what name its tasks are stored. Default: its path and tenant; name it before an agent moves, and its tasks
   * move along.
   */
  readonly id?: string;
  /** The card that authenticated callers get (§3.1.11), made of the public one. Needs an authenticator. */
  readonly extendedCard?: (card: AgentCard, principal: Principal) => AgentCard;
}

/** Limits of a handler, with those of the engine. A value must be at least 1. */
export interface HandlerLimits extends EngineLimits {
  /** Largest request body in bytes. Default 10 MiB. */
  readonly bodyBytes?: number;
  /**
   * What all request bodies hold together while they come in, in bytes, whoever sends them and over whatever binding.
   * Default 64 MiB, or four times the largest body where that is more; twice that body is the least. Beyond it large bodies
   * wait for room for up to 10 seconds, or are refused (`Unavailable`); bodies of up to 64 KiB have a quarter for themselves.
   */
  readonly unfinishedBytes?: number;
  /**
   * What all large answers hold together until their readers have taken them, in bytes of memory: twice their JSON, and four
   * times where it is converted, as for 0.3 and gRPC. Default 128 MiB. No caller has more than half of it, an answer alone is
   * always given. Beyond it answers wait for ten seconds, a hundred of them, or are refused (`Unavailable`); tasks and pages of up to 256 KiB
   * are not counted.
   */
  readonly answerBytes?: number;
  /** Deepest nesting of a request. Default 64. */
  readonly depth?: number;
}

/** `Version`: the names of the versions that there are. */
export interface HandlerOptions<Version extends string = string> extends Omit<EngineOptions, "agents" | "limits"> {
  /**
   * The URL that clients reach this handler at, such as `https://agents.example.com`. Cards say it; it is never taken
   * from a request, whose headers anyone can write. A path in it stands before every path that is answered here.
   */
  readonly publicUrl: string;
  /** The path before every path that reaches the handler, where a proxy takes off or adds one. Default: that of `publicUrl`. */
  readonly basePath?: string;
  /** How the agents are spoken to, in the order that cards list them in. Default: `[jsonRpcBinding(), restBinding()]`. */
  readonly bindings?: readonly ServerBinding[];
  /** Who calls. Absent: everyone is the same anonymous caller. */
  readonly authenticator?: Authenticator;
  /** What callers may do. It is asked after the authenticator and before the interceptors. Absent: everything. */
  readonly authorizer?: Authorizer;
  /**
   * Names of hosts that requests may name (`agents.internal`, a port is not compared), beside loopback names and the host of
   * `publicUrl`; others, and pages of others that `cors` does not allow, are refused with 403. `"*"` among them: any. Default: any.
   */
  readonly allowedHosts?: readonly string[];
  /** For `fetch`: what the runtime or the framework knows of a client, for authenticators. Called when one asks. Default: nothing. */
  readonly facts?: FetchFacts;
  /** Which pages of other origins may call; `true`: any. Default: none. */
  readonly cors?: CorsOptions | boolean;
  /** Versions of the protocol to speak, the preferred one first. Default: all. */
  readonly versions?: readonly Version[];
  /** Read requests that name no version as 0.3, as §3.6.2 has it, or refuse them where that is not spoken. Default: their method or path tells. */
  readonly strictVersion?: boolean;
  /** Around every service, the first of them outermost. */
  readonly interceptors?: readonly Interceptor[];
  /** Limits in bytes and counts. */
  readonly limits?: HandlerLimits;
  /** A comment goes out on every open stream this often, in milliseconds. Default 15 s. */
  readonly keepAlive?: number;
  /** How long clients may keep a card without asking again, in seconds. Default 300. */
  readonly cardMaxAge?: number;
}

/** An agent at its address. */
export interface ServedAgent {
  /** Key of its tasks in the store. */
  readonly id: string;
  /** Base URL: unless the mount says otherwise, JSON-RPC is posted here, and REST paths follow. */
  readonly url: string;
  /** Its tenant, where agents share a path. */
  readonly tenant?: string;
  /** Address of its card. */
  readonly cardUrl: string;
  /** Its public card. */
  readonly card: AgentCard;
}

/** Agents that are ready to be served by a host. `createHandler()` makes one. */
export interface Handler {
  /** For hosts: the function that answers. */
  readonly handle: UniversalHandler;
  /** For everything that speaks Fetch: Bun, Deno, Workers, Hono. */
  readonly fetch: FetchHandler;
  /** Whether a URL, as `UniversalRequest` has it, is one of the addresses here, by whatever method: frameworks go on with the others. */
  answers(this: void, url: string): boolean;
  /**
   * For hosts: whose address a URL is, so that a connection can be handed to a binding that takes it over. Who carries the
   * request admits it: see `host.admit`.
   */
  find(this: void, url: string): Found | undefined;
  /** The agents, with their addresses. */
  readonly agents: readonly ServedAgent[];
  /**
   * For bindings beyond HTTP paths, such as gRPC: the agents by a label in place of a path. It is the tenant, below the
   * path where there is one: `weather`, `weather/berlin`; an agent at the root has none.
   */
  readonly host: ServerHost;
  /** Takes nothing new, gives running turns `grace` milliseconds to end, and hands the rest over to whoever comes next. */
  close(options?: { readonly grace?: number }): Promise<void>;
}
