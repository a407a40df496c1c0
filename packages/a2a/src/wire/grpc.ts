import type { WireErrorCode } from "../model/index.ts";
import type { Codec, OwnShapes } from "./codec.ts";

/** What gRPC (A2A 1.0 §10) needs of a version: its messages as ProtoJSON, and its errors as REST writes them (§11.6). */
export interface GrpcWire extends OwnShapes {
  /** Statuses of errors, by name, where they are not those of A2A 1.0 §5.4. */
  readonly statuses?: Readonly<Partial<Record<WireErrorCode, string>>>;
}

/** A version that says something of gRPC. Any other is spoken in its own shapes. */
export interface GrpcCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly GRPC: GrpcWire };
}

/** What a version needs for gRPC: what it says itself, or its general shapes. */
export function grpcWire(codec: Codec | GrpcCodec): GrpcWire {
  const { GRPC = codec.shapes } = codec.bindings as { readonly GRPC?: GrpcWire };
  return GRPC;
}
