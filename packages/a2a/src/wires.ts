/** The versions of the protocol, for bindings and tools that are put together elsewhere. */

import { codecV03 } from "./wire/v03/index.ts";
import { codecV1 } from "./wire/v1/index.ts";
import { draftOf } from "./wire/v11/index.ts";
import type { Codec } from "./wire/codec.ts";
import type { JsonRpcCodec, RestCodec } from "./wire/bindings.ts";

export { codecV1, jsonRpcClientV1 } from "./wire/v1/index.ts";
export { codecV03 } from "./wire/v03/index.ts";

/** Versions of the protocol that are spoken here. */
export type ProtocolVersion = "1.0" | "0.3";

/** All of them, the preferred one first. */
export const wires: Readonly<Record<ProtocolVersion, JsonRpcCodec & RestCodec>> = { "1.0": codecV1, "0.3": codecV03 };

/** The draft of 1.1, for those who ask for it. */
export const codecV11: JsonRpcCodec & RestCodec = /* @__PURE__ */ draftOf(codecV1);

/** Understood wherever the version is that they grow from, and on no card. */
const drafts: Readonly<Record<string, JsonRpcCodec & RestCodec>> = { "1.0": codecV11 };

/** The drafts that extend these versions. They are spoken wherever their version is, and are on no card. */
export function draftsOf(codecs: readonly Codec[]): readonly Codec[] {
  return codecs.flatMap(({ version }) => drafts[version] ?? []);
}
