import type { Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { GuardedFetch } from "../net/index.ts";
import { webhookKey, type WebhookKey } from "../webhooks/index.ts";

/** A key set that was read. */
export interface ReadKeySet {
  /** As it came, for JWTs. */
  readonly keys: readonly object[];
  /** Its Ed25519 keys, for Standard Webhooks. */
  readonly webhookKeys: readonly WebhookKey[];
}

/** A key set is read again after this time, in milliseconds, so that a key that was taken out of it is not trusted for long. */
const freshFor = 10 * 60_000;
/** Where it cannot be read, the last one is used for this long, in milliseconds. */
const usableFor = 24 * 60 * 60_000;
/** Least time between two requests, in milliseconds: deliveries with unknown keys must not make this process call others. */
const cooldown = 30_000;
/** How long a delivery waits for a new reading where the last one can be used, in milliseconds. Its sender waits ten seconds. */
const longestWait = 3_000;
/** Most keys that are read. */
const mostKeys = 32;

/** The key set of a server, read when it is first needed, and again when a signature is by no key that is known. */
export class RemoteKeySet {
  readonly #url: string;
  readonly #fetch: GuardedFetch;
  readonly #clock: Clock;
  #known: { readonly set: ReadKeySet; readonly at: number } | undefined;
  #reading: Promise<ReadKeySet> | undefined;
  #asked = -Infinity;

  constructor(url: string, fetch: GuardedFetch, clock: Clock) {
    this.#url = url;
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /**
   * Checks with the keys that are known, and where that fails, once more with those of a new reading. What is thrown is thrown on
   * where it is certain that the server has no such key.
   *
   * @throws A2AError `Unavailable` where the keys cannot be read now, and what `check` throws.
   */
  async verify<T>(check: (keys: ReadKeySet) => Promise<T>): Promise<T> {
    const now = this.#clock.elapsed();
    const known = this.#known;
    if (known === undefined || now - known.at > freshFor) return check(await this.#current());
    try {
      return await check(known.set);
    } catch (refusal) {
      const wait = this.#asked + cooldown - now;
      if (wait <= 0) return check(await this.#read());
      if (this.#reading !== undefined) return check(await this.#reading);
      // The key may be new. The sender tries again, and is not told for good that its signature is wrong.
      throw new A2AError("Unavailable", refusal instanceof Error ? refusal.message : undefined, {
        cause: refusal,
        retryAfter: wait / 1000,
      });
    }
  }

  /** The keys now. The last ones where they cannot be read, unless they are too old. */
  async #current(): Promise<ReadKeySet> {
    const known = this.#known;
    const now = this.#clock.elapsed();
    const usable = known !== undefined && now - known.at < usableFor ? known.set : undefined;
    if (this.#reading === undefined && now - this.#asked < cooldown) {
      if (usable !== undefined) return usable;
      throw unreadable(undefined, (this.#asked + cooldown - now) / 1000);
    }
    const reading = this.#read();
    return usable === undefined ? reading : this.#orAfterAWhile(reading, usable);
  }

  /** The last keys where the new ones do not come soon. */
  #orAfterAWhile(reading: Promise<ReadKeySet>, last: ReadKeySet): Promise<ReadKeySet> {
    return new Promise((resolve) => {
      const stop = this.#clock.after(longestWait, () => resolve(last));
      void reading
        .catch(() => last)
        .then(resolve)
        .finally(stop);
    });
  }

  #read(): Promise<ReadKeySet> {
    if (this.#reading !== undefined) return this.#reading;
    this.#asked = this.#clock.elapsed();
    return (this.#reading = this.#request()
      .then((set) => {
        this.#known = { set, at: this.#clock.elapsed() };
        return set;
      })
      .catch((cause: unknown) => {
        // The log has to name the address, which a failed connection does not.
        throw unreadable(new Error(`${this.#url} cannot be read`, { cause }), cooldown / 1000);
      })
      .finally(() => (this.#reading = undefined)));
  }

  async #request(): Promise<ReadKeySet> {
    const response = await this.#fetch(this.#url, { headers: { accept: "application/json" } });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`The key set was answered with HTTP ${response.status}`);
    }
    return readKeySet(await response.json());
  }
}

function unreadable(cause: unknown, retryAfter: number): A2AError {
  return new A2AError("Unavailable", "The key set of the sender cannot be read", { cause, retryAfter });
}

async function readKeySet(value: unknown): Promise<ReadKeySet> {
  if (!isObject(value) || !Array.isArray(value["keys"])) throw new Error("The key set has no list of keys");
  const keys = value["keys"].filter(isObject).slice(0, mostKeys);
  const webhookKeys = await Promise.all(keys.map(webhookKeyOf));
  return { keys, webhookKeys: webhookKeys.filter((key) => key !== undefined) };
}

/** An Ed25519 key (RFC 8037 §2). Keys of other kinds are for others. */
async function webhookKeyOf(jwk: Readonly<Record<string, unknown>>): Promise<WebhookKey | undefined> {
  const { kty, crv, x } = jwk;
  if (kty !== "OKP" || crv !== "Ed25519" || typeof x !== "string" || !/^[\w-]{43}$/.test(x)) return undefined;
  return webhookKey(`whpk_${x.replaceAll("-", "+").replaceAll("_", "/")}=`).catch(() => undefined);
}
