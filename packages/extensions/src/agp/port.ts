import type { Clock, Logger } from "@parley/a2a/internal/base/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import type {
  AgpTable,
  AnnounceRequest,
  AnnounceResponse,
  CapabilityAnnouncement,
  DelegationIntent,
  IntentPayload,
  RouteEntry,
  WithdrawRequest,
} from "./shapes.ts";

/* What a gateway is, and what it takes. */

/** Who may do what at a gateway. */
export interface GatewayPolicy {
  /**
   * Whether a caller may announce, or withdraw, a capability under a path. Who may announce a path gets the intents for it, so each caller should
   * have paths of its own. Default: nobody may.
   */
  mayAnnounce?(principal: Principal, request: AnnounceRequest): boolean | Promise<boolean>;
  /** Whether a caller may read the routes. Default: everybody may. */
  mayReadRoutes?(principal: Principal): boolean | Promise<boolean>;
}

/** Another gateway that this one tells its routes. `gatewayPeer()` makes one of a client. */
export interface GatewayPeer {
  /** Its name. */
  readonly name: string;
  /** Tells it a route. */
  announce(request: AnnounceRequest): Promise<AnnounceResponse>;
  /** Takes a route back. */
  withdraw(request: WithdrawRequest): Promise<unknown>;
}

/** Options of `agentGateway()`. */
export interface AgentGatewayOptions {
  /** Name of the gateway, which no other has: announcements and intents that come in a circle are known by it. */
  readonly name: string;
  /** The path under which peers reach this gateway. Default: its name. */
  readonly path?: string;
  /** Routes of its own, which never expire. Default: none. */
  readonly routes?: readonly (CapabilityAnnouncement & { readonly path: string })[];
  /** Who may announce, and who may read. */
  readonly policy?: GatewayPolicy;
  /** How long an announcement holds, in seconds, where it does not say less. Default 300. */
  readonly lifetime?: number;
  /** Most gateways that an announcement or an intent may come through. Default 8. */
  readonly maxHops?: number;
  /**
   * Reads routes anew, where the only ones that fit an intent have expired: it calls `announce()` of the gateway. It runs once at a time, and at
   * most every ten seconds. Default: nothing is read, and the intent is refused with AGP_TABLE_STALE.
   */
  readonly refresh?: (stale: { readonly capability: string }) => Promise<unknown>;
  /** Gateways that are told the routes of this one. Default: none. */
  readonly peers?: readonly GatewayPeer[];
  /**
   * Whether peers are also told routes that others have announced, so that intents pass through this gateway. Default false: they are told its own
   * routes alone.
   */
  readonly transit?: boolean;
  /** What is added to the cost of a route that others have announced, when peers are told it. Default 0. */
  readonly transitCost?: number;
  /** Largest table, in bytes. Default 1 MiB. A quarter of it is for each announcer. */
  readonly tableBytes?: number;
  /** Logs peers that cannot be told. Default: nothing is logged. */
  readonly logger?: Logger;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}

/** How a delegation was routed: each part by its capability, as the sample of AGP reports it. */
export type DelegationReport = Readonly<Record<string, "SUCCESS" | "FAILED">>;

/** The routes of a gateway, and what decides about them. `agentGateway()` makes one. */
export interface AgentGateway {
  /** Its name. */
  readonly name: string;
  /** Most gateways that an intent may come through. */
  readonly maxHops: number;
  /**
   * Adds or renews a route.
   *
   * @param by - Who has announced it. Absent: the gateway itself; such a route holds for its lifetime too.
   * @throws A2AError `PermissionDenied` where the caller may not, `TooManyRequests` where the table is full, `InvalidParams` for a wrong shape.
   */
  announce(request: AnnounceRequest, by?: Principal): Promise<AnnounceResponse>;
  /**
   * Removes a route that the same caller has announced. Returns whether there was one.
   *
   * @throws A2AError `PermissionDenied` where the caller may not.
   */
  withdraw(request: WithdrawRequest, by?: Principal): Promise<boolean>;
  /**
   * The routes, those of one capability or all.
   *
   * @throws A2AError `PermissionDenied` where the caller may not read them.
   */
  routes(capability?: string, by?: Principal): Promise<AgpTable>;
  /**
   * The route for an intent. Where the only ones that fit have expired, they are refreshed first.
   *
   * @param visited - Names of the gateways that it came through.
   * @throws A2AError an error of AGP, see `agpErrors`.
   */
  route(intent: IntentPayload, visited?: readonly string[]): Promise<RouteEntry>;
  /**
   * All routes for an intent, the cheapest first: `route()` gives the first one. The others are for where its agent is away, or refuses the intent.
   *
   * @param visited - Names of the gateways that it came through.
   * @throws A2AError an error of AGP, see `agpErrors`.
   */
  routesFor(intent: IntentPayload, visited?: readonly string[]): Promise<readonly RouteEntry[]>;
  /** Whether there is a route for each part of a delegation. Nothing is sent. */
  routeAll(delegation: DelegationIntent): Promise<DelegationReport>;
  /** Tells all peers the routes of this gateway. A peer that cannot be told is logged. */
  advertise(): Promise<void>;
  /** Tells the peers now, and again in each third of the lifetime. The returned function stops that. */
  start(): () => void;
}
