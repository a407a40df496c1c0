import type { AgentExtension } from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";

/** What a card says of extensions (A2A 1.0 §4.4.4). */
export function declarationsOf(extensions: Iterable<AnyExtension>): readonly AgentExtension[] {
  return Array.from(extensions, ({ uri, description, required, params }) => ({
    uri,
    ...(description !== undefined && { description }),
    ...(required !== undefined && { required }),
    ...(params !== undefined && { params }),
  }));
}
