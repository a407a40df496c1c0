import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { StreamName, UnaryName } from "@parley/a2a/internal/protocol/index";
import type { WireError } from "../judge/errors.ts";
import type { Json, JsonMap, Operation, Transport } from "../acts/format.ts";
import type { Bounds } from "./http.ts";
import type { LiveStream } from "./stream.ts";

/** The outcome of a call: a value, an error, or an open stream. */
export interface Outcome {
  /** The HTTP status. 200 for a successful gRPC call. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The response without its envelope. */
  readonly value?: Json;
  readonly error?: WireError;
  readonly stream?: OpenStream;
  /** The body with its envelope. */
  readonly body?: Json;
}

/** A stream, with the envelopes of its binding. */
export interface OpenStream {
  readonly live: LiveStream;
  /** The StreamResponse in an event. Throws InvalidAnswer if it has none. */
  payload(raw: Json): { readonly value: Json } | { readonly error: WireError };
}

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Calls a server over one binding. Returns what the server sent, before any lenient decoder changes it. */
export interface Caller {
  /** The binding's name in ACTS, or the URI of a custom binding. */
  readonly transport: string;
  /** The binding that defines the error codes. */
  readonly errors: Transport;
  /** Whether tests see response headers. They always see the card's headers, because it is fetched over HTTP. */
  readonly headers: boolean;
  /** Whether a call can name any protocol version, including unsupported ones. */
  readonly sendsAnyVersion: boolean;
  /** Calls an operation. The outcome is a stream if the server sends one, even if the operation does not stream: the test checks that. */
  call(
    operation: Operation,
    params: JsonMap,
    headers: Readonly<Record<string, string>>,
    timeout: number,
  ): Promise<Outcome>;
  /** Sends a raw HTTP request. Absent if the binding does not use HTTP requests. */
  raw?(request: RawRequest, timeout: number): Promise<Outcome>;
}

/** An interface of the card, and the limits of each request to it. */
export interface Place {
  /** The binding's name on the card. */
  readonly binding: string;
  readonly url: string;
  readonly tenant?: string;
  readonly cardUrl: string;
  readonly card: AgentCard;
  readonly bounds: Bounds;
}

type Method =
  | { readonly name: UnaryName; readonly streams?: false }
  | { readonly name: StreamName; readonly streams: true };

/** The operations by their names in the specification (§5.3). Without the card, because it is fetched over HTTP. */
export const methods: Readonly<Partial<Record<Operation, Method>>> = {
  send_message: { name: "SendMessage" },
  send_streaming_message: { name: "SendStreamingMessage", streams: true },
  get_task: { name: "GetTask" },
  list_tasks: { name: "ListTasks" },
  cancel_task: { name: "CancelTask" },
  subscribe_to_task: { name: "SubscribeToTask", streams: true },
  create_push_config: { name: "CreateTaskPushNotificationConfig" },
  get_push_config: { name: "GetTaskPushNotificationConfig" },
  list_push_configs: { name: "ListTaskPushNotificationConfigs" },
  delete_push_config: { name: "DeleteTaskPushNotificationConfig" },
  get_extended_agent_card: { name: "GetExtendedAgentCard" },
};

/** Whether the operation responds with a stream (A2A 1.0 §3.5.2). */
export function streams(operation: Operation): boolean {
  return methods[operation]?.streams === true;
}
