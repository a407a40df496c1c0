import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { OperationName } from "@parley/a2a/internal/protocol/index";
import type { WireError } from "../judge/errors.ts";
import type { Json, JsonMap, Operation, Transport } from "../acts/format.ts";
import type { Bounds } from "./http.ts";
import type { LiveStream } from "./stream.ts";

/** The outcome of a call: a value, an error, or a stream that is still open. */
export interface Outcome {
  /** The HTTP status; 200 for a call over gRPC that succeeded. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The answer without its envelope. */
  readonly value?: Json;
  readonly error?: WireError;
  readonly stream?: OpenStream;
  /** The body with its envelope. */
  readonly body?: Json;
}

/** A stream, and how its binding wraps each event. */
export interface OpenStream {
  readonly live: LiveStream;
  /** The StreamResponse in one event. Throws InvalidAnswer if there is none. */
  payload(raw: Json): { readonly value: Json } | { readonly error: WireError };
}

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * Calls a server over one binding, for tests. Returns what the server wrote, and not what a lenient decoder makes of it.
 */
export interface Caller {
  /** The name that ACTS has for the binding, or the URI of a custom one. */
  readonly transport: string;
  /** The binding whose codes the errors have. */
  readonly errors: Transport;
  /** Whether tests can see the headers of answers. Those of the card they always can: it comes over HTTP. */
  readonly headers: boolean;
  /** Whether a call can name any version of the protocol, those that the server does not speak among them. */
  readonly sendsAnyVersion: boolean;
  /** Calls an operation. The outcome is a stream where the server answers with one, even if none was asked for: the test judges that. */
  call(
    operation: Operation,
    params: JsonMap,
    headers: Readonly<Record<string, string>>,
    timeout: number,
  ): Promise<Outcome>;
  /** Sends a raw HTTP request. Absent where the binding has none. */
  raw?(request: RawRequest, timeout: number): Promise<Outcome>;
}

/** An interface of the card, and the bounds of every request to it. */
export interface Place {
  /** The name that the card has for the binding. */
  readonly binding: string;
  readonly url: string;
  readonly tenant?: string;
  readonly cardUrl: string;
  readonly card: AgentCard;
  readonly bounds: Bounds;
}

/** The names of the operations in the specification (§5.3). The card is not an operation there: it is fetched over HTTP. */
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
