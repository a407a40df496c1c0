import type { Clock } from "@parley/a2a/protocol";

/*
 * Stands in for a model: it has learned the order of words from one text. Like a model with a seed, it gives the same answer to the same
 * prompt, so it can continue at any token.
 */

const learned = `
  the rain came over the hills and the river rose and the boats came in and the men sat by the fire and told of the sea
  and of the wind over the sea and of the boats that never came in and the fire burned low and the rain fell on the roof
  and in the morning the sun came over the hills and the river fell and the boats went out and the sea was still`
  .trim()
  .split(/\s+/);

/** One token of an answer. */
export interface Token {
  readonly text: string;
  /** Whether the answer ends with it. */
  readonly last: boolean;
}

/** How the model answers. */
export interface GenerateOptions {
  /** Number of tokens of the answer to skip. */
  readonly after: number;
  readonly clock: Clock;
  /** Milliseconds between two tokens. */
  readonly pause: number;
}

const length = 100;

/** Answers token by token. */
export async function* generate(prompt: string, options: GenerateOptions): AsyncGenerator<Token> {
  let seed = 7;
  for (const letter of prompt) seed = (seed * 31 + (letter.codePointAt(0) ?? 0)) % 2 ** 31;
  let word = "the";
  for (let n = 0; n < length; n += 1) {
    if (n >= options.after) {
      await new Promise<void>((resolve) => options.clock.after(options.pause, resolve));
      yield { text: n === 0 ? word : ` ${word}`, last: n === length - 1 };
    }
    const next = learned.flatMap((one, at) => (one === word && at + 1 < learned.length ? [learned[at + 1] ?? ""] : []));
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    word = next[Math.floor((seed / 2 ** 31) * next.length)] ?? "the";
  }
}
