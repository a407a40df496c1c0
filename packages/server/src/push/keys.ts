import { fromBase64Url } from "@parley/a2a/internal/base/bytes";
import type { Bytes, WebKey } from "@parley/a2a/internal/base/index";
import {
  audienceOf,
  ed25519Key,
  publicJwk,
  signWebhook,
  signWebhookToken,
  webhookKey,
  type KeySet,
  type PublicJwk,
  type WebhookKey,
} from "@parley/a2a/internal/webhooks/index";
import { createSeal, hkdf, hkdfRoot, type SealKey } from "../seal/index.ts";
import type { TaskKey } from "../store/index.ts";
import type { OpenSecrets, PushSecrets, PushSigner } from "./port.ts";
import { storedJson } from "@parley/a2a/internal/base/json";

/* Keys derived from `PushOptions.keys`: for sealing the secrets of configs, and for signing deliveries. */

/** The keys of one element of `PushOptions.keys`. `id` is the `kid` of its public key. */
export interface PushKey extends SealKey {
  /** The private key for signatures (Ed25519). */
  readonly sign: WebKey;
  /** The public key of `sign`, for the key set. */
  readonly jwk: PublicJwk;
}

/** Derives the keys once. The first key seals. The other keys only open values that were sealed with them earlier. */
export type PushKeyring = () => Promise<readonly [PushKey, ...PushKey[]]>;

/** Derives a key from each element, which has 32 bytes. */
export function pushKeyring([first, ...others]: readonly [Bytes, ...Bytes[]]): PushKeyring {
  let derived: ReturnType<PushKeyring> | undefined;
  return () => (derived ??= Promise.all([derive(first), ...others.map(derive)]));
}

/** The public keys, as the server publishes them. */
export async function keySetOf(keyring: PushKeyring): Promise<KeySet> {
  return { keys: (await keyring()).map(({ jwk }) => jwk) };
}

/** Derives both keys with HKDF (RFC 5869), so that neither key reveals the other. */
async function derive(bytes: Bytes): Promise<PushKey> {
  const root = await hkdfRoot(bytes);
  const aes = { name: "AES-GCM", length: 256 };
  const seal = await crypto.subtle.deriveKey(hkdf("parley push seal 1"), root, aes, false, ["encrypt", "decrypt"]);
  const seed = new Uint8Array(await crypto.subtle.deriveBits(hkdf("parley push sign 1"), root, 256));
  // WebCrypto returns the public part of a private key only in a JWK.
  const { x = "" } = await crypto.subtle.exportKey("jwk", await ed25519Key(seed, true));
  const jwk = await publicJwk(fromBase64Url(x) as Bytes);
  return { id: jwk.kid, seal, sign: await ed25519Key(seed), jwk };
}

/** Seals the secrets of configs, and opens them. */
export interface Sealer {
  seal(secrets: PushSecrets, task: TaskKey, configId: string): Promise<string>;
  readonly open: OpenSecrets;
}

const secretsJson = storedJson<PushSecrets>();

/** Secrets are bound to agent, owner, task and config, so a secret that is copied into another row cannot be opened. */
export function createSealer(keyring: PushKeyring): Sealer {
  const { seal, open } = createSeal(keyring);
  const boundTo = ({ agent, owner, taskId }: TaskKey, configId: string): readonly string[] => [
    agent,
    owner,
    taskId,
    configId,
  ];
  return {
    seal: (secrets, task, configId) => seal(secrets, boundTo(task, configId)),
    async open(text, task, configId) {
      try {
        return await open(text, boundTo(task, configId), secretsJson);
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`Cannot open the secrets of this webhook: ${reason}`, { cause });
      }
    },
  };
}

/** Remembers the last result, because events of one config follow each other, and opening costs a tenth of a delivery. */
export function rememberLast(open: OpenSecrets): OpenSecrets {
  let last: { readonly sealed: string; readonly secrets: PushSecrets } | undefined;
  return async (sealed, task, configId) => {
    if (last?.sealed !== sealed) last = { sealed, secrets: await open(sealed, task, configId) };
    return last.secrets;
  };
}

/**
 * `v1a` is signed with each key, so a receiver that knows only the older key accepts deliveries until that key is removed (Standard
 * Webhooks, key rotation). A JWT is signed with the first key, and names it. The two kinds of signed text cannot be confused, because the text
 * of a webhook has at least two dots, and the text of a JWT has one.
 *
 * @param issuer - `iss` of JWTs: the public URL of the server.
 */
export function createSigner(keyring: PushKeyring, issuer: string): PushSigner {
  return {
    async signature(signed, secret) {
      const keys: readonly WebhookKey[] = (await keyring()).map(({ sign }) => ({ form: "v1a", key: sign }));
      return signWebhook(secret === undefined ? keys : [await webhookKey(secret), ...keys], signed);
    },
    async jwt(signed, { taskId, audience }) {
      const [{ sign, id }] = await keyring();
      return signWebhookToken(sign, id, { ...signed, issuer, taskId, audience: audienceOf(audience) });
    },
  };
}
