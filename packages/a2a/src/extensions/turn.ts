import type { JsonObject, Message } from "../model/index.ts";
import type { ExtensionTypes, TurnReads } from "../protocol/index.ts";
import type { ExtensionReader } from "./reads.ts";

/** What the extensions that are active in a turn offer its agent. */
export class ExtensionsOfTurn {
  readonly #readers: ReadonlyMap<string, ExtensionReader>;
  readonly #message: Message;
  readonly #metadata: JsonObject | undefined;
  readonly #offered = new Map<string, TurnReads<ExtensionTypes>>();

  constructor(readers: ReadonlyMap<string, ExtensionReader>, message: Message, metadata: JsonObject | undefined) {
    this.#readers = readers;
    this.#message = message;
    this.#metadata = metadata;
  }

  /** What `turn.ext()` gives. `undefined` for an extension that the server knows as a declaration alone. */
  get(uri: string): unknown {
    const offered = this.#offered.get(uri) ?? this.#readers.get(uri)?.turn(this.#message, this.#metadata);
    if (offered !== undefined) this.#offered.set(uri, offered);
    return offered;
  }
}
