import type { OperationName } from "@parley/a2a/protocol";

/** The protocol of the binding. A frame is one JSON object in one WebSocket text message. */

/** The name on cards. A custom binding is named by a URI (A2A 1.0 §5.8). */
export const bindingName = "https://parley.example/bindings/websocket/v1";

/** The WebSocket subprotocol (RFC 6455 §1.9). */
export const subprotocol = "a2a.v1";

/** Maximum bytes of events sent to a reader that has not read them yet. A larger event is sent alone. */
export const window: number = 256 * 1024;

/** Service parameters: what would be headers over HTTP, by lower-case names (A2A 1.0 §3.2.6). */
export type Headers = Readonly<Record<string, string>>;

/** From the client: a call. `id` is its number, used once on a connection, and comes first in the frame. */
export interface CallFrame {
  readonly id: number;
  readonly method: OperationName;
  readonly params: unknown;
  readonly headers?: Headers;
}

/** From the client. */
export type ClientFrame =
  | CallFrame
  /** The reader of a stream has read this many further events. */
  | { readonly id: number; readonly taken: number }
  /** The client no longer waits for the answer. */
  | { readonly id: number; readonly leave: true };

/** From the server, for one call. A frame without an `id` is a keep-alive. */
export interface ServerFrame {
  readonly id?: number;
  /** The answer of an operation without a stream. */
  readonly result?: unknown;
  /** A stream begins. */
  readonly stream?: true;
  /** One event of the stream. */
  readonly event?: unknown;
  /** The event's number in its task: to continue after it, a client sends it as the header `last-event-id`. */
  readonly seq?: number;
  /** The stream is over. */
  readonly end?: true;
  /** The call or its stream has failed: the error's body over HTTP in this version. */
  readonly error?: unknown;
  /** The HTTP status of an error. */
  readonly status?: number;
  readonly headers?: Headers;
}
