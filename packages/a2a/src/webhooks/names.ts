/* What senders and receivers of webhooks both know. The formats are those of Standard Webhooks, if it has one. */

/** The headers of a webhook, in lower case. */
export const webhookHeaders = {
  /** Names the delivery. It is the same in every attempt, so that a receiver can tell a repetition. */
  id: "webhook-id",
  /** When this attempt was made, in seconds since the Unix epoch. It is signed. */
  timestamp: "webhook-timestamp",
  /** Signatures with a space between them: `v1,` (HMAC-SHA256) and `v1a,` (Ed25519), each in base64. */
  signature: "webhook-signature",
  /** The secret of the receiver (`TaskPushNotificationConfig.token`). */
  token: "x-a2a-notification-token",
  /** The same, as the Go SDK names it. Receivers read both. */
  tokenOfGo: "a2a-notification-token",
  /** The version of the protocol that the body is written in. */
  version: "a2a-version",
  /** The number of the delivery among those of its config, from 1, without gaps. */
  sequence: "parley-sequence",
  /** The generation of the task at the event. */
  generation: "parley-generation",
  /** Which attempt of the delivery this is, from 1. */
  attempt: "parley-attempt",
} as const;

/**
 * URI of the extension for signed webhooks. Every webhook has a `v1a` signature of Standard Webhooks, and the card says in `params`
 * with which keys, and what a config can ask for in addition: see `WebhooksParams`.
 */
export const webhooksExtension = "urn:parley:extension:webhooks:v1";

/** `params` of the extension `webhooks` on a card. */
export interface WebhooksParams {
  /** URL of the key set (RFC 7517). Each key has the member `whpk` too, as the libraries of Standard Webhooks take it. */
  readonly keySet: string;
  /** `iss` of the JWTs. */
  readonly issuer: string;
  /**
   * What `authentication.scheme` may ask for: `StandardWebhooks` with a `whsec_` secret, `Bearer` without credentials for a JWT,
   * `MutualTLS` for the client certificate.
   */
  readonly schemes: readonly string[];
}

/** The scheme of `authentication` that asks for a signature with a shared secret, `whsec_…` in its credentials. */
export const standardWebhooksScheme = "StandardWebhooks";

/** The scheme of `authentication` that asks for the client certificate of the server. */
export const mutualTlsScheme = "MutualTLS";

/** The path of a server's key set, below the path of its public URL. */
export const keySetPath = "/.well-known/jwks.json";

/**
 * The member of `metadata` that marks a reference: an event whose body would have been too large. Its value is that size, in bytes.
 * Content is left out of it, and the receiver reads the task with GetTask. An artifact has one empty text as its parts then, and
 * a status has no message.
 */
export const referenceKey: string = `${webhooksExtension}/reference`;

/**
 * The id of a delivery: the random id of its config, which has no dot, its number, and the `seq` of the task's log that it reports
 * up to. All are signed with the id. A delivery that is repeated after a crash may report more than the first time, so its
 * number alone would not tell it from a repetition.
 */
export function deliveryId(stream: string, sequence: number, seq: number): string {
  return `${stream}_${sequence}_${seq}`;
}

/** The config and the number in an id. `undefined` if the id has another form, as those of other senders. */
export function readDeliveryId(id: string): { readonly stream: string; readonly sequence: number } | undefined {
  const [, stream, digits = ""] = /^([^.]{1,128})_([1-9]\d{0,14})_\d{1,15}$/.exec(id) ?? [];
  return stream === undefined ? undefined : { stream, sequence: Number(digits) };
}
