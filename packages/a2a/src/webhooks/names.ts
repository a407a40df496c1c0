/* Shared by senders and receivers of webhooks. The formats are those of Standard Webhooks if it defines them. */

/** The headers of a webhook, in lower case. */
export const webhookHeaders = {
  /** The id of the delivery, the same in every attempt, so that a receiver can recognize repetitions. */
  id: "webhook-id",
  /** The time of this attempt, in seconds since the Unix epoch. It is signed. */
  timestamp: "webhook-timestamp",
  /** Signatures with a space between them: `v1,` (HMAC-SHA256) and `v1a,` (Ed25519), each in base64. */
  signature: "webhook-signature",
  /** The secret of the receiver (`TaskPushNotificationConfig.token`). */
  token: "x-a2a-notification-token",
  /** The name of the token header in the Go SDK. Receivers read both. */
  tokenOfGo: "a2a-notification-token",
  /** The protocol version of the body. */
  version: "a2a-version",
  /** The number of the delivery among its config's deliveries, from 1, without gaps. */
  sequence: "parley-sequence",
  /** The generation of the task at the event. */
  generation: "parley-generation",
  /** The number of the attempt, from 1. */
  attempt: "parley-attempt",
} as const;

/**
 * URI of the extension for signed webhooks. Every webhook has a `v1a` signature of Standard Webhooks. `params` on the card
 * have the keys, and the options that a config can request: see `WebhooksParams`.
 */
export const webhooksExtension = "urn:parley:extension:webhooks:v1";

/** `params` of the extension `webhooks` on a card. */
export interface WebhooksParams {
  /** URL of the key set (RFC 7517). Each key also has the member `whpk`, for libraries of Standard Webhooks. */
  readonly keySet: string;
  /** `iss` of the JWTs. */
  readonly issuer: string;
  /**
   * The values that `authentication.scheme` may have: `StandardWebhooks` with a `whsec_` secret, `Bearer` without credentials for a JWT,
   * `MutualTLS` for the client certificate.
   */
  readonly schemes: readonly string[];
}

/** The scheme of `authentication` for a signature with a shared secret, which its credentials contain as `whsec_…`. */
export const standardWebhooksScheme = "StandardWebhooks";

/** The scheme of `authentication` for the client certificate of the server. */
export const mutualTlsScheme = "MutualTLS";

/** The path of a server's key set, below the path of its public URL. */
export const keySetPath = "/.well-known/jwks.json";

/**
 * The member of `metadata` that marks a reference: an event whose body would be too large. Its value is that size, in bytes. The event
 * omits the content, and the receiver reads the task with GetTask: an artifact then has one empty text as its parts, and a status has
 * no message.
 */
export const referenceKey: string = `${webhooksExtension}/reference`;

/**
 * The id of a delivery: the random id of its config, which contains no dot, its number, and the last `seq` of the task's log
 * that it reports. The signature covers the id. After a crash, a delivery may be repeated with more content, so its number
 * alone would not distinguish it from a repetition.
 */
export function deliveryId(stream: string, sequence: number, seq: number): string {
  return `${stream}_${sequence}_${seq}`;
}

/** The config and the number in an id. `undefined` if the id has another form, such as from other senders. */
export function readDeliveryId(id: string): { readonly stream: string; readonly sequence: number } | undefined {
  const [, stream, digits = ""] = /^([^.]{1,128})_([1-9]\d{0,14})_\d{1,15}$/.exec(id) ?? [];
  return stream === undefined ? undefined : { stream, sequence: Number(digits) };
}
