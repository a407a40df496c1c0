import type { Logger } from "../base/index.ts";
import type { AgentCard } from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";

/**
 * URIs that a client with these extensions asks an agent for: those of the extensions, and of all that they require. An extension that
 * the card does not declare cannot be activated, and neither can one that requires it.
 */
export function requestedFrom(extensions: readonly AnyExtension[], card: AgentCard, logger: Logger): readonly string[] {
  const declared = new Set(card.capabilities.extensions?.map(({ uri }) => uri));
  const byUri = new Map(extensions.map((extension) => [extension.uri, extension]));
  const uris = new Set<string>();
  for (const { uri } of extensions) {
    const needed = [...withRequired(uri, byUri)];
    const missing = needed.filter((each) => !declared.has(each));
    if (missing.length === 0) {
      for (const each of needed) uris.add(each);
    } else if (declared.has(uri)) {
      // One that the card does not declare at all is no surprise: a client may know more extensions than an agent.
      logger.warn("An extension is not asked for: the card does not declare what it requires", { uri, missing });
    }
  }
  return [...uris];
}

/** An extension and all that it requires, directly or not. Extensions may require each other. */
function withRequired(uri: string, byUri: ReadonlyMap<string, AnyExtension>): ReadonlySet<string> {
  const found = new Set([uri]);
  // A set that grows is iterated to its end.
  for (const each of found) {
    for (const required of byUri.get(each)?.requires ?? []) found.add(required);
  }
  return found;
}
