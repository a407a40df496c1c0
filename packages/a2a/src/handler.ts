import type { Authenticator } from "./auth/index.ts";
import { silentLogger, systemClock, type Clock } from "./base/index.ts";
import { createEngine, type EngineLimits, type EngineOptions } from "./engine/index.ts";
import { toFetch } from "./fetch-host.ts";
import { invalidParams, A2AError, type AgentCapabilities, type AgentCard, type AgentExtension } from "./model/index.ts";
import {
  anonymous,
  ByteBudget,
  idempotentSendExtension,
  intercept,
  operations,
  resumeExtension,
  type Agent,
  type Interceptor,
  type Principal,
  type UniversalHandler,
} from "./protocol/index.ts";
import { buildCard, cardPath, type InterfacePaths } from "./transport/discovery/handler.ts";
import { withoutSlashes } from "./transport/http/index.ts";
import {
  admission,
  knownUrls,
  routeServices,
  Unfinished,
  type CorsOptions,
  type ServiceMount,
} from "./transport/server/handler.ts";
import type { ServerHost } from "./transport/server/host.ts";
import { KeepAlive } from "./transport/server/keep-alive.ts";
import type { Codec } from "./wire/codec.ts";
import { codecV11, wires, type ProtocolVersion } from "./wires.ts";

export type { CorsOptions, InterfacePaths, ProtocolVersion };

/** An agent and where it is served. */
export interface AgentMount {
  readonly agent: Agent;
  /** Path of its base below `publicUrl`, such as `/weather`. Default: `publicUrl` itself. */
  readonly path?: string;
  /**
   * Where its bindings are below that: `{ jsonrpc: "/jsonrpc", rest: "/rest" }`, as its card then says. Default: JSON-RPC is
   * posted to the base itself, and the paths of REST follow it. Agents that share a path share these.
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

export interface HandlerOptions extends Omit<EngineOptions, "agents" | "limits"> {
  /**
   * The URL that clients reach this handler at, such as `https://agents.example.com`. Cards say it; it is never taken
   * from a request, whose headers anyone can write. A path in it stands before every path that is answered here.
   */
  readonly publicUrl: string;
  /** The path before every path that reaches the handler, where a proxy takes off or adds one. Default: that of `publicUrl`. */
  readonly basePath?: string;
  /** Who calls. Absent: everyone is the same anonymous caller. */
  readonly authenticator?: Authenticator;
  /**
   * Names of hosts that requests may name (`agents.internal`, a port is not compared), beside loopback names and the host of
   * `publicUrl`; others, and pages of others that `cors` does not allow, are refused with 403. `"*"` among them: any. Default: any.
   */
  readonly allowedHosts?: readonly string[];
  /** Which pages of other origins may call; `true`: any. Default: none. */
  readonly cors?: CorsOptions | boolean;
  /** Versions of the protocol to speak, the preferred one first. Default: all. */
  readonly versions?: readonly ProtocolVersion[];
  /** Where a host speaks gRPC for these agents, as cards say it: `agents.example.com:443`. Default: nowhere. */
  readonly grpc?: { readonly url: string };
  /** Read requests that name no version as 0.3, as §3.6.2 has it, or refuse them where that is not spoken. Default: their method or path tells. */
  readonly strictVersion?: boolean;
  /** Around every service, the first of them outermost. */
  readonly interceptors?: readonly Interceptor[];
  readonly limits?: HandlerLimits;
  /** A comment goes out on every open stream this often, in milliseconds. Default 15 s. */
  readonly keepAlive?: number;
  /** How long clients may keep a card without asking again, in seconds. Default 300. */
  readonly cardMaxAge?: number;
}

/** An agent at its address. */
export interface ServedAgent {
  readonly id: string;
  /** Base URL: unless the mount says otherwise, JSON-RPC is posted here, and REST paths follow. */
  readonly url: string;
  readonly tenant?: string;
  readonly cardUrl: string;
  readonly card: AgentCard;
}

export interface Handler {
  /** For hosts: the function that answers. */
  readonly handle: UniversalHandler;
  /** For everything that speaks Fetch: Bun, Deno, Workers, Hono. */
  fetch(this: void, request: Request): Promise<Response>;
  /** Whether a URL, as `UniversalRequest` has it, is one of the addresses here, by whatever method: frameworks go on with the others. */
  answers(this: void, url: string): boolean;
  readonly agents: readonly ServedAgent[];
  /**
   * For bindings beyond HTTP paths, such as gRPC: the agents by a label in place of a path. It is the tenant, below the
   * path where there is one: `weather`, `weather/berlin`; an agent at the root has none.
   */
  readonly host: ServerHost;
  /** Takes nothing new, gives running turns `grace` milliseconds to end, and hands the rest over to whoever comes next. */
  close(options?: { readonly grace?: number }): Promise<void>;
}

