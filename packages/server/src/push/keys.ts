import { fromBase64Url } from "@parley/a2a/internal/base/base64";
import type { Bytes, WebKey } from "@parley/a2a/internal/base/index";
import {
  audienceOf,
  ed25519Key,
  type KeySet,
  publicJwk,
  type PublicJwk,
  signWebhook,
  signWebhookToken,
  webhookKey,
  type WebhookKey,
} from "@parley/a2a/internal/webhooks/index";
import { createSeal, hkdf, hkdfRoot } from "../seal/index.ts";
import type { TaskKey } from "../store/index.ts";
import type { OpenSecrets, PushSecrets, PushSigner } from "./port.ts";

/* The keys of `PushOptions.keys`: from each 32 bytes, a key that seals the secrets of configs, and one that signs. */

/** What one element of `PushOptions.keys` gives. */
export interface PushKey {
  /** The name of the key: the `kid` of its public key. It may be stored beside what the key sealed. */
  readonly id: string;
  /** Seals and opens: AES-256-GCM. */
  readonly seal: WebKey;
  /** Signs: Ed25519. */
  readonly sign: WebKey;
  /** The public key of `sign`, for the key set. */
  readonly jwk: PublicJwk;
}

/** The keys of a server. The first one seals; the others open what they sealed. */
export type PushKeys = readonly [PushKey, ...PushKey[]];

/** Derives the keys when it is called first, and then returns the same. */
export type PushKeyring = () => Promise<PushKeys>;

/** The keys that are derived from `PushSettings.keys`, 32 bytes each. */
export function pushKeyring([first, ...others]: readonly [Bytes, ...Bytes[]]): PushKeyring {
  let derived: Promise<PushKeys> | undefined;
  return () => (derived ??= Promise.all([derive(first), ...others.map(derive)]));
}

/** The public keys of a server, as it publishes them. */
export async function keySetOf(keyring: PushKeyring): Promise<KeySet> {
  return { keys: (await keyring()).map(({ jwk }) => jwk) };
}

/** Derives with HKDF (RFC 5869), so that neither of the two derived keys tells anything about the other. */
async function derive(bytes: Bytes): Promise<PushKey> {
  const root = await hkdfRoot(bytes);
  const aes = { name: "AES-GCM", length: 256 };
  const seal = await crypto.subtle.deriveKey(hkdf("parley push seal 1"), root, aes, false, ["encrypt", "decrypt"]);
  const seed = new Uint8Array(await crypto.subtle.deriveBits(hkdf("parley push sign 1"), root, 256));
  // WebCrypto has no other way from a private key to its public key than a JWK, which has both.
  const { x = "" } = await crypto.subtle.exportKey("jwk", await ed25519Key(seed, true));
  const jwk = await publicJwk(fromBase64Url(x) as Bytes);
  return { id: jwk.kid, seal, sign: await ed25519Key(seed), jwk };
}

/** Seals the secrets of configs, and opens them. */
export interface Sealer {
  /** Seals with the first key. */
  seal(secrets: PushSecrets, task: TaskKey, configId: string): Promise<string>;
  /** Opens with the key that sealed. */
  readonly open: OpenSecrets;
}

/** What is sealed is bound to its agent, owner, task and config: a sealed secret that is copied into another row does not open. */
export function createSealer(keyring: PushKeyring): Sealer {
  const { seal, open } = createSeal(keyring);
  return {
    seal: (secrets, task, configId) => seal(secrets, boundTo(task, configId)),
    open: async (text, task, configId) => {
      try {
        return (await open(text, boundTo(task, configId))) as PushSecrets;
      } catch (cause) {
        throw new Error(`The secrets of this webhook: ${(cause as Error).message}`, { cause });
      }
    },
  };
}

/** Opens for one config, and remembers the result: its events follow each other, and opening costs a tenth of a delivery. */
export function rememberLast(open: OpenSecrets): OpenSecrets {
  let last: { readonly sealed: string; readonly secrets: PushSecrets } | undefined;
  return async (sealed, task, configId) => {
    if (last?.sealed !== sealed) last = { sealed, secrets: await open(sealed, task, configId) };
    return last.secrets;
  };
}

function boundTo({ agent, owner, taskId }: TaskKey, configId: string): readonly string[] {
  return [agent, owner, taskId, configId];
}

/**
 * Signs with the keys of a server. `v1a` is signed with each key, so that a receiver that knows only the older key accepts a
 * delivery until that key is removed (Standard Webhooks, key rotation). A JWT names its key, so the first one signs it.
 *
 * Both use the same Ed25519 keys. What one signs is never what the other signs: the content of a webhook has at least two dots,
 * what is signed of a JWT has one.
 *
 * @param issuer - `iss` of JWTs: the public URL of the server.
 */
export function createSigner(keyring: PushKeyring, issuer: string): PushSigner {
  return {
    async signature(signed, secret) {
      const keys: readonly WebhookKey[] = (await keyring()).map(({ sign }) => ({ form: "v1a", key: sign }));
      return signWebhook(secret === undefined ? keys : [await webhookKey(secret), ...keys], signed);
    },
    async jwt(signed, claims) {
      const [{ sign, id }] = await keyring();
      return signWebhookToken(sign, id, {
        ...signed,
        issuer,
        taskId: claims.taskId,
        audience: audienceOf(claims.audience),
      });
    },
  };
}
