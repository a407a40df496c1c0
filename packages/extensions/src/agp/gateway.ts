import { type Clock, type Logger, silentLogger, systemClock } from "@parley/a2a/internal/base/index";
import { A2AError, invalidParams, type StandardSchema } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import {
  agpErrors,
  agpSchemas,
  type AgpTable,
  type AnnounceRequest,
  type AnnounceResponse,
  type CapabilityAnnouncement,
  type DelegationIntent,
  type IntentPayload,
  type RouteEntry,
  type WithdrawRequest,
} from "./shapes.ts";
import type { AgentGateway, AgentGatewayOptions, DelegationReport, GatewayPeer } from "./port.ts";
import { type Route, RouteTable } from "./table.ts";
import type { AgpTypes } from "./extension.ts";

/** Minimum time between refreshes, in milliseconds, so that callers cannot make a gateway call others all the time. */
const cooldown = 10_000;

/** Longest time between rounds of announcements, in milliseconds: a day. A timer of more than 24 days would fire immediately. */
const longestWait = 24 * 60 * 60_000;

/**
 * Creates a gateway: a table of routes that groups of agents ("squads") announce (AGP §3).
 *
 * @throws A2AError `InvalidParams` for an invalid option.
 *
 * @example
 * ```ts
 * const gateway = agentGateway({
 *   name: "Corporate",
 *   policy: { mayAnnounce: ({ subject }, { path }) => path.startsWith(`${subject}/`) },
 * });
 * await gateway.announce({ announcement: { capability: "infra:provision", version: "1.0", cost: 0.1, policy: {} }, path: "Engineering/vm" });
 * ```
 */
export function agentGateway(options: AgentGatewayOptions): AgentGateway {
  return new Gateway(options);
}

class Gateway implements AgentGateway {
  readonly name: string;
  readonly maxHops: number;
  readonly #options: AgentGatewayOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #table: RouteTable;
  readonly #lifetime: number;
  readonly #telling = new Telling((capability, via) => this.#tellNow(capability, via));
  #refreshing: Promise<void> | undefined;
  #refreshed = -Infinity;
  #sequence = 0;

  constructor(options: AgentGatewayOptions) {
    const { name, lifetime = 300, maxHops = 8, tableBytes = 1 << 20, transitCost = 0, clock = systemClock } = options;
    const wrong = [
      typeof name === "string" && name !== "" && name.length <= 256
        ? undefined
        : ["name", "must be 1 to 256 characters"],
      lifetime > 0 ? undefined : ["lifetime", "must be more than 0 seconds"],
      Number.isInteger(maxHops) && maxHops > 0 ? undefined : ["maxHops", "must be a whole number, 1 or more"],
      tableBytes > 0 ? undefined : ["tableBytes", "must be more than 0"],
      Number.isFinite(transitCost) && transitCost >= 0 ? undefined : ["transitCost", "must be a number, 0 or more"],
    ].filter((each) => each !== undefined);
    if (wrong.length > 0) throw invalidParams(wrong.map(([field = "", description = ""]) => ({ field, description })));
    this.name = name;
    this.maxHops = maxHops;
    this.#options = options;
    this.#clock = clock;
    this.#logger = options.logger ?? silentLogger;
    this.#lifetime = lifetime * 1000;
    this.#table = new RouteTable({ bytes: tableBytes, bytesPerAnnouncer: tableBytes / 4 }, clock);
    for (const { path, ...announcement } of options.routes ?? []) {
      this.#table.add({ announcement: checked(announcement), path, by: undefined, via: [], lifetime: Infinity });
    }
  }

