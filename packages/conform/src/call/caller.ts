import type { AgentCard } from "@parley/a2a";
import type { OperationName } from "@parley/a2a/protocol";
import type { WireError } from "../judge/errors.ts";
import type { Json, JsonMap, Operation, Transport } from "../acts/format.ts";
import type { Bounds } from "./http.ts";
import type { LiveStream } from "./stream.ts";

/** What came of a call: a value, an error, or a stream that is still open. */
export interface Outcome {
  /** Of HTTP; 200 for a call over gRPC that succeeded. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The answer without its envelope. */
  readonly value?: Json;
  readonly error?: WireError;
  readonly stream?: OpenStream;
  /** The body as it stands on the wire. */
  readonly body?: Json;
}

/** A stream, and how its binding wraps each event. */
export interface OpenStream {
  readonly live: LiveStream;
  /** The StreamResponse in one event. Throws BrokenWire where there is none. */
  payload(raw: Json): { readonly value: Json } | { readonly error: WireError };
}

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * One binding, as a test sees it. Gives what the server wrote and nothing that a lenient decoder made of it. A new binding
 * is one more of these.
 */
export interface Caller {
  /** As ACTS names the binding; the URI of a custom one. */
  readonly transport: string;
  /** The binding in whose words errors are given. */
  readonly errors: Transport;
  /** Whether the headers of answers are seen. The card's are in any case: it is fetched. */
  readonly headers: boolean;
  /** Whether a call can name any version of the protocol, those that the server does not speak among them. */
  readonly sendsAnyVersion: boolean;
  /** A stream comes back where the server answers with one, whatever was asked for: that is the test's to judge. */
  call(
    operation: Operation,
    params: JsonMap,
    headers: Readonly<Record<string, string>>,
    timeout: number,
  ): Promise<Outcome>;
  /** A request in the binding's own terms; absent where there are no words for one. */
  raw?(request: RawRequest, timeout: number): Promise<Outcome>;
}

/** Where a binding is, where the card is, and what every request there is bound by. */
export interface Place {
  /** As the card names the binding. */
  readonly binding: string;
  readonly url: string;
  readonly tenant?: string;
  readonly cardUrl: string;
  readonly card: AgentCard;
  readonly bounds: Bounds;
}

/** As the specification names them (§5.3); the card is not called but fetched. */
export const methods: Readonly<Partial<Record<Operation, OperationName>>> = {
  send_message: "SendMessage",
  send_streaming_message: "SendStreamingMessage",
  get_task: "GetTask",
  list_tasks: "ListTasks",
  cancel_task: "CancelTask",
  subscribe_to_task: "SubscribeToTask",
  create_push_config: "CreateTaskPushNotificationConfig",
  get_push_config: "GetTaskPushNotificationConfig",
  list_push_configs: "ListTaskPushNotificationConfigs",
  delete_push_config: "DeleteTaskPushNotificationConfig",
  get_extended_agent_card: "GetExtendedAgentCard",
};

const streaming: readonly Operation[] = ["send_streaming_message", "subscribe_to_task"];

/** Whether the operation answers with a stream (A2A 1.0 §3.5.2). */
export function streams(operation: Operation): boolean {
  return streaming.includes(operation);
}
