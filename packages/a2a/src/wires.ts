/**
 * The versions of the protocol, and the port that they implement: for bindings and for tools.
 * @packageDocumentation
 */

import { codecV03 } from "./wire/v03/index.ts";
import { codecV1 } from "./wire/v1/index.ts";
import { draftOf } from "./wire/v11/index.ts";
import type { JsonRpcCodec, RestCodec, Codec } from "./wire/codec.ts";

export { codecV1, jsonRpcClientV1 } from "./wire/v1/index.ts";
export { codecV03 } from "./wire/v03/index.ts";
export {
  grpcWire,
  type GrpcCodec,
  type GrpcWire,
  type JsonRpcCodec,
  type JsonRpcWire,
  type RestCodec,
  type RestRoute,
  type RestWire,
} from "./wire/codec.ts";
export { byVersion, methodShapes, versionOfSilence, type Codec, type OwnShapes, type Shapes } from "./wire/codec.ts";

/** Versions of the protocol. */
export type ProtocolVersion = "1.0" | "0.3";

/** All versions, the preferred one first. */
export const wires: Readonly<Record<ProtocolVersion, JsonRpcCodec & RestCodec>> = { "1.0": codecV1, "0.3": codecV03 };

/** The draft of 1.1, for clients that request it. */
export const codecV11: JsonRpcCodec & RestCodec = /* @__PURE__ */ draftOf(codecV1);

/** Drafts by the version that they extend. */
const drafts: Readonly<Record<string, JsonRpcCodec & RestCodec>> = { "1.0": codecV11 };

/** The drafts that extend these versions. A server speaks them with their version, and no card lists them. */
export function draftsOf(codecs: readonly Codec[]): readonly Codec[] {
  return codecs.flatMap(({ version }) => drafts[version] ?? []);
}