  async announce(request: AnnounceRequest, by?: Principal): Promise<AnnounceResponse> {
    const { path, via = [], expires_in: asked = Infinity, sequence } = request;
    const announcement = checked(request.announcement);
    if (by !== undefined) await this.#mustAnnounce(by, request);
    // It looped, or passed too many gateways. The known routes are at least as good.
    if (via.includes(this.name) || via.length >= this.maxHops) return { accepted: false };
    const lifetime = Math.min(this.#lifetime, asked * 1000);
    const isNew = this.#table.add({ announcement, path, by: by && announcerOf(by), via, lifetime, sequence });
    if (isNew === "older") return { accepted: false };
    if (isNew && this.#isTold(by && announcerOf(by))) {
      const announced = this.#telling.tell(announcement.capability, via, by !== undefined);
      // The announcer does not wait for the peers.
      if (by === undefined) await announced;
    }
    return { accepted: true, expires_in: lifetime / 1000 };
  }

  async withdraw({ capability, path, sequence }: WithdrawRequest, by?: Principal): Promise<boolean> {
    if (by !== undefined) {
      await this.#mustAnnounce(by, { announcement: { capability, version: "", policy: {} }, path });
    }
    const route = this.#table.remove(by && announcerOf(by), capability, path, sequence);
    if (route === undefined) return false;
    if (this.#isTold(route.by)) {
      const announced = this.#telling.tell(capability, route.via, by !== undefined);
      if (by === undefined) await announced;
    }
    return true;
  }

  async routes(capability?: string, by?: Principal): Promise<AgpTable> {
    const mayRead = this.#options.policy?.mayReadRoutes;
    if (by !== undefined && mayRead !== undefined && !(await mayRead(by))) {
      throw new A2AError("PermissionDenied", "This caller may not read the routes");
    }
    return this.#table.entries(capability);
  }

  async route(intent: IntentPayload, visited: readonly string[] = []): Promise<RouteEntry> {
    return (await this.routesFor(intent, visited))[0];
  }

  async routesFor(
    intent: IntentPayload,
    visited: readonly string[] = [],
  ): Promise<readonly [RouteEntry, ...RouteEntry[]]> {
    if (visited.includes(this.name)) throw agpErrors.routeNotFound("The intent has already passed this gateway");
    if (visited.length >= this.maxHops) throw agpErrors.routeNotFound("The intent has passed too many gateways");
    let chosen = this.#table.choose(intent, visited);
    if (chosen === "stale" && (await this.#refresh(intent.target_capability)))
      chosen = this.#table.choose(intent, visited);
    const metadata = { target_capability: intent.target_capability };
    switch (chosen) {
      case "notFound":
        throw agpErrors.routeNotFound(undefined, { metadata });
      case "violation":
        throw agpErrors.policyViolation(undefined, { metadata });
      case "stale":
        throw agpErrors.tableStale(undefined, { metadata, retryAfter: cooldown / 1000 });
      default: {
        const [best, ...others] = chosen;
        return [entryOf(best), ...others.map(entryOf)];
      }
    }
  }

  async routeAll({ sub_intents: intents }: DelegationIntent): Promise<DelegationReport> {
    const results: (readonly [string, "SUCCESS" | "FAILED"])[] = [];
    for (const intent of intents) {
      const route = await this.route(intent).catch(() => undefined);
      results.push([intent.target_capability, route === undefined ? "FAILED" : "SUCCESS"]);
    }
    return Object.fromEntries(results);
  }

  async advertise(): Promise<void> {
    // Serialized with concurrent changes: a peer must not receive an older announcement after a newer one.
    for (const { capability, via } of this.#told()) await this.#telling.tell(capability, via, false);
  }

  start(): () => void {
    let stop = (): void => {};
    let isOver = false;
    const run = (): void => {
      void this.advertise().finally(() => {
        if (!isOver) stop = this.#clock.after(Math.min(this.#lifetime / 3, longestWait), run);
      });
    };
    run();
    return () => {
      isOver = true;
      stop();
    };
  }

  get #path(): string {
    return this.#options.path ?? this.name;
  }

  /** Whether peers learn of a route. */
  #isTold(by: Route["by"]): boolean {
    return by === undefined || this.#options.transit === true;
  }

  /** The routes to announce: only the cheapest to each capability, because peers know this gateway by one path. */
  #told(capability?: string): readonly Route[] {
    return cheapest(this.#table.live(capability).filter(({ by }) => this.#isTold(by)));
  }

  async #tellNow(capability: string, via: readonly string[]): Promise<void> {
    const [route] = this.#told(capability);
    if (route !== undefined) return this.#tell(route);
    await this.#each({ via, capability }, (peer) =>
      peer.withdraw({ capability, path: this.#path, sequence: this.#next() }),
    );
  }

  async #mustAnnounce(by: Principal, request: AnnounceRequest): Promise<void> {
    const may = await this.#options.policy?.mayAnnounce?.(by, request);
    if (may !== true)
      throw new A2AError("PermissionDenied", "This caller may not announce this capability at this path");
  }

  /** Returns whether a refresh ran. */
  async #refresh(capability: string): Promise<boolean> {
    const { refresh } = this.#options;
    if (refresh === undefined) return false;
    if (this.#refreshing === undefined) {
      if (this.#clock.elapsed() - this.#refreshed < cooldown) return false;
      this.#refreshed = this.#clock.elapsed();
      this.#refreshing = Promise.resolve()
        .then(() => refresh({ capability }))
        .then(
          () => undefined,
          (cause: unknown) => this.#logger.warn("Failed to refresh the routes of a gateway", { capability, cause }),
        )
        .finally(() => (this.#refreshing = undefined));
    }
    await this.#refreshing;
    return true;
  }

  /** Announces a route through this gateway to the peers. */
  async #tell(route: Route): Promise<void> {
    const { transitCost = 0 } = this.#options;
    const { capability, version, cost, policy, by, via } = route;
    const announcement = {
      capability,
      version,
      cost: by === undefined ? cost : Math.min(cost + transitCost, Number.MAX_VALUE),
      policy,
    };
    const request: AnnounceRequest = {
      announcement,
      path: this.#path,
      via: [...via, this.name],
      expires_in: this.#lifetime / 1000,
      sequence: this.#next(),
    };
    await this.#each(route, (peer) => peer.announce(request));
  }

  /** Sequence number of an announcement or withdrawal: a time, so that it grows across restarts. */
  #next(): number {
    return (this.#sequence = Math.max(this.#sequence + 1, this.#clock.now()));
  }

  /** Calls the peers through which a route has not passed. */
  async #each(
    { via, capability }: Pick<Route, "via" | "capability">,
    call: (peer: GatewayPeer) => Promise<unknown>,
  ): Promise<void> {
    const peers = (this.#options.peers ?? []).filter(({ name }) => !via.includes(name));
    await Promise.all(
      peers.map((peer) =>
        call(peer).catch((cause: unknown) =>
          this.#logger.warn("Failed to announce a route to a peer", { peer: peer.name, capability, cause }),
        ),
      ),
    );
  }
}

function entryOf({ path, cost, policy }: Route): RouteEntry {
  return { path, cost, policy };
}

/** A unique key of a caller. */
function announcerOf({ subject, organization }: Principal): string {
  return JSON.stringify([organization ?? null, subject]);
}

/** The cheapest route to each capability. */
function cheapest(routes: readonly Route[]): readonly Route[] {
  const best = new Map<string, Route>();
  for (const route of routes) {
    const known = best.get(route.capability);
    if (known === undefined || route.cost < known.cost) best.set(route.capability, route);
  }
  return [...best.values()];
}

/** JavaScript callers can pass anything. */
function checked(announcement: unknown): CapabilityAnnouncement {
  const result = agpSchemas.announcement["~standard"].validate(announcement);
  if (result instanceof Promise || result.issues !== undefined) {
    const [issue] = result instanceof Promise ? [] : (result.issues ?? []);
    const field = ["announcement", ...(issue?.path ?? [])].map(String).join(".");
    throw invalidParams([{ field, description: issue?.message ?? "is not valid" }]);
  }
  return result.value;
}

/** Maximum number of other announcers' capabilities that are announced to peers concurrently. */
const maxAtOnce = 256;

interface Running {
  /** The gateways that a later change has passed. `undefined`: there was no later change. */
  again: readonly string[] | undefined;
  done: Promise<void>;
}

/**
 * Announces changes to peers. Combines changes of a capability that is being announced, and limits concurrency: a
 * caller must not be able to make this gateway call others all the time.
 */
class Telling {
  readonly #tellNow: (capability: string, via: readonly string[]) => Promise<void>;
  readonly #running = new Map<string, Running>();

  constructor(tellNow: (capability: string, via: readonly string[]) => Promise<void>) {
    this.#tellNow = tellNow;
  }

  /**
   * Tells the peers the best current route to a capability.
   *
   * @param via - The gateways that the change passed.
   * @param isBounded - Whether to defer it to the next round if too many are running.
   */
  tell(capability: string, via: readonly string[], isBounded: boolean): Promise<void> {
    const running = this.#running.get(capability);
    if (running !== undefined) {
      running.again = via;
      return running.done;
    }
    if (isBounded && this.#running.size >= maxAtOnce) return Promise.resolve();
    const telling: Running = { again: via, done: Promise.resolve() };
    this.#running.set(capability, telling);
    telling.done = this.#run(capability, telling);
    return telling.done;
  }

  async #run(capability: string, telling: Running): Promise<void> {
    try {
      for (let next = telling.again; next !== undefined; next = telling.again) {
        telling.again = undefined;
        await this.#tellNow(capability, next);
      }
    } finally {
      this.#running.delete(capability);
    }
  }
}

type Methods = AgpTypes["methods"];
type RequestOf<Method> = Method extends { readonly request: StandardSchema<infer Request> } ? Request : never;
type ResponseOf<Method> = Method extends { readonly response: StandardSchema<infer Response> } ? Response : never;

/** Used by `gatewayPeer()`: `client.ext(agp())`. */
export interface AgpCalls {
  /** Calls a method of the other gateway. */
  call<Name extends keyof Methods>(method: Name, request: RequestOf<Methods[Name]>): Promise<ResponseOf<Methods[Name]>>;
}

/**
 * A peer for `agentGateway()`.
 *
 * @param calls - `client.ext(agp())` of a client that is connected to the peer.
 */
export function gatewayPeer(name: string, calls: AgpCalls): GatewayPeer {
  return {
    name,
    announce: (request) => calls.call("agp/announce", request),
    withdraw: (request) => calls.call("agp/withdraw", request),
  };
}
