import { isLoopback, type Clock } from "../base/index.ts";
import { invalidParams } from "../model/index.ts";
import { guardedFetch, type Dialer, type NetPolicy } from "../net/index.ts";
import { readJson, RemoteDocument } from "../net/remote-document.ts";
import { readKeySet } from "../jws/keys.ts";
import type { CardKeySet, CardTrust, PublicCardKey, TrustedKeys } from "./port.ts";
import { isObject } from "../model/schema.ts";

/* The keys that a client trusts. These are only keys that its user configured, never keys from a card. */

/** A trusted key for a signature. */
export interface FoundKey {
  readonly key: PublicCardKey;
  /** Whether the signature names this key. */
  readonly named: boolean;
}

/** The hints in a signature's header that point to its key. */
interface Hints {
  readonly kid?: string;
  readonly jku?: string;
}

interface Source {
  readonly origins: ReadonlySet<string> | undefined;
  readonly keySet: CardKeySet | RemoteDocument<CardKeySet>;
}

/** Maximum number of cached key sets that cards named. */
const maxNamed = 32;

const maxTried = 8;

export class KeySources {
  readonly #sources: readonly Source[];
  readonly #jku: ReadonlySet<string>;
  readonly #net: NetPolicy;
  readonly #dialer: Dialer | undefined;
  readonly #clock: Clock;
  readonly #named = new Map<string, RemoteDocument<CardKeySet>>();

  /** @throws A2AError `InvalidParams` if the trust is not valid. */
  constructor({ keys = [], jku = [], net = {}, dialer }: CardTrust, clock: Clock) {
    this.#net = net;
    this.#dialer = dialer;
    this.#clock = clock;
    this.#sources = keys.map((each, at) => this.#source(each, `keys[${at}]`));
    this.#jku = originsOf(jku, "jku");
  }

  /**
   * The trusted keys that may have made a signature, for a card of these origins. Yields the cached keys first. If no cached key has
   * the key name of the signature, fetches the key set again.
   *
   * @throws A2AError `Unavailable` if a key set cannot be read, and no other key set has the key.
   */
  async *keys(hints: Hints, origins: readonly string[]): AsyncGenerator<FoundKey, void, void> {
    let unreadable: Error | undefined;
    let tried = 0;
    for (const { keySet } of [...this.#fitting(origins), ...this.#hinted(hints.jku)]) {
      const named: FoundKey[] = [];
      try {
        named.push(...(await fittingKeys(keySet, hints.kid)));
      } catch (thrown) {
        unreadable ??= thrown as Error;
      }
      for (const found of named) {
        if (tried++ >= maxTried) return;
        yield found;
      }
    }
    if (unreadable !== undefined) throw unreadable;
  }

  #fitting(origins: readonly string[]): readonly Source[] {
    const all = (own: ReadonlySet<string>): boolean => origins.length > 0 && origins.every((origin) => own.has(origin));
    return this.#sources.filter((source) => source.origins === undefined || all(source.origins));
  }

  #hinted(jku: string | undefined): readonly Source[] {
    if (jku === undefined || !URL.canParse(jku)) return [];
    const url = new URL(jku);
    if (!this.#jku.has(url.origin) || !isSafe(url)) return [];
    url.hash = "";
    const known = this.#named.get(url.href) ?? this.#remote(url, this.#net);
    // Move the key set to the end, so that the most recently used sets are kept.
    this.#named.delete(url.href);
    this.#named.set(url.href, known);
    const [oldest] = this.#named.keys();
    if (this.#named.size > maxNamed && oldest !== undefined) this.#named.delete(oldest);
    return [{ origins: undefined, keySet: known }];
  }

  #source(given: TrustedKeys | PublicCardKey | null | undefined, field: string): Source {
    if (typeof given === "object" && given !== null && "keySet" in given) {
      const { keySet, origins } = given as TrustedKeys;
      const allowed = origins === undefined ? undefined : originsOf(origins, `${field}.origins`);
      if (typeof keySet !== "string") return { origins: allowed, keySet: checked(keySet, `${field}.keySet`) };
      if (!URL.canParse(keySet) || !isSafe(new URL(keySet))) {
        throw wrong(`${field}.keySet`, "must be a URL with https:, or with http: on this machine");
      }
      const url = new URL(keySet);
      // The user configured this URL, so it may be in a private network.
      return {
        origins: allowed,
        keySet: this.#remote(url, { ...this.#net, allow: [...(this.#net.allow ?? []), hostOf(url)] }),
      };
    }
    return { origins: undefined, keySet: checked({ keys: [given] }, field) };
  }

  #remote(url: URL, net: NetPolicy): RemoteDocument<CardKeySet> {
    const { href } = url;
    const fetch = guardedFetch({ maxBytes: 256 << 10, ...net }, this.#dialer, this.#clock);
    const load = async (): Promise<CardKeySet> => readKeySet(await readJson(fetch, href));
    return new RemoteDocument({ url: href, clock: this.#clock, load, name: `The key set ${href}` });
  }
}

/** The keys of a set that may have made a signature: keys with the signature's key name, and keys without a name. */
async function fittingKeys(
  keySet: CardKeySet | RemoteDocument<CardKeySet>,
  kid: string | undefined,
): Promise<readonly FoundKey[]> {
  const remote = keySet instanceof RemoteDocument;
  const known = withName(remote ? await keySet.current() : keySet, kid);
  if (!remote || known.some(({ named }) => named)) return known;
  // The owner may have added a key with this name.
  const again = keySet.again();
  return again === undefined ? known : withName(await again, kid);
}

function withName({ keys }: CardKeySet, kid: string | undefined): readonly FoundKey[] {
  return keys
    .filter((key) => key.kid === undefined || key.kid === kid)
    .map((key) => ({ key, named: kid !== undefined && key.kid === kid }));
}

function checked(value: unknown, field: string): CardKeySet {
  const given = isObject(value) ? value["keys"] : undefined;
  const isSet = Array.isArray(given) && readKeySet(value).keys.length === Math.min(given.length, 32);
  if (!isSet)
    throw wrong(field, "must be a public key as a JWK, or a key set: { keySet: { keys: [...] } } or { keySet: url }");
  return readKeySet(value);
}

function originsOf(list: readonly string[], field: string): ReadonlySet<string> {
  const isUrl = (each: unknown): boolean => typeof each === "string" && URL.canParse(each);
  if (Array.isArray(list) && list.every(isUrl)) return new Set((list as string[]).map((each) => new URL(each).origin));
  throw wrong(field, 'must be a list of origins, such as ["https://agents.example.com"]');
}

function wrong(field: string, description: string): Error {
  return invalidParams([{ field: `trust.${field}`, description }]);
}

/** Keys must be read over TLS, except from this machine (A2A 1.0 §8.4.3). */
function isSafe(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

function hostOf({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
}
