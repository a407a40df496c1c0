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

/** Authorizes callers of a gateway. */
export interface GatewayPolicy {
  /**
   * Whether a caller may announce or withdraw a capability at a path. The owner of a path gets the intents for it, so
   * give each caller its own paths. Default: no caller may.
   */
  mayAnnounce?(principal: Principal, request: AnnounceRequest): boolean | Promise<boolean>;
  /** Whether a caller may read the routes. Default: every caller may. */
  mayReadRoutes?(principal: Principal): boolean | Promise<boolean>;
}

/** Another gateway that learns the routes of this one. `gatewayPeer()` creates one from a client. */
export interface GatewayPeer {
  /** Its name. */
  readonly name: string;
  /** Announces a route. */
  announce(request: AnnounceRequest): Promise<AnnounceResponse>;
  /** Withdraws a route. */
  withdraw(request: WithdrawRequest): Promise<unknown>;
}

/** Options of `agentGateway()`. */
export interface AgentGatewayOptions {
  /** Unique name of the gateway. Gateways use it to detect loops of announcements and intents. */
  readonly name: string;
  /** The path by which peers reach this gateway. Default: its name. */
  readonly path?: string;
  /** Own routes, which never expire. Default: none. */
  readonly routes?: readonly (CapabilityAnnouncement & { readonly path: string })[];
  /** Decides who may announce and read routes. */
  readonly policy?: GatewayPolicy;
  /** Longest lifetime of an announcement, in seconds. Default 300. */
  readonly lifetime?: number;
  /** Maximum number of gateways that an announcement or an intent may pass. Default 8. */
  readonly maxHops?: number;
  /**
   * Refreshes routes by calling `announce()`, if all routes that fit an intent have expired. Runs once at a time, at
   * most every ten seconds. Default: none, and the intent fails with AGP_TABLE_STALE.
   */
  readonly refresh?: (stale: { readonly capability: string }) => Promise<unknown>;
  /** Gateways that learn the routes of this one. Default: none. */
  readonly peers?: readonly GatewayPeer[];
  /** Whether peers also learn routes of others, so that intents pass through this gateway. Default false. */
  readonly transit?: boolean;
  /** Cost added to other announcers' routes when they are announced to peers. Default 0. */
  readonly transitCost?: number;
  /** Largest table, in bytes. Default 1 MiB. Each announcer may use a quarter. */
  readonly tableBytes?: number;
  /** Logs unreachable peers. Default: no log. */
  readonly logger?: Logger;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

/** The result of each part of a delegation, by capability, in the form of the AGP sample. */
export type DelegationReport = Readonly<Record<string, "SUCCESS" | "FAILED">>;

/** The routes of a gateway and its policy. `agentGateway()` creates one. */
export interface AgentGateway {
  /** Its name. */
  readonly name: string;
  /** Maximum number of gateways that an intent may pass. */
  readonly maxHops: number;
  /**
   * Adds or renews a route.
   *
   * @param by - The announcer. Absent: the gateway itself; such a route expires too.
   * @throws A2AError `PermissionDenied`, `TooManyRequests` if the table is full, `InvalidParams` for an invalid shape.
   */
  announce(request: AnnounceRequest, by?: Principal): Promise<AnnounceResponse>;
  /**
   * Removes a route of the same announcer. Returns whether it existed.
   *
   * @throws A2AError `PermissionDenied`.
   */
  withdraw(request: WithdrawRequest, by?: Principal): Promise<boolean>;
  /**
   * All routes, or those to one capability.
   *
   * @throws A2AError `PermissionDenied`.
   */
  routes(capability?: string, by?: Principal): Promise<AgpTable>;
  /**
   * The cheapest route for an intent. If all that fit have expired, refreshes them first.
   *
   * @param visited - Names of the gateways that it passed.
   * @throws A2AError one of `agpErrors`.
   */
  route(intent: IntentPayload, visited?: readonly string[]): Promise<RouteEntry>;
  /**
   * All routes for an intent, cheapest first. The others are alternatives if the agent is unreachable or rejects the
   * intent.
   *
   * @param visited - Names of the gateways that it passed.
   * @throws A2AError one of `agpErrors`.
   */
  routesFor(intent: IntentPayload, visited?: readonly string[]): Promise<readonly RouteEntry[]>;
  /** Whether each part of a delegation has a route. Sends nothing. */
  routeAll(delegation: DelegationIntent): Promise<DelegationReport>;
  /** Announces the routes of this gateway to all peers. Logs unreachable ones. */
  advertise(): Promise<void>;
  /** Calls `advertise()` now and every third of the lifetime, until the returned function is called. */
  start(): () => void;
}
