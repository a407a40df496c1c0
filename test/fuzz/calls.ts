import type { OperationName } from "@parley/a2a/protocol";
import { decode } from "../../packages/grpc/src/protobuf/decode.ts";
import { encode } from "../../packages/grpc/src/protobuf/encode.ts";
import { frameOf } from "../../packages/grpc/src/frames.ts";
import { serviceV03, serviceV1, type A2AMethod } from "../../packages/grpc/src/services.ts";
import { byteDamages, nestedValue, type ByteDamage } from "./bytes.ts";
import { build, pathsOf, type Shape } from "./fields.ts";
import type { RawCall } from "./grpc.ts";
import type { Random } from "./random.ts";

/** The same request as a call of gRPC. */

/** Services of gRPC, by the version that they speak. */
export const services = { "1.0": serviceV1(), "0.3": serviceV03() } as const;

export type GrpcVersion = keyof typeof services;

export interface Call {
  readonly request: RawCall;
  /** What its bytes say, as JSON; `undefined` where they say nothing. */
  readonly said: string | undefined;
}

function callOf(method: A2AMethod, bytes: Uint8Array): Call {
  return { request: { path: method.path, frames: frameOf(bytes) }, said: saidBy(method, bytes) };
}

/** A JSON text as a call, where it is one that protobuf has words for. */
export function callSaying(version: GrpcVersion, operation: OperationName, text: string): Call | undefined {
  const method = services[version].operations.get(operation);
  if (method === undefined) return undefined;
  try {
    return callOf(method, encode(method.input, JSON.parse(text)));
  } catch {
    return undefined;
  }
}

function saidBy(method: A2AMethod, bytes: Uint8Array): string | undefined {
  try {
    return JSON.stringify(decode(method.input, bytes));
  } catch {
    return undefined;
  }
}

export interface DamagedCall {
  readonly name: string;
  readonly operation: OperationName;
  readonly call: Call;
}

/** Good requests of every operation, each with their bytes damaged in every way. */
export function* damagedCalls(
  requests: ReadonlyMap<OperationName, Shape>,
  random: Random,
  fill: (text: string) => string,
): Generator<DamagedCall> {
  for (const [operation, method] of services["1.0"].operations) {
    const shape = requests.get(operation) as Shape;
    for (const path of [[], ...pathsOf(shape)]) {
      const bytes = encode(method.input, JSON.parse(fill(JSON.stringify(build(shape, path, (value) => value)))));
      for (const [damage, change] of Object.entries<ByteDamage>(byteDamages)) {
        const name = `${operation}.${path.join(".")}, ${damage}`;
        yield { name, operation, call: callOf(method, change(bytes, random)) };
      }
    }
    for (const levels of [20, 60, 100, 500, 4_000]) {
      for (const isList of [true, false]) {
        // As the metadata of a message, and as a field that only some of the requests have.
        const value = nestedValue(levels, isList);
        yield { name: `${operation}, ${levels} levels`, operation, call: callOf(method, value) };
      }
    }
  }
}
