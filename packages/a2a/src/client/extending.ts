import type { Logger } from "../base/index.ts";
import { type AgentCard, invalidParams } from "../model/index.ts";
import type { AgentService, AnyExtension } from "../protocol/index.ts";
import { ExtensionReader } from "../extensions/index.ts";
import { extOf } from "./extension-client.ts";
import { ClientExtensions } from "./extensions.ts";
import type { ClientParts } from "./parts.ts";
import { explainingRequired } from "./required-extensions.ts";

/** What extensions that are values make of a client. */
export class Extending {
  /** Those that are given as URIs. */
  readonly uris: readonly string[];
  readonly #readers: readonly ExtensionReader[];
  readonly #logger: Logger;
  #extensions: ClientExtensions | undefined;

  /** @throws A2AError `InvalidParams` for what is neither a URI nor an extension, and for two extensions with the same URI. */
  constructor(extensions: readonly (string | AnyExtension)[], logger: Logger) {
    const readers: ExtensionReader[] = [];
    for (const [at, each] of extensions.entries()) {
      if (typeof each === "string") continue;
      const uri: unknown = (each as Partial<AnyExtension> | null | undefined)?.uri;
      const own = typeof uri === "string" && uri !== "" && readers.every(({ extension }) => extension.uri !== uri);
      if (!own) throw invalidParams([{ field: `extensions[${at}]`, description }]);
      readers.push(new ExtensionReader(each, onceEach(uri, logger)));
    }
    this.uris = extensions.filter((each) => typeof each === "string");
    this.#readers = readers;
    this.#logger = logger;
  }

  /** Goes between the connections and the retries. */
  below(service: AgentService, card: AgentCard): AgentService {
    this.#extensions = new ClientExtensions(this.#readers, card, this.#logger);
    return this.#extensions.tagged(service);
  }

  /** Goes around a client that is complete. */
  above(parts: ClientParts): ClientParts {
    const extensions = this.#extensions;
    const asked = [...this.uris, ...(extensions?.uris ?? [])];
    const service = explainingRequired(parts.service, parts.card, asked);
    if (extensions === undefined) return { ...parts, service };
    const extended = { ...parts, service: extensions.wrapped(service, parts.clock) };
    const received: ClientParts["received"] = (task, uris) => extensions.delivered(task, uris);
    return { ...extended, received, ext: extOf(this.#readers, extended, extensions) };
  }
}

/** A line in the log for the first value of a field that is left out: a stranger may send any number. */
function onceEach(uri: string, logger: Logger): (field: string, mistake?: TypeError) => void {
  const told = new Set<string>();
  return (field, mistake) => {
    if (told.has(field)) return;
    told.add(field);
    if (mistake === undefined) {
      logger.warn("The agent has sent a value that does not fit its extension. It is left out", { uri, field });
    } else logger.warn("A value cannot be checked, and is left out", { uri, field, cause: mistake });
  };
}

const description = "must be a URI, or an extension with a URI of its own, such as defineExtension() makes";
