/**
 * Extensions of this project that a card declares (A2A 1.0 §4.6.1). They are promises of the server. Any client may rely on
 * them, and ours does so only where the card has them. They are always active.
 */

/**
 * URI of the extension for streams that can be resumed. The `id` of a server-sent event is the number of the event in the
 * log of its task. A `SubscribeToTask` with this id as `Last-Event-ID` continues right after that event, without the
 * task as its first event.
 */
export const resumeExtension = "urn:parley:extension:stream-resume:v1";

/**
 * URI of the extension for sends that can be repeated. A send with the `messageId` and content of an earlier one gets the
 * answer of that one, and the agent is not called again. Other content under the same id is a new message.
 */
export const idempotentSendExtension = "urn:parley:extension:idempotent-send:v1";
