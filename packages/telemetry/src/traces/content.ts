import type { Part } from "@parley/a2a/internal/model/index";
import type { AgentEvent } from "@parley/a2a/internal/protocol/index";

/* Content of messages, only for `invoke_agent` spans. */

/**
 * Redacts a text for export: returns the text without its secrets, or `undefined` for nothing.
 */
export type Redact = (text: string, role: "user" | "assistant") => string | undefined;

/** Maximum content of a turn's input or output, in characters. */
const maxContent = 8192;

/** Content as `gen_ai.input.messages` and `gen_ai.output.messages`. Names files and data without their content. */
export class Content {
  readonly #redact: Redact;
  readonly #role: "user" | "assistant";
  readonly #parts: { readonly type: string; readonly content?: string }[] = [];
  #left = maxContent;
  #failure: { readonly error: unknown } | undefined;

  constructor(redact: Redact, role: "user" | "assistant") {
    this.#redact = redact;
    this.#role = role;
  }

  add(parts: readonly Part[]): void {
    for (const { text, data } of parts) {
      if (this.#left <= 0) return;
      const shown = text === undefined ? undefined : this.#redacted(text);
      if (text === undefined) this.#push({ type: data === undefined ? "file" : "data" });
      else if (shown !== undefined) this.#push({ type: "text", content: shown });
    }
  }

  /** Adds the events that an agent has yielded. */
  addEvents(events: readonly AgentEvent[]): void {
    for (const event of events) {
      if (event.kind === "reply") this.add(event.message.parts);
      else if (event.kind === "status") this.add(event.message?.parts ?? []);
      else if (event.kind === "artifact") this.add(event.artifact.parts);
    }
  }

  /** `undefined`: redaction left nothing to export. */
  get json(): string | undefined {
    return this.#parts.length === 0 ? undefined : JSON.stringify([{ role: this.#role, parts: this.#parts }]);
  }

  /** Throws the first error of the redaction, which the server logs. */
  tell(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** A text whose redaction fails is not exported. Its span is. */
  #redacted(text: string): string | undefined {
    try {
      return this.#redact(text, this.#role)?.slice(0, this.#left);
    } catch (error) {
      this.#failure ??= { error };
      return undefined;
    }
  }

  #push(part: { readonly type: string; readonly content?: string }): void {
    this.#left -= (part.content?.length ?? 0) + 20;
    this.#parts.push(part);
  }
}
