import { type Clock, isLoopback, systemClock } from "@parley/a2a/internal/base/index";
import { isPublicJwk, type PublicJwk, readKeySet } from "@parley/a2a/internal/jws/keys";
import { invalidParams } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import { type Dialer, guardedFetch, type NetPolicy } from "@parley/a2a/internal/net/index";
import { readJson, RemoteDocument } from "@parley/a2a/internal/net/remote-document";
import { memoryOf } from "@parley/a2a/internal/base/bounded-map";

/** A public key as a JWK (RFC 7517). It may have other members. */
export interface PassportKey extends PublicJwk {}

/** A set of public keys (RFC 7517 §5). */
export interface PassportKeySet {
  /** The keys. */
  readonly keys: readonly PassportKey[];
}

/** Decides which keys a caller may sign with. */
export interface PassportTrust {
  /**
   * The current keys of a client; empty if the client is not trusted. The implementation decides where keys come from: a
   * passport cannot name a URL of keys.
   *
   * @param clientId - Unverified.
   * @param kid - The key that the signature names.
   * @throws A2AError `Unavailable` if the keys cannot be read now.
   */
  keyFor(
    clientId: string,
    kid: string | undefined,
  ): PassportKey | readonly PassportKey[] | undefined | Promise<PassportKey | readonly PassportKey[] | undefined>;
}

/** Options for reading key sets from URLs. */
export interface PassportKeysOptions {
  /** Which addresses may be called. Default: public addresses, and addresses of the named key sets. */
  readonly net?: NetPolicy;
  /** Pins the addresses of key sets: `nodeDialer()` of `@parley/node`. Absent: the runtime resolves the names again. */
  readonly dialer?: Dialer;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

/**
 * Trusts the keys of known clients. Pass a key set, or the URL of one. A URL is read over TLS on first use, again after
 * ten minutes, and when a signature names an unknown key.
 *
 * @param clients - Key sets by `clientId`.
 * @throws A2AError `InvalidParams` for an invalid key set, or a URL that is neither `https:` nor on this machine.
 *
 * @example
 * ```ts
 * const trust = passportKeys({ "a2a://desk.example.com": "https://desk.example.com/.well-known/jwks.json" });
 * ```
 */
export function passportKeys(
  clients: Readonly<Record<string, string | PassportKeySet>>,
  { net = {}, dialer, clock = systemClock }: PassportKeysOptions = {},
): PassportTrust {
  const known = new Map(
    Object.entries(clients).map(([clientId, keySet]): readonly [string, KeySource] => {
      const field = `clients[${JSON.stringify(clientId)}]`;
      if (typeof keySet !== "string") return [clientId, checked(keySet, field)];
      if (!URL.canParse(keySet) || !isSafe(new URL(keySet))) {
        throw wrong(field, "must be a URL with https:, or with http: on this machine");
      }
      const { href, host, protocol, hostname, port } = new URL(keySet);
      // Named by the operator, so it may be in a private network.
      const allow = [...(net.allow ?? []), port === "" ? `${hostname}:${protocol === "https:" ? 443 : 80}` : host];
      const fetch = guardedFetch({ maxBytes: 256 << 10, ...net, allow }, dialer, clock);
      const load = async (): Promise<PassportKeySet> => readKeySet(await readJson(fetch, href));
      return [clientId, new RemoteDocument({ url: href, clock, load, name: `The key set of ${clientId}` })];
    }),
  );
  return {
    async keyFor(clientId, kid) {
      const source = known.get(clientId);
      if (!(source instanceof RemoteDocument)) return source?.keys;
      const { keys } = await source.current();
      if (kid === undefined || keys.some((key) => key.kid === kid)) return keys;
      // Keys rotate: the named key may be new.
      return ((await source.again()) ?? { keys }).keys;
    },
  };
}

type KeySource = PassportKeySet | RemoteDocument<PassportKeySet>;

function checked(value: unknown, field: string): PassportKeySet {
  const keys = isObject(value) ? value["keys"] : undefined;
  if (Array.isArray(keys) && keys.length <= 32 && keys.every(isPublicJwk)) return { keys };
  throw wrong(field, "must be a key set with at most 32 keys, { keys: [...] }, or its URL");
}

function wrong(field: string, description: string): Error {
  return invalidParams([{ field, description }]);
}

function isSafe(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

/** A used passport. */
export interface UsedPassport {
  /** Its verified owner. At most 1,024 characters. */
  readonly clientId: string;
  /** Its name, unique per client. At most 1,024 characters. */
  readonly jti: string;
  /** A hash of the message and caller that use it. A retry of the same message by the same caller has the same hash. */
  readonly use: string;
  /** Its expiry, in milliseconds since the Unix epoch. It must be remembered until then. */
  readonly until: number;
}

/**
 * Answer of a store of nonces. `fresh`: first use, or a retry of the same message. `used`: used for something else.
 * `full`: the store has no space for it, so it is not verified.
 */
export type PassportUse = "fresh" | "used" | "full";

/**
 * Remembers used passports, so that no passport is used twice. Processes of one agent should share it; otherwise each process
 * accepts a passport once.
 */
export interface PassportNonces {
  /** Records a use. Must be atomic: of two concurrent calls for a passport, one must see the other. */
  use(passport: UsedPassport): PassportUse | Promise<PassportUse>;
}

/** Options of `memoryNonces()`. */
export interface MemoryNoncesOptions {
  /** Memory for all passports, in bytes. Default 4 MiB, about 10,000 passports. */
  readonly bytes?: number;
  /**
   * Maximum memory for a single client, in bytes. With several clients, each gets at most an equal share of the free memory,
   * so one more client always fits. Default: an eighth of `bytes`.
   */
  readonly bytesPerClient?: number;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

/**
 * Remembers passports in memory. If the memory is full of unexpired passports, new ones are not verified: a forgotten
 * passport could be used again.
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

  /** Drops expired passports. At most once a second, because it scans all. */
  function forget(now: number): void {
    // The wall clock may jump forward and back.
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
      // Counts the client's name for each passport, although it is stored once.
      const own = memoryOf(key, clientId, use);
      if (!hasRoom(clientId, own)) forget(now);
      if (!hasRoom(clientId, own)) return "full";
      kept.set(key, { clientId, jti, use, until, bytes: own });
      add(clientId, own);
      return "fresh";
    },
  };
}
