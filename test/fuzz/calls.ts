import type { OperationName } from "@parley/a2a/protocol";
import { encode } from "../../packages/grpc/src/protobuf/encode.ts";
import { frameOf } from "../../packages/grpc/src/frames.ts";
import { serviceV03, serviceV1, type A2AMethod } from "../../packages/grpc/src/services.ts";
import { byteDamages, nestedValue, type ByteDamage } from "./bytes.ts";
import { build, pathsOf, type Shape } from "./fields.ts";
import { saidBy, type RawCall } from "./grpc.ts";
import type { Random } from "./random.ts";

/** Requests as gRPC calls. */

/** gRPC services, by version. */
export const services = { "1.0": serviceV1(), "0.3": serviceV03() } as const;

export type GrpcVersion = keyof typeof services;

export interface Call {
  readonly request: RawCall;
  /** The decoded bytes as JSON. `undefined` if decoding fails. */
  readonly said: string | undefined;
}

function callOf(method: A2AMethod, bytes: Uint8Array): Call {
  return { request: { path: method.path, frames: frameOf(bytes) }, said: said(method, bytes) };
}

/** JSON text as a call. `undefined` if protobuf cannot express it. */
export function callSaying(version: GrpcVersion, operation: OperationName, text: string): Call | undefined {
  const method = services[version].operations.get(operation);
  if (method === undefined) return undefined;
  try {
    return callOf(method, encode(method.input, JSON.parse(text)));
  } catch {
    return undefined;
  }
}

function said(method: A2AMethod, bytes: Uint8Array): string | undefined {
  try {
    return saidBy(method, bytes);
  } catch {
    return undefined;
  }
}

export interface DamagedCall {
  readonly name: string;
  readonly operation: OperationName;
  readonly call: Call;
}

/** A valid request as JSON text. */
export interface GoodCall {
  readonly name: string;
  readonly operation: OperationName;
  readonly text: string;
}

/** A valid request for each field of each operation. */
export function* goodCalls(
  requests: ReadonlyMap<OperationName, Shape>,
  fill: (text: string) => string,
): Generator<GoodCall> {
  for (const [operation, shape] of requests) {
    for (const path of [[], ...pathsOf(shape)]) {
      const text = fill(JSON.stringify(build(shape, path, (value) => value)));
      yield { name: `${operation}.${path.join(".")}`, operation, text };
    }
  }
}

const nested = [20, 60, 100, 500, 4_000].flatMap((levels) =>
  [true, false].map((isList) => [levels, nestedValue(levels, isList)] as const),
);

/** Valid requests with each kind of damage to their bytes, and requests whose values are nested too deeply. */
export function* damagedCalls(version: GrpcVersion, goods: Iterable<GoodCall>, random: Random): Generator<DamagedCall> {
  for (const { name, operation, text } of goods) {
    const method = services[version].operations.get(operation) as A2AMethod;
    const bytes = encode(method.input, JSON.parse(text));
    for (const [damage, change] of Object.entries<ByteDamage>(byteDamages)) {
      yield { name: `${version} ${name}, ${damage}`, operation, call: callOf(method, change(bytes, random)) };
    }
  }
  for (const [operation, method] of services[version].operations) {
    // The field number is the metadata of one request, but unknown in another.
    for (const [levels, bytes] of nested) {
      yield { name: `${version} ${operation}, ${levels} levels`, operation, call: callOf(method, bytes) };
    }
  }
}
