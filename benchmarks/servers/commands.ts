// The commands that the agents of all servers understand. The first word of a message is the command.

export interface Command {
  readonly name: "reply" | "task" | "ask" | "stream" | "pace" | "hold" | "emit";
  /** The number of chunks of `stream` and `pace`. */
  readonly count: number;
  /**
   * Milliseconds between two chunks of `pace`, which starts at the next `emit`. For `stream`, 1 makes it wait for `emit` before its end. On the
   * bare server, streams differ: 1 writes each event separately, 2 gives each event different metadata.
   */
  readonly gap: number;
}

export function commandOf(text: string): Command {
  const [name, count, gap] = text.split(" ", 3);
  return { name: name as Command["name"], count: Number(count), gap: Number(gap) };
}

export const answerText = "The answer to that is forty-two, as it has been for a while now.";
export const questionText = "Which one of them do you mean?";
export const artifactText = "The report that was asked for: everything is in order, and nothing is missing.";

const filler = "and so the tale continues, ";

/** A chunk of a few words, as from a language model. */
export function chunkText(number: number): string {
  return filler + number;
}

/** A chunk with its creation time, in milliseconds of the clock that all processes share. */
export function stampedText(number: number): string {
  return `@${(performance.timeOrigin + performance.now()).toFixed(3)}@ ${number}`;
}

/** Callbacks for the next `emit`. */
export class Bell {
  #waiting: (() => void)[] = [];

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  ring(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** Yields 0 to count - 1 at intervals of `gap` milliseconds. A late timer does not delay later values. */
export async function* paced(count: number, gap: number): AsyncGenerator<number, void, void> {
  // A random offset, so that streams that start together do not send at the same moments.
  const start = performance.now() + Math.random() * gap;
  for (let number = 0; number < count; number++) {
    const early = start + number * gap - performance.now();
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
    yield number;
  }
}
