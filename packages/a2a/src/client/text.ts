import { type Part, stateKinds, type StreamResponse, type TaskStatus } from "../model/index.ts";

/** The text of an answer while it grows. */

/** A piece of the text of an answer, as `EventStream.text()` yields it. */
export interface TextPiece {
  /** Text to append. After a reset, the whole text of the artifact so far. */
  readonly text: string;
  /** Whether the agent replaced the artifact's text. If so, discard the earlier text, and show `text` instead. */
  readonly reset: boolean;
  /** The artifact. Absent for a message, and for the line break between two artifacts. */
  readonly artifactId?: string;
}

/**
 * A text that grows and may be replaced, such as if the agent was killed and writes its artifact again. If the new text repeats the
 * old text, only the new part is returned. As soon as the new text differs, a reset is returned.
 *
 * @example
 * ```ts
 * const text = new GrowingText();
 * text.add("It is", false); // { text: "It is", reset: false }
 * text.add("It ", false); // undefined: it was replaced, and may become the same
 * text.add("is not", true); // { text: " not", reset: false }
 * ```
 */
export class GrowingText {
  #shown = "";
  /** Number of characters of `#shown` that the agent has written since it replaced the text. */
  #at = 0;

  /** The text that the reader has received. */
  get shown(): string {
    return this.#shown;
  }

  /** Appends text, or replaces the whole text. Returns the piece that a reader must show; `undefined` if nothing changes. */
  add(text: string, append: boolean): Omit<TextPiece, "artifactId"> | undefined {
    if (!append) this.#at = 0;
    const at = this.#at;
    const repeated = Math.min(this.#shown.length - at, text.length);
    // Skipped if no text can repeat, because the comparison would copy the whole text for each chunk.
    const reset = repeated > 0 && !this.#shown.startsWith(text.slice(0, repeated), at);
    this.#at = at + text.length;
    if (reset) this.#shown = text = this.#shown.slice(0, at) + text;
    else this.#shown += text = text.slice(repeated);
    return reset || text ? { text, reset } : undefined;
  }

  /** Call this at the end of the events. Returns a reset if the new text is shorter than the shown text. */
  end(): Omit<TextPiece, "artifactId"> | undefined {
    if (this.#at === this.#shown.length) return undefined;
    return { text: (this.#shown = this.#shown.slice(0, this.#at)), reset: true };
  }
}

const textOf = (parts: readonly Part[] = []): string => parts.map(({ text = "" }) => text).join("");

/**
 * The text of an agent's answer, from any events. `EventStream.text()` yields the same pieces for its stream.
 *
 * @param known - Whether the reader already has the task's content from before the events. Default: no.
 *
 * @example
 * ```ts
 * for await (const { text } of readText(client.sendStreamingMessage("Will it rain?"))) console.log(text);
 * ```
 */
export async function* readText(
  events: AsyncIterable<StreamResponse>,
  known = false,
): AsyncGenerator<TextPiece, void, void> {
  const texts = new Map<string, GrowingText>();
  let last: string | undefined;
  let midLine = false;
  /** Status messages that were yielded. */
  const said = new Set<string>();

  function* show(piece: Omit<TextPiece, "artifactId"> | undefined, artifactId?: string): Generator<TextPiece> {
    if (piece === undefined) return;
    if (midLine && (artifactId === undefined || last !== artifactId)) yield { text: "\n", reset: false };
    last = artifactId;
    if (piece.text) midLine = !piece.text.endsWith("\n");
    yield artifactId === undefined ? piece : { ...piece, artifactId };
  }
  function* artifact(artifactId: string, parts: readonly Part[], append: boolean): Generator<TextPiece> {
    const text = texts.get(artifactId) ?? new GrowingText();
    texts.set(artifactId, text);
    yield* show(text.add(textOf(parts), append), artifactId);
  }
  function* status({ state, message }: TaskStatus): Generator<TextPiece> {
    if (stateKinds[state] === "active") return;
    for (const [id, text] of texts) yield* show(text.end(), id);
    const text = textOf(message?.parts);
    // Some agents repeat their artifact in the last message, for clients that show no artifacts.
    const shown = [...texts.values()].map((each) => each.shown);
    const mirrored = [...shown, shown.join(""), shown.join("\n")].some((each) => each.trim() === text.trim());
    if (!text || mirrored || said.has(message?.messageId ?? "")) return;
    said.add(message?.messageId ?? "");
    yield* show({ text, reset: false });
  }

  for await (const event of events) {
    const { task, message, artifactUpdate, statusUpdate } = event;
    if (task) {
      // After an answer to a question, the stream begins with the task that contains the question.
      if (known && stateKinds[task.status.state] !== "terminal") {
        for (const { artifactId, parts } of task.artifacts ?? []) {
          const text = new GrowingText();
          text.add(textOf(parts), false);
          texts.set(artifactId, text);
        }
        said.add(task.status.message?.messageId ?? "");
      } else {
        for (const { artifactId, parts } of task.artifacts ?? []) yield* artifact(artifactId, parts, false);
        yield* status(task.status);
      }
    }
    known = false;
    if (artifactUpdate) {
      const { artifactId, parts } = artifactUpdate.artifact;
      yield* artifact(artifactId, parts, artifactUpdate.append === true);
    }
    if (statusUpdate) yield* status(statusUpdate.status);
    if (message) yield* show({ text: textOf(message.parts), reset: false });
  }
  for (const [id, text] of texts) yield* show(text.end(), id);
}
