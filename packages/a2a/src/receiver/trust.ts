import { sha256, toBase64Url } from "../base/bytes.ts";
import type { Clock } from "../base/index.ts";
import { secretDigest } from "../base/sha256.ts";
import { A2AError } from "../model/index.ts";
import type { GuardedFetch } from "../net/index.ts";
import type { UniversalRequest } from "../protocol/index.ts";
import {
  audienceOf,
  isWebhookSecret,
  readDeliveryId,
  verifyWebhook,
  verifyWebhookToken,
  webhookHeaders,
  webhookKey,
  type ReceivedWebhook,
  type VerifyTokenOptions,
  type WebhookKey,
} from "../webhooks/index.ts";
import { wrongOption } from "./read.ts";
import type { Addressee } from "./tokens.ts";
import type { TrustJwt, TrustToken, WebhookTrust } from "./port.ts";
import { isObject } from "../model/schema.ts";
import { readJson, RemoteDocument } from "../net/remote-document.ts";

/* Verifies the sender of a delivery: the checks of `accept`. */

/** The proof of a delivery by one member of `accept`. */
export interface Proof {
  readonly trust: WebhookTrust;
  /** The name of the sender, see `HandledDelivery`. */
  readonly sender: string;
  /** Its id. Absent: the sender sends no id. */
  readonly id?: string;
  /** The config and the number, if a signature protects them. */
  readonly place?: { readonly stream: string; readonly sequence: number };
  /** The task that the signature is for, if it names one. */
  readonly taskId?: string;
}

interface Delivered extends ReceivedWebhook {
  readonly token: Addressee;
}

/** Checks a member of `accept`. Throws the error to answer. */
type Check = (webhook: Delivered) => Promise<Omit<Proof, "trust">>;

interface TrustHost {
  readonly url: string;
  readonly hasToken: boolean;
  readonly tolerance: number;
  readonly clock: Clock;
  readonly fetch: GuardedFetch;
}

/**
 * Checks deliveries by `accept`. The first check that succeeds counts.
 *
 * @throws A2AError `InvalidParams` if a member of `accept` is not valid.
 */
export function trusting(accept: readonly WebhookTrust[], host: TrustHost): (webhook: Delivered) => Promise<Proof> {
  if (accept.length === 0) throw wrongOption("accept", "must name the trusted senders");
  const keySets = new Map<string, RemoteKeySet>();
  const keySet = (field: string, url: string): RemoteKeySet => {
    if (!URL.canParse(url)) throw wrongOption(field, "must be an absolute URL");
    const found = keySets.get(url) ?? new RemoteKeySet(url, host.fetch, host.clock);
    keySets.set(url, found);
    return found;
  };
  const checks = accept.map((trust, at) => [trust, checkOf(trust, `accept[${at}]`, host, keySet)] as const);
  return async (webhook) => {
    let refusal: A2AError | undefined;
    for (const [trust, check] of checks) {
      try {
        return { trust, ...(await check(webhook)) };
      } catch (thrown) {
        if (!(thrown instanceof A2AError)) throw thrown;
        // A temporary error takes precedence, so that the sender retries.
        if (refusal === undefined || thrown.code === "Unavailable") refusal = thrown;
      }
    }
    throw refusal as A2AError;
  };
}

function checkOf(
  trust: WebhookTrust,
  field: string,
  host: TrustHost,
  keySet: (field: string, url: string) => RemoteKeySet,
): Check {
  if ("keySet" in trust) {
    const remote = keySet(`${field}.keySet`, trust.keySet);
    const sender = `keySet ${trust.keySet}`;
    return (webhook) => remote.verify(({ webhookKeys }) => signed(webhookKeys, webhook, sender, host));
  }
  if ("publicKey" in trust) {
    if (!publicKey.test(trust.publicKey))
      throw wrongOption(`${field}.publicKey`, "must be whpk_ and 32 bytes in base64");
    return signedBy(trust.publicKey, () => trust.publicKey, host);
  }
  if ("secret" in trust) {
    if (!isWebhookSecret(trust.secret))
      throw wrongOption(`${field}.secret`, "must be whsec_ and 24 to 64 bytes in base64");
    return signedBy(trust.secret, async () => `secret ${await digestOf(trust.secret)}`, host);
  }
  if ("jwt" in trust) return jwtCheck(trust, field, host, keySet);
  if ("tokenOnly" in trust && trust.tokenOnly === true) return tokenCheck(trust, field, host);
  throw wrongOption(field, "must have keySet, publicKey, secret, jwt or tokenOnly");
}

const publicKey = /^whpk_[A-Za-z\d+/]{43}=$/;

function signedBy(text: string, nameOf: () => string | Promise<string>, host: TrustHost): Check {
  const key = webhookKey(text);
  let name: string | Promise<string> | undefined;
  // Reported at the first delivery, because some runtimes reject bytes that are not a point of the curve.
  key.catch(() => undefined);
  return async (webhook) => signed([await key], webhook, await (name ??= nameOf()), host);
}

