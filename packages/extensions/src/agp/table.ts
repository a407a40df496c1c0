import { utf8Length, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError, type JsonObject } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import type { AgpTable, CapabilityAnnouncement, IntentPayload, RouteEntry } from "./shapes.ts";

export interface Route extends RouteEntry {
  readonly capability: string;
  readonly version: string;
  /** A unique key of the announcer. `undefined`: the gateway itself. */
  readonly by: string | undefined;
  /** Names of the gateways that it passed, in order. */
  readonly via: readonly string[];
}

export interface Announced {
  readonly announcement: CapabilityAnnouncement;
  readonly path: string;
  readonly by: string | undefined;
  readonly via: readonly string[];
  /** In milliseconds. */
  readonly lifetime: number;
  /** See `AnnounceRequest.sequence`. */
  readonly sequence?: number | undefined;
}

/** The routes for an intent, cheapest first, or the reason why no route matches. */
export type Chosen = readonly [Route, ...Route[]] | "notFound" | "violation" | "stale";

/** Limits of a table, in bytes of JSON. */
export interface TableBounds {
  readonly bytes: number;
  readonly bytesPerAnnouncer: number;
}

interface Row extends Route {
  readonly sequence: number | undefined;
  /** Withdrawn. Kept until it would have expired, so that an older announcement that arrives late does not restore it. */
  readonly isGone?: true;
  /** Expiry in monotonic time. */
  readonly expires: number;
  readonly bytes: number;
}

/** Approximate memory of a route in addition to its texts, in bytes. */
const aroundRoute = 200;

/** The routes of a gateway, identified by announcer, capability and path. A renewed route keeps its place. */
export class RouteTable {
  readonly #clock: Clock;
  readonly #bounds: TableBounds;
  readonly #rows = new Map<string, Map<string, Row>>();
  readonly #bytesBy = new Map<string | undefined, number>();
  #bytes = 0;

