import { memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { systemClock, type Clock } from "@parley/a2a/internal/base/index";

/** A passport that is used. */
export interface UsedPassport {
  /** Whose it is, as its signature proves. At most 1,024 characters. */
  readonly clientId: string;
  /** Its name, which is unique for its client. At most 1,024 characters. */
  readonly jti: string;
  /** What it is used for: a hash. A retry of the same message by the same caller has the same one. */
  readonly use: string;
  /** When it expires, in milliseconds since the Unix epoch. It has to be remembered until then. */
  readonly until: number;
}

/**
 * What a store of nonces says. `fresh`: the passport is used for the first time, or again for the same message. `used`: it was used for
 * something else. `full`: there is no room to remember it, and it does not count.
 */
export type PassportUse = "fresh" | "used" | "full";

/**
 * Remembers which passports were used, so that nobody uses one a second time. Processes that answer for the same agent should share one: with
 * a memory of their own, each of them takes a passport once.
 */
export interface PassportNonces {
  /** Notes that a passport is used. Of two calls at a time for the same passport one must see the other. */
  use(passport: UsedPassport): PassportUse | Promise<PassportUse>;
}

/** Bounds of `memoryNonces()`. */
export interface MemoryNoncesOptions {
  /** Memory that all passports may take, in bytes. Default 4 MiB, for about 10,000 of them. */
  readonly bytes?: number;
  /**
   * Memory that the passports of one client may take, in bytes, while no other client has any. Of what others have left it is the same share, so that
   * there is room for one more client, however many of them fill theirs. Default: an eighth of `bytes`.
   */
  readonly bytesPerClient?: number;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}

/**
 * Remembers passports in the memory of this process. When it is full of passports that have not expired, new ones do not count: to
 * forget one would let it be used again.
 */
export function memoryNonces(options: MemoryNoncesOptions = {}): PassportNonces {
  const { bytes = 4 << 20, bytesPerClient = bytes / 8, clock = systemClock } = options;
  const kept = new Map<string, UsedPassport & { readonly bytes: number }>();
  const byClient = new Map<string, number>();
  let taken = 0;
  let nextWalk = -Infinity;

  function add(clientId: string, change: number): void {
    taken += change;
    const own = (byClient.get(clientId) ?? 0) + change;
    if (own > 0) byClient.set(clientId, own);
    else byClient.delete(clientId);
  }

  function drop(key: string): void {
    const before = kept.get(key);
    if (before === undefined) return;
    kept.delete(key);
    add(before.clientId, -before.bytes);
  }

  function hasRoom(clientId: string, own: number): boolean {
    const before = byClient.get(clientId) ?? 0;
    const left = bytes - (taken - before);
    return before + own <= Math.min(1, bytesPerClient / bytes) * left;
  }

  /** Forgets what has expired; at most once a second, since it looks at all. */
  function forget(now: number): void {
    // The wall clock may jump ahead and come back.
    if (clock.elapsed() < nextWalk) return;
    nextWalk = clock.elapsed() + 1000;
    for (const [key, { until }] of kept) if (until <= now) drop(key);
  }

  return {
    use(passport) {
      const { clientId, jti, use, until } = passport;
      const now = clock.now();
      const key = JSON.stringify([clientId, jti]);
      const before = kept.get(key);
      if (before !== undefined && before.until > now) return before.use === use ? "fresh" : "used";
      drop(key);
      // Its key, its client and its use; the client is counted with each, and kept once.
      const own = memoryOf(key, clientId, use);
      if (!hasRoom(clientId, own)) forget(now);
      if (!hasRoom(clientId, own)) return "full";
      kept.set(key, { clientId, jti, use, until, bytes: own });
      add(clientId, own);
      return "fresh";
    },
  };
}
