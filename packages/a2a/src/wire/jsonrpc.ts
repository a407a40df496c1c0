import type { A2AError } from "../model/index.ts";
import type { OperationName } from "../protocol/index.ts";
import type { ClientCodec, Codec, Shapes } from "./codec.ts";

/** What JSON-RPC (A2A 1.0 §9) needs of a version, beside its shapes. */
export interface JsonRpcWire extends Shapes {
  /** Clients that ask for a stream read events alone, where the answer is an error too. */
  readonly streamsErrors?: boolean;
  /** The operation that a method names, if this version has it. */
  operation(method: string): OperationName | undefined;
  /** The method that names an operation. */
  method(operation: OperationName): string;
  /** An error as the `error` member of a JSON-RPC response, and back. */
  encodeError(error: A2AError): unknown;
  /** Reads the `error` member of a response. */
  decodeError(value: unknown): A2AError;
}

/** A version that JSON-RPC can speak. */
export interface JsonRpcCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly JSONRPC: JsonRpcWire };
}

/** As much of it as a client needs: one that is made of this alone leaves the server's half behind. */
export interface JsonRpcClientCodec extends ClientCodec {
  readonly bindings: {
    readonly JSONRPC: Pick<
      JsonRpcWire,
      "method" | "encodeRequest" | "decodeResponse" | "decodeEvent" | "endsStream" | "decodeError"
    >;
  };
}

/** Whether a version can be spoken over JSON-RPC. */
export function speaksJsonRpc(codec: Codec): codec is JsonRpcCodec {
  return codec.bindings["JSONRPC"] !== undefined;
}