  constructor(bounds: TableBounds, clock: Clock) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /**
   * Adds or renews a route.
   *
   * @returns Whether the table changed. `older`: a newer announcement or withdrawal arrived before, so this one has no effect.
   * @throws A2AError `TooManyRequests` if the table is full.
   */
  add({ announcement, path, by, via, lifetime, sequence }: Announced): boolean | "older" {
    const { capability, version, cost = 0, policy } = announcement;
    const key = keyOf(by, path);
    if (this.#isNewer(capability, key, sequence)) return "older";
    const bytes = aroundRoute + utf8Length(JSON.stringify([capability, version, policy, path, by, via]));
    // Dropping expired routes may drop this one.
    const more = (): number => bytes - (this.#rows.get(capability)?.get(key)?.bytes ?? 0);
    if (!this.#hasRoom(by, more())) this.#dropExpired();
    if (!this.#hasRoom(by, more())) {
      throw new A2AError("TooManyRequests", "The routing table is full", { retryAfter: Math.ceil(lifetime / 1000) });
    }
    const row: Row = {
      capability,
      version,
      cost,
      policy,
      path,
      by,
      via,
      bytes,
      sequence,
      expires: this.#clock.elapsed() + lifetime,
    };
    const rows = this.#rows.get(capability) ?? new Map<string, Row>();
    this.#rows.set(capability, rows);
    const present = rows.get(key);
    rows.set(key, row);
    this.#count(by, bytes - (present?.bytes ?? 0));
    return present === undefined || !this.#isLive(present) || !isSame(present, row);
  }

  /** Removes and returns a route; `undefined` if it does not exist, or was announced after this withdrawal (`sequence`). */
  remove(by: string | undefined, capability: string, path: string, sequence?: number): Route | undefined {
    const key = keyOf(by, path);
    const row = this.#rows.get(capability)?.get(key);
    if (row === undefined || this.#isNewer(capability, key, sequence)) return undefined;
    const wasLive = this.#isLive(row);
    if (sequence === undefined || this.#isOver(row)) this.#drop(row);
    else this.#rows.get(capability)?.set(key, { ...row, sequence, isGone: true });
    return wasLive ? row : undefined;
  }

  /**
   * Whether there is a newer announcement or withdrawal. Expired ones do not count: a sequence number is a time, and the announcer may
   * have set its clock back.
   */
  #isNewer(capability: string, key: string, sequence = Infinity): boolean {
    const row = this.#rows.get(capability)?.get(key);
    return row !== undefined && !this.#isOver(row) && (row.sequence ?? -Infinity) > sequence;
  }

  /** The routes that have not expired, all or those to one capability. */
  live(capability?: string): readonly Route[] {
    const rows =
      capability === undefined ? [...this.#rows.values()] : [this.#rows.get(capability) ?? new Map<string, Row>()];
    return rows.flatMap((each) => [...each.values()]).filter((row) => this.#isLive(row));
  }

  entries(capability?: string): AgpTable {
    const routes = Object.create(null) as Record<string, RouteEntry[]>;
    for (const { capability: name, path, cost, policy } of this.live(capability)) {
      (routes[name] ??= []).push({ path, cost, policy });
    }
    return { routes: { ...routes } };
  }

  /**
   * The routes that satisfy the constraints of an intent (AGP §5, and its sample), cheapest first, then in the order of
   * announcement.
   *
   * @param visited - Names of the gateways that the intent passed: no route leads back to one.
   */
  choose({ target_capability, policy_constraints = {} }: IntentPayload, visited: readonly string[] = []): Chosen {
    const all = [...(this.#rows.get(target_capability)?.values() ?? [])].filter(
      ({ via, isGone }) => isGone !== true && !via.some((name) => visited.includes(name)),
    );
    // Read once: there may be many constraints and many routes.
    const constraints = Object.entries(policy_constraints);
    const fitting = all.filter((row) => satisfiesAll(row, constraints));
    const live = fitting.filter((row) => !this.#isOver(row));
    const [best, ...others] = live.toSorted((one, other) => one.cost - other.cost);
    if (best !== undefined) return [best, ...others];
    if (fitting.length > 0) return "stale";
    return all.length > 0 ? "violation" : "notFound";
  }

  #isLive(row: Row): boolean {
    return row.isGone !== true && !this.#isOver(row);
  }

  #isOver({ expires }: Row): boolean {
    return expires <= this.#clock.elapsed();
  }

  #hasRoom(by: string | undefined, more: number): boolean {
    const { bytes, bytesPerAnnouncer } = this.#bounds;
    const own = (this.#bytesBy.get(by) ?? 0) + more;
    return this.#bytes + more <= bytes && (by === undefined || own <= bytesPerAnnouncer);
  }

  /** Drops expired routes, but only if the table is full, because they distinguish a stale table from an unknown capability. */
  #dropExpired(): void {
    for (const rows of this.#rows.values()) for (const row of rows.values()) if (this.#isOver(row)) this.#drop(row);
  }

  #drop(row: Row): void {
    const rows = this.#rows.get(row.capability);
    rows?.delete(keyOf(row.by, row.path));
    if (rows?.size === 0) this.#rows.delete(row.capability);
    this.#count(row.by, -row.bytes);
  }

  #count(by: string | undefined, change: number): void {
    this.#bytes += change;
    const own = (this.#bytesBy.get(by) ?? 0) + change;
    if (own > 0) this.#bytesBy.set(by, own);
    else this.#bytesBy.delete(by);
  }
}

function keyOf(by: string | undefined, path: string): string {
  return JSON.stringify([by ?? null, path]);
}

function isSame(one: Row, other: Row): boolean {
  return (
    one.version === other.version &&
    one.cost === other.cost &&
    isEqual(one.policy, other.policy) &&
    isEqual(one.via, other.via)
  );
}

/**
 * Whether a route satisfies constraints: `security_level` is a minimum if both are numbers, `cost_max` limits the cost, and any other value
 * must equal the policy's.
 */
export function satisfiesConstraints(route: Pick<RouteEntry, "policy" | "cost">, constraints: JsonObject): boolean {
  return satisfiesAll(route, Object.entries(constraints));
}

function satisfiesAll(
  { policy, cost }: Pick<RouteEntry, "policy" | "cost">,
  constraints: readonly (readonly [string, unknown])[],
): boolean {
  return constraints.every(([name, wanted]) => {
    if (name === "cost_max" && typeof wanted === "number") return cost <= wanted;
    if (!Object.hasOwn(policy, name)) return false;
    const given = policy[name];
    if (name === "security_level" && typeof given === "number" && typeof wanted === "number") return given >= wanted;
    return isEqual(given, wanted);
  });
}

/** Compares JSON values. The order of members does not matter. */
function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, at) => isEqual(item, other[at]));
  if (!isObject(one) || !isObject(other)) return false;
  const names = Object.keys(one);
  const has = (name: string): boolean => Object.hasOwn(other, name) && isEqual(one[name], other[name]);
  return names.every(has) && names.length === Object.keys(other).length;
}
