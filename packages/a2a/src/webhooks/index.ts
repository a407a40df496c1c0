export * from "./names.ts";
export {
  publicJwk,
  type KeySet,
  type PublicJwk,
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
