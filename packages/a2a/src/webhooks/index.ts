export * from "./names.ts";
export { publicJwk, type KeySet, type PublicJwk } from "./key-set.ts";
export {
  audienceOf,
  signWebhookToken,
  verifyWebhookToken,
  type VerifyTokenOptions,
  type WebhookTokenContent,
} from "./jwt.ts";
export {
  ed25519Key,
  isWebhookSecret,
  signWebhook,
  verifyWebhook,
  webhookKey,
  type ReceivedWebhook,
  type SignedContent,
  type VerifyWebhookOptions,
  type WebhookKey,
} from "./standard.ts";
