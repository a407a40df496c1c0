import {
  audienceOf,
  signWebhook,
  signWebhookToken,
  webhookKey,
  type WebhookKey,
} from "@parley/a2a/internal/webhooks/index";
import type { PushKeyring } from "./keys.ts";
import type { PushSigner } from "./port.ts";

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