/** Understood wherever the version that they grow from is, and on no card. */
const drafts: Readonly<Partial<Record<ProtocolVersion, Codec>>> = { "1.0": codecV11 };

/**
 * Serves agents over every binding at once.
 *
 * @throws A2AError `InvalidParams` when `publicUrl` is missing, or when two agents would have one address or one id.
 */
export function createHandler(agents: Agent | AgentMount | readonly AgentMount[], options: HandlerOptions): Handler {
  const { authenticator, interceptors = [], logger = silentLogger, clock = systemClock, cors } = options;
  const [first, ...others] = codecsOf(options);
  const codecs = [first, ...others, ...draftsOf([first, ...others])] as const;
  checkLimits(options.limits);
  const {
    bodyBytes = 10 << 20,
    depth = 64,
    unfinishedBytes,
    answerBytes = 128 << 20,
    ...engineLimits
  } = options.limits ?? {};
  const answers = new ByteBudget(answerBytes, clock, "The server is busy with other large answers");
  const publicUrl = readPublicUrl(options.publicUrl);
  const basePath = withoutSlash(options.basePath ?? publicUrl.pathname);
  const mounts = mountsOf(agents);
  const served = mounts.map((mount) => serveAt(withoutSlash(publicUrl.href), mount, options));
  checkIds(served.map(({ id }) => id));
  const engine = createEngine({
    ...options,
    limits: engineLimits,
    agents: mounts.map(({ agent, extendedCard }, at) => {
      const { id, card } = served[at] as ServedAgent;
      return {
        id,
        agent,
        card,
        ...(extendedCard !== undefined && { extendedCard: (principal: Principal) => extendedCard(card, principal) }),
      };
    }),
  });
  const services = mounts.map(({ path = "", tenant, interfaces, cardPaths }, at): ServiceMount => {
    const { id, card } = served[at] as ServedAgent;
    const service = intercept(engine.service(id), interceptors);
    return {
      path: basePath + withoutSlash(path),
      ...(tenant !== undefined && { tenant }),
      ...(interfaces !== undefined && { interfaces: tidy(interfaces) }),
      ...(cardPaths !== undefined && { cardPaths }),
      service,
      card,
    };
  });
  const admit = options.allowedHosts && admission([publicUrl.host, ...options.allowedHosts], originsOf(cors));
  const host: ServerHost = {
    codecs,
    operations,
    services: new Map(services.map(({ service }, at) => [labelOf(mounts[at] as AgentMount), service])),
    authenticate: authenticator === undefined ? () => anonymous : (request) => authenticator.authenticate(request),
    limits: { bodyBytes, depth, unfinished: unfinishedBodies(bodyBytes, unfinishedBytes, clock), answers },
    ...(admit !== undefined && { admit }),
    strictVersion: options.strictVersion ?? false,
    keepAlive: new KeepAlive(clock, options.keepAlive ?? 15_000),
    clock,
    logger,
    ...(cors !== undefined && cors !== false && { cors }),
  };
  const handle = routeServices(services, {
    ...host,
    maxAge: options.cardMaxAge ?? 300,
  });
  return {
    handle,
    host,
    fetch: toFetch(handle),
    answers: knownUrls(services, { codecs }),
    agents: served,
    close(closing) {
      answers.close(new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 }));
      return engine.close(closing);
    },
  };
}

/** The types forbid anything else; who writes JavaScript, or passes what a module did not export, hears it here. */
function mountsOf(agents: Agent | AgentMount | readonly AgentMount[]): readonly AgentMount[] {
  const mounts: readonly (Partial<AgentMount> | null | undefined)[] = isAgent(agents)
    ? [{ agent: agents }]
    : Array.isArray(agents)
      ? agents
      : [agents as Partial<AgentMount> | undefined];
  if (mounts.every((mount): mount is AgentMount => isAgent(mount?.agent))) return mounts;
  throw refuse("agent", 'is none: give what defineAgent() makes, or a list of mounts: [{ agent, path: "/weather" }]');
}

function isAgent(value: unknown): value is Agent {
  return typeof value === "object" && value !== null && "execute" in value;
}

