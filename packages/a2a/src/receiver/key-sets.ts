import type { Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { GuardedFetch } from "../net/index.ts";
import { readJson, RemoteDocument } from "../net/remote-document.ts";
import { webhookKey, type WebhookKey } from "../webhooks/index.ts";

/** A key set that was read. */
export interface ReadKeySet {
  /** As it came, for JWTs. */
  readonly keys: readonly object[];
  /** Its Ed25519 keys, for Standard Webhooks. */
  readonly webhookKeys: readonly WebhookKey[];
}

/** Most keys that are read. */
const maxKeys = 32;

/** The key set of a server, read when it is first needed, and again when a signature is by no key that is known. */
export class RemoteKeySet {
  readonly #document: RemoteDocument<ReadKeySet>;

  constructor(url: string, fetch: GuardedFetch, clock: Clock) {
    const load = async (): Promise<ReadKeySet> => readKeySet(await readJson(fetch, url));
    this.#document = new RemoteDocument({ url, clock, load, name: "The key set of the sender" });
  }

  /**
   * Checks with the keys that are known, and where that fails, once more with those of a new reading. What is thrown is thrown on
   * where it is certain that the server has no such key.
   *
   * @throws A2AError `Unavailable` where the keys cannot be read now, and what `check` throws.
   */
  async verify<T>(check: (keys: ReadKeySet) => Promise<T>): Promise<T> {
    const known = this.#document.fresh;
    if (known === undefined) return check(await this.#document.current());
    try {
      return await check(known);
    } catch (refusal) {
      const { wait } = this.#document;
      const again = this.#document.again();
      if (again !== undefined) return check(await again);
      // The key may be new. The sender tries again, and is not told for good that its signature is wrong.
      throw new A2AError("Unavailable", refusal instanceof Error ? refusal.message : undefined, {
        cause: refusal,
        retryAfter: wait / 1000,
      });
    }
  }
}

async function readKeySet(value: unknown): Promise<ReadKeySet> {
  if (!isObject(value) || !Array.isArray(value["keys"])) throw new Error("The key set has no list of keys");
  const keys = value["keys"].filter(isObject).slice(0, maxKeys);
  const webhookKeys = await Promise.all(keys.map(webhookKeyOf));
  return { keys, webhookKeys: webhookKeys.filter((key) => key !== undefined) };
}

/** An Ed25519 key (RFC 8037 §2). Keys of other kinds are for others. */
async function webhookKeyOf(jwk: Readonly<Record<string, unknown>>): Promise<WebhookKey | undefined> {
  const { kty, crv, x } = jwk;
  if (kty !== "OKP" || crv !== "Ed25519" || typeof x !== "string" || !/^[\w-]{43}$/.test(x)) return undefined;
  return webhookKey(`whpk_${x.replaceAll("-", "+").replaceAll("_", "/")}=`).catch(() => undefined);
}
