/**
 * Extensions of our own that a card declares (A2A 1.0 §4.6.1): promises about this server which other clients may rely
 * on and which our client relies on nowhere else. They are always in force and need no activation.
 */

/**
 * SSE events carry the place of the event in the log of its task as `id`, and a `SubscribeToTask` with that id as
 * `Last-Event-ID` continues right after it, without a snapshot in between (D4).
 */
export const resumeExtension = "urn:parley:extension:stream-resume:v1";

/** A send that is repeated with the same `messageId` and content joins the first one and never runs twice (D8). Other content under that id is another message. */
export const idempotentSendExtension = "urn:parley:extension:idempotent-send:v1";
