import type {
  OperationName,
  Principal,
  Reply,
  StreamName,
  StreamReply,
  UnaryName,
  UnaryOperations,
  UniversalRequest,
} from "../../protocol/index.ts";
import type { Codec, Shapes } from "../../wire/codec.ts";
import { serviceOf, type ServerHost } from "./host.ts";
import { requestContext, type ServerContext } from "./request.ts";

/** An operation that was called: its answer, or its stream, is on the way. */
export type Invoked =
  | {
      readonly stream: false;
      readonly operation: UnaryName;
      readonly context: ServerContext;
      readonly reply: Promise<Reply<UnaryOperations[UnaryName]["response"]>>;
    }
  | {
      readonly stream: true;
      readonly operation: StreamName;
      readonly context: ServerContext;
      readonly reply: Promise<StreamReply>;
    };

/** What a byte of an answer takes in memory where its text goes out as it is: a character has one byte there, or two. */
const asText = 2;

/** The same where it is converted: the text, what it says, and what goes out in its place. */
export const converted = 4;

/**
 * Calls an operation with what a request says, as the binding's shapes read it. Throws where that cannot be read.
 *
 * Whoever writes the answer ends the context when it is out, and when there is none.
 *
 * @param tenant - The tenant that the address names, where requests of the version have no field for it.
 * @param weight - What a byte of the answer takes in memory, in bytes.
 */
export function invoke(
  host: ServerHost,
  codec: Codec,
  shapes: Shapes,
  operation: OperationName,
  input: unknown,
  request: UniversalRequest,
  principal: Principal,
  tenant?: string,
  weight: number = shapes.responsePieces === undefined ? converted : asText,
): Invoked {
  const params = shapes.decodeRequest(operation, input);
  const found = serviceOf(host, tenant ?? params.tenant);
  const service = codec.adapt === undefined ? found : codec.adapt(found);
  const stream = host.operations[operation]?.stream === true;
  const context = requestContext(request, principal, codec.version, stream, host.limits.answers, weight);
  if (stream) {
    const name = operation as StreamName;
    return { stream, operation: name, context, reply: service.stream(name, params as never, context) };
  }
  const name = operation as UnaryName;
  return { stream, operation: name, context, reply: service.call(name, params, context) };
}
