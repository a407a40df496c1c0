import { isLoopback, systemClock, type Clock } from "@parley/a2a/internal/base/index";
import { isPublicJwk, readKeySet, type PublicJwk } from "@parley/a2a/internal/jws/keys";
import { invalidParams } from "@parley/a2a/internal/model/index";
import { guardedFetch, type Dialer, type NetPolicy } from "@parley/a2a/internal/net/index";
import { readJson, RemoteDocument } from "@parley/a2a/internal/net/remote-document";

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