function serveAt(publicUrl: string, mount: AgentMount, options: HandlerOptions): ServedAgent {
  const { agent, path = "", interfaces, tenant, id, extendedCard } = mount;
  const { authenticator, dedupe } = options;
  // The types forbid it; who writes JavaScript hears it here.
  if ((agent.capabilities as AgentCapabilities | undefined)?.pushNotifications === true) {
    throw refuse("capabilities.pushNotifications", "cannot be declared: this server sends no webhooks");
  }
  if (extendedCard !== undefined && authenticator === undefined) {
    throw refuse("extendedCard", "needs an authenticator: it is not for everyone (A2A 1.0 §3.1.11)");
  }
  const url = publicUrl + withoutSlash(path);
  const prefix = tenant === undefined ? "" : `/${encodeURIComponent(tenant)}`;
  const label = labelOf(mount);
  const extensions: AgentExtension[] = [];
  if (agent.capabilities?.streaming ?? true) {
    extensions.push({ uri: resumeExtension, description: "Streams continue after Last-Event-ID" });
  }
  if (dedupe !== false) {
    extensions.push({
      uri: idempotentSendExtension,
      description: "A send repeated with its messageId and content joins the first one",
    });
  }
  const card = buildCard(agent, {
    url,
    ...(interfaces !== undefined && { interfaces: tidy(interfaces) }),
    ...(tenant !== undefined && { tenant }),
    versions: codecsOf(options),
    ...(options.grpc !== undefined && { grpc: { ...options.grpc, ...(label !== undefined && { tenant: label }) } }),
    ...(authenticator !== undefined && {
      securitySchemes: authenticator.securitySchemes,
      securityRequirements: authenticator.securityRequirements,
    }),
    extendedCard: extendedCard !== undefined,
    extensions,
  });
  return {
    id: id ?? `${withoutSlash(path) || "/"}${prefix}`,
    url,
    ...(tenant !== undefined && { tenant }),
    cardUrl: `${url}${prefix}${cardPath}`,
    card,
  };
}

function codecsOf({
  versions = Object.keys(wires) as ProtocolVersion[],
}: HandlerOptions): readonly [Codec, ...Codec[]] {
  const [first, ...others] = versions.map((version) => {
    if (Object.hasOwn(wires, version)) return wires[version];
    throw refuse(
      "versions",
      `cannot have ${JSON.stringify(version)}: ${Object.keys(wires).join(" and ")} are spoken here`,
    );
  });
  if (first === undefined) throw refuse("versions", "must name one at least");
  return [first, ...others];
}

/** A bound that is no number bounds nothing, and one below 1 lets nothing through. */
function checkLimits(limits: HandlerLimits = {}): void {
  for (const [name, value] of Object.entries(limits) as [string, unknown][]) {
    if (value === undefined || (typeof value === "number" && value >= 1)) continue;
    throw refuse(`limits.${name}`, `must be a number of at least 1, and is ${JSON.stringify(value)}`);
  }
}

function unfinishedBodies(largest: number, bytes = Math.max(64 << 20, 4 * largest), clock: Clock): Unfinished {
  if (bytes >= 2 * largest) return new Unfinished(bytes, largest, clock);
  throw refuse("limits.unfinishedBytes", `must be twice \`limits.bodyBytes\` at least, which is ${largest}`);
}

function originsOf(cors: CorsOptions | boolean = false): "*" | readonly string[] {
  return typeof cors === "object" ? cors.origins : cors ? "*" : [];
}

function draftsOf(codecs: readonly Codec[]): readonly Codec[] {
  return codecs.flatMap(({ version }) => drafts[version as ProtocolVersion] ?? []);
}

/** What stands for an agent's address where there are no paths. */
function labelOf({ path = "", tenant }: AgentMount): string | undefined {
  const label = [withoutSlash(path).slice(1), tenant ?? ""].filter((part) => part !== "").join("/");
  return label === "" ? undefined : label;
}

function checkIds(ids: readonly string[]): void {
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice === undefined) return;
  throw refuse("id", `${JSON.stringify(twice)} is the name of two agents, whose tasks could not be told apart`);
}

function readPublicUrl(text: unknown): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  const isBase = url !== undefined && /^https?:$/.test(url.protocol) && url.search + url.hash + url.username === "";
  if (url !== undefined && isBase) return url;
  throw refuse(
    "publicUrl",
    'is required: the address that clients reach this server at, such as "https://agents.example.com". ' +
      "Cards must say it, and a request's own headers cannot be trusted with it",
  );
}

function refuse(field: string, description: string): A2AError {
  return invalidParams([{ field, description }], `This cannot be served: ${field} ${description}`);
}

function tidy({ jsonrpc = "", rest = "" }: InterfacePaths): InterfacePaths {
  return { jsonrpc: withoutSlash(jsonrpc), rest: withoutSlash(rest) };
}

function withoutSlash(path: string): string {
  return withoutSlashes(path);
}
