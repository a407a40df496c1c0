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

/**
 * Calls an operation with what a request says, as the binding's shapes read it. Throws where that cannot be read.
 *
 * @param tenant - The tenant that the address names, where requests of the version have no field for it.
 */
export function invoke(
  binding: Binding,
  codec: Codec,
  shapes: Shapes,
  operation: OperationName,
  input: unknown,
  request: UniversalRequest,
  principal: Principal,
  tenant?: string,
): Invoked {
  const params = shapes.decodeRequest(operation, input);
  const found = serviceOf(binding, tenant ?? params.tenant);
  const service = codec.adapt === undefined ? found : codec.adapt(found);
  const stream = binding.operations[operation]?.stream === true;
  const context = callContext(request, principal, codec.version, stream);
  if (stream) {
    const name = operation as StreamName;
    return { stream, operation: name, reply: service.stream(name, params as never, context) };
  }
  const name = operation as UnaryName;
  return { stream, operation: name, reply: service.call(name, params, context) };
}
