import type { Logger } from "../base/index.ts";
import { A2AError, type AgentCard, type AgentExtension } from "../model/index.ts";
import type { ActivatingCall, AnyExtension } from "../protocol/index.ts";
import { fails, unhandled, isHarmless } from "./hook-calls.ts";
import { misfits, fit } from "./schemas.ts";

/** Selects the active extensions of a call to one agent. */
export class Activation {
  /** Extensions with `requires` or `onActivate`. */
  readonly #extensions: readonly AnyExtension[];
  readonly #required: ReadonlySet<string>;
  readonly #logger: Logger;

  /** @param extensions - All extensions of the server. */
  constructor(extensions: readonly AnyExtension[], { capabilities }: AgentCard, logger: Logger) {
    const declared = new Map((capabilities.extensions ?? []).map((each) => [each.uri, each]));
    const own = extensions.filter(({ uri }) => declared.has(uri));
    this.#extensions = own.filter(({ requires = [], onActivate }) => requires.length > 0 || onActivate !== undefined);
    this.#required = new Set(own.filter(({ uri }) => declared.get(uri)?.required === true).map(({ uri }) => uri));
    this.#logger = logger;
  }

  /**
   * The requested extensions that become active: those whose required extensions are active, and whose `onActivate` agrees.
   *
   * @param needed - URI of the extension whose method is called.
   * @throws A2AError `ExtensionSupportRequired` for a required or needed extension that does not become active, or an error of that extension.
   */
  of(asked: readonly string[], call: ActivatingCall, needed?: string): readonly string[] {
    let active = this.#withDependencies(asked);
    for (const extension of this.#extensions) {
      if (!active.includes(extension.uri) || this.#agrees(extension, call)) continue;
      const left = active.filter((uri) => uri !== extension.uri);
      this.#refuseRequired(extension.uri, [extension.uri]);
      active = this.#withDependencies(left);
    }
    if (needed !== undefined && !active.includes(needed)) throw unsupported([needed]);
    return active;
  }

  #agrees(extension: AnyExtension, call: ActivatingCall): boolean {
    try {
      const agrees: unknown = extension.onActivate?.(call) ?? true;
      unhandled(agrees);
      if (typeof agrees !== "boolean") throw new TypeError("It must return true or false");
      return agrees;
    } catch (thrown) {
      fails(extension, "onActivate", thrown, this.#logger);
      return false;
    }
  }

  /** Removes extensions whose required extensions are missing, and then extensions that require a removed one. */
  #withDependencies(uris: readonly string[]): readonly string[] {
    let active = uris;
    for (;;) {
      const before = active;
      for (const { uri, requires = [] } of this.#extensions) {
        if (!active.includes(uri)) continue;
        const missing = requires.filter((each) => !active.includes(each));
        if (missing.length === 0) continue;
        this.#refuseRequired(uri, missing);
        this.#logger.info("Extension not activated: an extension that it requires is not active", {
          extension: uri,
          requires: missing,
        });
        active = active.filter((each) => each !== uri);
      }
      if (active === before) return active;
    }
  }

  #refuseRequired(uri: string, missing: readonly string[]): void {
    if (this.#required.has(uri)) throw unsupported(missing);
  }
}

function unsupported(missing: readonly string[]): A2AError {
  const uris = missing.join(", ");
  return new A2AError("ExtensionSupportRequired", `An extension that this call needs is not active: ${uris}`, {
    metadata: { extensions: uris },
  });
}

/** The declaration of an extension on a card; the first, if there are several. */
export function declarationOf(uri: string, card: AgentCard): AgentExtension | undefined {
  return card.capabilities.extensions?.find((each) => each.uri === uri);
}

/** `params` of an extension on a card, parsed by its schema. They are untrusted: invalid ones are only logged. */
export function paramsOf(extension: AnyExtension, card: AgentCard, logger: Logger): unknown {
  const { uri, paramsSchema } = extension;
  const params = declarationOf(uri, card)?.params;
  if (paramsSchema === undefined || params === undefined) return undefined;
  try {
    const result = fit(paramsSchema, params);
    if (result.ok) return result.value;
    const fields = misfits(paramsSchema, "params", params);
    logger.warn("Extension params on the card do not match their schema", { uri, fields });
  } catch (mistake) {
    if (!isHarmless(extension)) throw mistake;
    logger.warn("Ignored extension params that could not be checked", {
      uri,
      cause: mistake,
    });
  }
  return undefined;
}

/**
 * URIs that a client with these extensions requests, including required extensions. An extension cannot be activated if the
 * card lacks it or one that it requires.
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
      // Not logged if the card does not declare the extension at all, because a client may support more extensions than an agent.
      logger.warn("Extension not requested: the card does not declare an extension that it requires", { uri, missing });
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

/** The extension entries of a card (A2A 1.0 §4.4.4). */
export function declarationsOf(extensions: Iterable<AnyExtension>): readonly AgentExtension[] {
  return Array.from(extensions, ({ uri, description, required, params }) => ({
    uri,
    ...(description !== undefined && { description }),
    ...(required !== undefined && { required }),
    ...(params !== undefined && { params }),
  }));
}
