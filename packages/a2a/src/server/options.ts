import type { Authenticator, Authorizer } from "../auth/index.ts";
import type { EngineLimits, EngineOptions } from "../engine/index.ts";
import type { AgentCard } from "../model/index.ts";
import type { Agent, Interceptor, Principal, UniversalHandler } from "../protocol/index.ts";
import type { InterfacePaths } from "../transport/router/claims.ts";
import type { Found } from "../transport/router/router.ts";
import { cannotServe, type ServerBinding, type ServerHost } from "../transport/server/binding.ts";
import type { CorsOptions } from "../transport/server/cors.ts";
import { Unfinished } from "../transport/server/unfinished.ts";
import type { FetchFacts, FetchHandler } from "./fetch.ts";
import type { Clock } from "../base/index.ts";
import type { Codec } from "../wire/codec.ts";

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

/** The types forbid anything else; who writes JavaScript, or passes what a module did not export, hears it here. */
export function mountsOf(agents: Agent | AgentMount | readonly AgentMount[]): readonly AgentMount[] {
  const mounts: readonly (Partial<AgentMount> | null | undefined)[] = isAgent(agents)
    ? [{ agent: agents }]
    : Array.isArray(agents)
      ? agents
      : [agents as Partial<AgentMount> | undefined];
  if (mounts.every((mount): mount is AgentMount => isAgent(mount?.agent))) return mounts;
  throw cannotServe(
    "agent",
    'is none: give what defineAgent() makes, or a list of mounts: [{ agent, path: "/weather" }]',
  );
}

function isAgent(value: unknown): value is Agent {
  return typeof value === "object" && value !== null && "execute" in value;
}

/** The codecs of the versions that are asked for, the preferred one first. */
export function codecsOf<T extends Codec>(
  wires: Readonly<Record<string, T>>,
  versions: readonly string[] = Object.keys(wires),
): readonly [T, ...T[]] {
  const [first, ...others] = versions.map((version) => {
    const codec = Object.hasOwn(wires, version) ? wires[version] : undefined;
    if (codec !== undefined) return codec;
    const known = Object.keys(wires).join(" and ");
    throw cannotServe("versions", `cannot have ${JSON.stringify(version)}: ${known} are spoken here`);
  });
  if (first === undefined) throw cannotServe("versions", "must name one at least");
  return [first, ...others];
}

/** A bound that is no number bounds nothing, and one below 1 lets nothing through. */
export function checkLimits(limits: HandlerLimits = {}): void {
  for (const [name, value] of Object.entries(limits) as [string, unknown][]) {
    if (value === undefined || (typeof value === "number" && value >= 1)) continue;
    throw cannotServe(`limits.${name}`, `must be a number of at least 1, and is ${JSON.stringify(value)}`);
  }
}

/** The budget of request bodies that come in: `bytes` for all, in bytes, where one may have `largest`. Default: 64 MiB, or four of the largest. */
export function unfinishedBodies(largest: number, bytes: number | undefined, clock: Clock): Unfinished {
  const all = bytes ?? Math.max(64 << 20, 4 * largest);
  if (all >= 2 * largest) return new Unfinished(all, largest, clock);
  throw cannotServe("limits.unfinishedBytes", `must be twice \`limits.bodyBytes\` at least, which is ${largest}`);
}

/** Pages that may call, as host admission compares them. */
export function originsOf(cors: CorsOptions | boolean): "*" | readonly string[] {
  return typeof cors === "object" ? cors.origins : cors ? "*" : [];
}

export function checkIds(ids: readonly string[]): void {
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice === undefined) return;
  throw cannotServe("id", `${JSON.stringify(twice)} is the name of two agents, whose tasks could not be told apart`);
}

export function readPublicUrl(text: unknown): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  const isBase = url !== undefined && /^https?:$/.test(url.protocol) && url.search + url.hash + url.username === "";
  if (url !== undefined && isBase) return url;
  throw cannotServe(
    "publicUrl",
    'is required: the address that clients reach this server at, such as "https://agents.example.com". ' +
      "Cards must say it, and a request's own headers cannot be trusted with it",
  );
}
