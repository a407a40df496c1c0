import type { OperationName } from "@parley/a2a/protocol";
import { frameOf } from "../../../packages/grpc/src/frames.ts";
import { encode } from "../../../packages/grpc/src/protobuf/encode.ts";
import { serviceV1, type A2AMethod } from "../../../packages/grpc/src/services.ts";

/* Encodes gRPC requests and responses as bytes. */

const { operations } = serviceV1();

function methodOf(operation: OperationName): A2AMethod {
  const method = operations.get(operation);
  if (method === undefined) throw new Error(`gRPC has no ${operation}`);
  return method;
}

/** Returns the path and body of a call. */
export function grpcCall(operation: OperationName, value: unknown): { readonly path: string; readonly body: Buffer } {
  const { path, input } = methodOf(operation);
  return { path, body: Buffer.from(frameOf(encode(input, value))) };
}

/** Returns one message of a response. */
export function grpcAnswer(operation: OperationName, value: unknown): Buffer {
  return Buffer.from(frameOf(encode(methodOf(operation).output, value)));
}
