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
import type { Codec } from "../../wire/codec.ts";
import { serviceOf, type Binding } from "./binding.ts";
import { callContext } from "./request.ts";

/** An operation that was called: its answer, or its stream, is on the way. */
export type Invoked =
  | {
      readonly stream: false;
      readonly operation: UnaryName;
      readonly reply: Promise<Reply<UnaryOperations[UnaryName]["response"]>>;
    }
  | { readonly stream: true; readonly operation: StreamName; readonly reply: Promise<StreamReply> };

/** Calls an operation with what a request says, as its codec reads it. Throws where that cannot be read. */
export function invoke(
  binding: Binding,
  codec: Codec,
  operation: OperationName,
  input: unknown,
  request: UniversalRequest,
  principal: Principal,
): Invoked {
  const params = codec.decodeRequest(operation, input);
  const service = serviceOf(binding, params.tenant);
  const stream = binding.operations[operation]?.stream === true;
  const context = callContext(request, principal, codec.version, stream);
  if (stream) {
    const name = operation as StreamName;
    return { stream, operation: name, reply: service.stream(name, params as never, context) };
  }
  const name = operation as UnaryName;
  return { stream, operation: name, reply: service.call(name, params, context) };
}