/** A digest that names a secret. With at least 24 random bytes it cannot be guessed. */
async function digestOf(secret: string): Promise<string> {
  return toBase64Url((await sha256(secret)).subarray(0, 16));
}

async function signed(
  keys: Parameters<typeof verifyWebhook>[0],
  webhook: ReceivedWebhook,
  sender: string,
  { clock, tolerance }: TrustHost,
): Promise<Omit<Proof, "trust">> {
  const { id } = await verifyWebhook(keys, webhook, { now: clock.now(), tolerance: tolerance / 1000 });
  return placed(sender, id);
}

function placed(sender: string, id: string): Omit<Proof, "trust"> {
  const place = readDeliveryId(id);
  return { sender, id, ...(place !== undefined && { place }) };
}

function jwtCheck(
  { jwt }: TrustJwt,
  field: string,
  { url, clock, tolerance }: TrustHost,
  keySet: (field: string, url: string) => RemoteKeySet,
): Check {
  const remote = keySet(`${field}.jwt.keySet`, jwt.keySet);
  const { issuer, audience = audienceOf(url) } = jwt;
  if (typeof issuer !== "string" || issuer === "") throw wrongOption(`${field}.jwt.issuer`, "is required");
  return async (webhook) => {
    const token = /^bearer +(\S+)$/i.exec(webhook.header("authorization") ?? "")?.[1];
    if (token === undefined) throw new A2AError("Unauthenticated", "The webhook has no JWT in Authorization");
    const { body } = webhook;
    return remote.verify(async (keys) => {
      const options: VerifyTokenOptions = { issuer, audience, body, now: clock.now(), tolerance: tolerance / 1000 };
      const { id, taskId } = await verifyWebhookToken(token, keys, options);
      // The header with the id is not protected here, but `jti` is.
      return { ...placed(`jwt ${issuer} ${jwt.keySet}`, id), taskId };
    });
  };
}

function tokenCheck({ authentication }: TrustToken, field: string, { hasToken }: TrustHost): Check {
  const wanted = authentication && `${authentication.scheme} ${authentication.credentials ?? ""}`.trim();
  const digest = secretDigest();
  return async ({ token, header }) => {
    const id = header(webhookHeaders.id);
    const proof = (sender: string) =>
      id === undefined || id === "" || id.length > maxId ? { sender } : { sender, id };
    // The config of a subscription only requires its token.
    if (token.kind === "subscription") return proof(`subscription ${token.name}`);
    if ((token.kind === "unknown" || token.kind === "closed") && hasToken)
      throw new A2AError("Unauthenticated", "The token of the webhook is not valid");
    // The official SDK of JavaScript sends either Authorization or the token.
    if (wanted !== undefined) {
      const given = header("authorization") ?? "";
      if (digest(sameCase(given)) === digest(sameCase(wanted))) return proof(`authorization ${field}`);
      throw new A2AError("Unauthenticated", "The Authorization of the webhook is not valid");
    }
    if (token.kind === "own") return proof("token");
    throw new A2AError("Unauthenticated", "The webhook has no token");
  };
}

/** Maximum length of an id from an unverified sender. */
const maxId = 256;

/** Scheme names are case-insensitive (RFC 9110 §11.1). */
function sameCase(authorization: string): string {
  return authorization.replace(/^[\w-]+/, (scheme) => scheme.toLowerCase());
}

/** The token of a delivery, under the name of the specification or of the Go SDK. */
export function tokenOf(request: Pick<UniversalRequest, "header">): string | undefined {
  return request.header(webhookHeaders.token) ?? request.header(webhookHeaders.tokenOfGo);
}

interface ReadKeySet {
  /** The key set as received, for JWTs. */
  readonly keys: readonly object[];
  /** Its Ed25519 keys, for Standard Webhooks. */
  readonly webhookKeys: readonly WebhookKey[];
}

const maxKeys = 32;

/** The key set of a server, read on first use, and again for a signature by an unknown key. */
class RemoteKeySet {
  readonly #document: RemoteDocument<ReadKeySet>;

  constructor(url: string, fetch: GuardedFetch, clock: Clock) {
    const load = async (): Promise<ReadKeySet> => readKeySet(await readJson(fetch, url));
    this.#document = new RemoteDocument({ url, clock, load, name: "The key set of the sender" });
  }

  /**
   * Checks with the known keys, and if this fails, once more after reading the keys again. Rethrows the error only if the
   * server certainly does not have the key.
   *
   * @throws A2AError `Unavailable` if the keys cannot be read now, and errors of `check`.
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
      // The key may be new. A temporary error makes the sender retry.
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

/** An Ed25519 key (RFC 8037 §2). Other kinds are ignored. */
async function webhookKeyOf(jwk: Readonly<Record<string, unknown>>): Promise<WebhookKey | undefined> {
  const { kty, crv, x } = jwk;
  if (kty !== "OKP" || crv !== "Ed25519" || typeof x !== "string" || !/^[\w-]{43}$/.test(x)) return undefined;
  return webhookKey(`whpk_${x.replaceAll("-", "+").replaceAll("_", "/")}=`).catch(() => undefined);
}
