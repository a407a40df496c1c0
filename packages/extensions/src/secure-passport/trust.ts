import { type Clock, isLoopback, systemClock } from "@parley/a2a/internal/base/index";
import { isPublicJwk, type PublicJwk, readKeySet } from "@parley/a2a/internal/jws/keys";
import { invalidParams } from "@parley/a2a/internal/model/index";
import { type Dialer, guardedFetch, type NetPolicy } from "@parley/a2a/internal/net/index";
import { readJson, RemoteDocument } from "@parley/a2a/internal/net/remote-document";
import { memoryOf } from "@parley/a2a/internal/base/bounded-map";

/** A public key as a JWK (RFC 7517). Members that are not named here may be there too. */
export interface PassportKey extends PublicJwk {}

/** A set of public keys (RFC 7517 §5). */
export interface PassportKeySet {
  /** The keys. */
  readonly keys: readonly PassportKey[];
}

/** Which keys sign for which caller. */
export interface PassportTrust {
  /**
   * The keys with which a client signs now. None: nothing that it signs is verified. What a passport says of itself leads to no address: who
   * implements this decides where keys come from.
   *
   * @param clientId - What the passport says, not verified.
   * @param kid - Name of the key that the signature names.
   * @throws A2AError `Unavailable` where the keys cannot be read now.
   */
  keyFor(
    clientId: string,
    kid: string | undefined,
  ): PassportKey | readonly PassportKey[] | undefined | Promise<PassportKey | readonly PassportKey[] | undefined>;
}

/** Where the keys of key sets with an address are read from. */
export interface PassportKeysOptions {
  /** Which addresses may be called. Default: public ones, and those of the key sets that are named. */
  readonly net?: NetPolicy;
  /** Pins the addresses of key sets: `nodeDialer()` of `@parley/node`. Absent: the runtime resolves their names again. */
  readonly dialer?: Dialer;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}

/**
 * Trusts the keys of known clients. A key set is given as it is, or as the URL at which its owner publishes it, which is read over TLS when
 * it is first needed, again after ten minutes, and when a signature names a key that is not in it.
 *
 * @param clients - Key sets by the `clientId` of their owners.
 * @throws A2AError `InvalidParams` where a key set is none, or its URL is neither `https:` nor on this machine.
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
      // The operator has named its owner, so it may be in a private network.
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
      // Keys change: the name may be a new one.
      return ((await source.again()) ?? { keys }).keys;
    },
  };
}

type KeySource = PassportKeySet | RemoteDocument<PassportKeySet>;

function checked(value: unknown, field: string): PassportKeySet {
  const keys = (value as Partial<PassportKeySet> | null | undefined)?.keys;
  if (Array.isArray(keys) && keys.length <= 32 && keys.every(isPublicJwk)) return { keys };
  throw wrong(field, "must be a key set with at most 32 keys, { keys: [...] }, or its URL");
}

function wrong(field: string, description: string): Error {
  return invalidParams([{ field, description }]);
}

function isSafe(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

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
