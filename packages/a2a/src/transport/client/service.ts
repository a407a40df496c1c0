import { A2AError, stateKinds, type TaskState } from "../../model/index.ts";
import {
  type AgentService,
  type CallContext,
  closesAfter,
  finishing,
  type OperationName,
  type Operations,
  Payload,
  stateOf,
  type StreamItem,
  type StreamName,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "../../protocol/index.ts";
import type { Shapes } from "../../wire/codec.ts";
import type { ClientHost } from "./binding.ts";

/** What the bindings of a client share, whatever carries their calls. */

/** A call whose request is encoded in the shapes of a version. */
export interface EncodedCall<Name extends OperationName = OperationName> {
  /** The operation. */
  readonly operation: Name;
  /** The request, as JSON that has not been written yet. */
  readonly params: unknown;
  /** The context of the call. */
  readonly context: CallContext;
  /**
   * Longest wait for the beginning of the answer, in milliseconds; `false` where there is no limit. There is none for a send
   * that waits for its task (A2A 1.0 §3.2.2), unless the call has one.
   */
  readonly timeout: number | false;
}

/** Sends the calls of a client. Both methods throw what the server refuses a call with. */
export interface ClientTransport {
  /** Sends a call. Returns its result as parsed JSON, and the URIs of the extensions that the server activated. */
  call(call: EncodedCall<UnaryName>): Promise<{ readonly result: unknown; readonly extensions?: readonly string[] }>;
  /** Sends a call that is answered with events. `readEvents()` makes their `batches`. */
  stream(call: EncodedCall<StreamName>): Promise<StreamReply>;
}

/**
 * Makes the service of a binding. It encodes requests in the shapes of a version, has `transport` send them, and decodes the
 * results.
 */
export function clientService(
  shapes: Pick<Shapes, "encodeRequest" | "decodeResponse">,
  host: ClientHost,
  transport: ClientTransport,
): AgentService {
  function encoded<Name extends OperationName>(
    operation: Name,
    request: Operations[Name]["request"],
    context: CallContext,
  ): EncodedCall<Name> {
    const { configuration } = request as Operations["SendMessage"]["request"];
    const waits = operation === "SendMessage" && !configuration?.returnImmediately;
    const timeout = context.outgoing?.connectTimeout ?? (!waits && host.limits.connectTimeout);
    // The request of a method of an extension is JSON on every wire, and so is its response.
    const params = context.outgoing?.method ? request : shapes.encodeRequest(operation, request);
    return { operation, params, context, timeout };
  }
  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      context: CallContext,
    ) {
      const { result, ...reply } = await transport.call(encoded<UnaryName>(operation, request, context));
      const response = context.outgoing?.method ? (result as never) : shapes.decodeResponse<Name>(operation, result);
      return { ...reply, payload: new Payload(response) };
    },
    stream: async (operation, request, context) => transport.stream(encoded<StreamName>(operation, request, context)),
  };
}

/** The events of a stream as they arrive. */
export interface EventSource<Raw> {
  /** The events, in the batches that they arrive in. Throws what ends the stream early. */
  readonly batches: AsyncIterable<readonly Raw[]>;
  /** Reads one event: its JSON, and its number in the log of the task where the server sends one. Throws an error that it carries. */
  read(raw: Raw): { readonly event: unknown; readonly seq?: number | undefined };
  /** Ends the request. Called when the stream is over and when its reader leaves it, read or not. */
  close(): void;
}

/**
 * Decodes the events of a stream, up to the event that ends it. The iteration throws `ConnectionLost` where the source ends
 * earlier.
 */
export function readEvents<Raw>(
  shapes: Pick<Shapes, "decodeEvent" | "endsStream">,
  operation: StreamName,
  source: EventSource<Raw>,
): StreamReply["batches"] {
  let ends: boolean | undefined;
  const itemOf = (raw: Raw): StreamItem => {
    const { event, seq } = source.read(raw);
    ends = shapes.endsStream?.(event);
    return { payload: new Payload(shapes.decodeEvent(event)), ...(seq !== undefined && { seq }) };
  };
  const batches = untilOver(source.batches, operation, itemOf, () => ends);
  return finishing(batches, () => source.close());
}

/**
 * The items of a stream, until the protocol says that it is over. Throws `ConnectionLost` where the source ends earlier.
 *
 * @param itemOf - Reads one event. Where it throws, the events before that one are delivered first.
 * @param ends - Whether the event that was read last says itself that it is the last one. Otherwise its state decides.
 * @param retryAfter - When a reader whose stream broke may reconnect, in seconds.
 */
export async function* untilOver<Raw>(
  source: AsyncIterable<readonly Raw[]>,
  operation: StreamName,
  itemOf: (raw: Raw) => StreamItem,
  ends: () => boolean | undefined,
  retryAfter?: () => number | undefined,
): AsyncGenerator<readonly StreamItem[], void, void> {
  let state: TaskState | undefined;
  let first = true;
  for await (const raws of source) {
    const batch: StreamItem[] = [];
    let over = false;
    let broken: { readonly error: unknown } | undefined;
    try {
      for (const raw of raws) {
        const item = itemOf(raw);
        batch.push(item);
        const event = item.payload.value;
        state = stateOf(event) ?? state;
        // Some servers begin the stream of a message to an interrupted task with the task as it was. More events follow.
        const opening = first && event.task !== undefined && state !== undefined && stateKinds[state] === "interrupted";
        first = false;
        over = ends() || (!opening && closesAfter(event, operation));
        if (over) break;
      }
    } catch (thrown) {
      broken = { error: thrown };
    }
    if (batch.length > 0) yield batch;
    if (broken !== undefined) throw broken.error;
    if (over) return;
  }
  // Some servers end a stream while its task is interrupted (§11.7). In any other state events are missing.
  if (state === undefined || stateKinds[state] === "active") {
    throw new A2AError("ConnectionLost", "The stream ended before its task did", { retryAfter: retryAfter?.() });
  }
}
