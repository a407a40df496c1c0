import type { AgentCard } from "../../model/index.ts";
import type { OperationName, Operations, Reply, StreamItem } from "../../protocol/index.ts";
import { decodeRequest } from "./decode.ts";

/**
 * The request as it may go out: a copy with the members that this version knows and no others, since some servers turn
 * unknown ones away. Throws `InvalidParams` for what a server would refuse.
 */
export function encodeRequest<Name extends OperationName>(
  operation: Name,
  request: Operations[Name]["request"],
): Operations[Name]["request"] {
  return decodeRequest(operation, request, "copy");
}

/** The model is the 1.0 JSON. */
export function responseOf<Name extends OperationName>(
  _operation: Name,
  reply: Reply<Operations[Name]["response"]>,
): unknown {
  return reply.payload.read();
}

/** Text that is at hand goes out as it is. */
export function encodeResponse<Name extends OperationName>(
  _operation: Name,
  reply: Reply<Operations[Name]["response"]>,
): string {
  return reply.payload.json;
}

/** Text that is large and at hand in pieces. */
export function responsePieces<Name extends OperationName>(
  _operation: Name,
  reply: Reply<Operations[Name]["response"]>,
): readonly string[] | undefined {
  return reply.payload.pieces;
}

export function eventOf(item: StreamItem): unknown {
  return item.payload.read();
}

export function encodeEvent(item: StreamItem): string {
  return item.payload.json;
}

export function eventPieces(item: StreamItem): readonly string[] | undefined {
  return item.payload.pieces;
}

export function encodeCard(card: AgentCard): unknown {
  return card;
}
