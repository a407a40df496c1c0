import type { Logger } from "../base/index.ts";
import { A2AError, type AgentCard } from "../model/index.ts";
import type { ActivatingCall, AnyExtension } from "../protocol/index.ts";
import { fails, unhandled } from "./failures.ts";

/** The extensions of one agent, as calls activate them. */
export class Activation {
  /** Those that have something to say about it. */
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
   * Those of the extensions asked for that become active: what they require is active too, and their `onActivate` agrees.
   *
   * @param needed - URI of the one whose method is called.
   * @throws A2AError `ExtensionSupportRequired` for one that is required or needed and does not, and what `onActivate` throws.
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

  /** Leaves out those that lack what they require, and then those that require one of these. */
  #withDependencies(uris: readonly string[]): readonly string[] {
    let active = uris;
    for (;;) {
      const before = active;
      for (const { uri, requires = [] } of this.#extensions) {
        if (!active.includes(uri)) continue;
        const missing = requires.filter((each) => !active.includes(each));
        if (missing.length === 0) continue;
        this.#refuseRequired(uri, missing);
        this.#logger.info("An extension is not active, since the call has not activated what it requires", {
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
