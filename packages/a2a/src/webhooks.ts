/**
 * Receives webhooks: `webhookReceiver()`, the memory of handled deliveries, and the signatures of Standard Webhooks. The option `push` of
 * `@parley/server` sends them.
 * @packageDocumentation
 */

import type { WebhookReceiver, WebhookReceiverOptions } from "./receiver/port.ts";
import { createReceiver } from "./receiver/receiver.ts";
import { codecV03, codecV1 } from "./wires.ts";

/**
 * Receives the webhooks of agents: verifies and deduplicates them, and passes their events to your code in order. It accepts bodies of 1.0
 * and of 0.3, including other SDKs' webhooks.
 *
 * @throws A2AError `InvalidParams` if an option is missing or wrong.
 *
 * @example
 * ```ts
 * const receiver = webhookReceiver({
 *   url: "https://app.example.com/webhooks",
 *   accept: { keySet: "https://agents.example.com/.well-known/jwks.json" },
 *   onEvent: ({ statusUpdate }, { taskId }) => console.log(taskId, statusUpdate?.status.state),
 * });
 * await client.sendMessage({ message: "Go", configuration: { taskPushNotificationConfig: receiver.config() } });
 * ```
 */
export function webhookReceiver(options: WebhookReceiverOptions): WebhookReceiver {
  return createReceiver(options, { streamResponse: codecV1, kind: codecV03 });
}

export { webhookMemory, type WebhookMemoryOptions } from "./receiver/order.ts";
export type {
  HandledDelivery,
  MessageSender,
  RecalledDelivery,
  TaskReader,
  TrustJwt,
  TrustKeySet,
  TrustPublicKey,
  TrustSecret,
  TrustToken,
  WebhookClient,
  WebhookConfigInit,
  WebhookDelivery,
  WebhookListener,
  WebhookMemory,
  WebhookReading,
  WebhookReceiver,
  WebhookReceiverOptions,
  WebhookSubscription,
  WebhookTrust,
} from "./receiver/port.ts";

// For your own senders and receivers.
export {
  signWebhook,
  verifyWebhook,
  webhookKey,
  webhookHeaders,
  webhooksExtension,
  type ReceivedWebhook,
  type SignedContent,
  type VerifyWebhookOptions,
  type WebhookKey,
  type WebhooksParams,
} from "./webhooks/index.ts";
