import type { SearchTerm } from "./search-port.ts";

/*
 * The order of the tasks that a search finds, the same in every store. It is a function of the texts of the task alone, in whole numbers:
 * no other task, and no text of another owner, changes it.
 */

/** How many points a task gets for a text that has a term. */
export const searchPoints: {
  /** Where the term is a main word of the text. */
  readonly main: number;
  /** Elsewhere: `most / (least + words)`, rounded down, where `words` is how many words the text has. */
  readonly most: number;
  /** See `most`. */
  readonly least: number;
} = { main: 800, most: 200_000, least: 400 };

/** Times that a main word is in its text at least. */
const mainTimes = 3;
/** Words of a text that have its main word once at least. */
const mainShare = 100;

/** The main words of a text, which has these words: those that are in it three times or more, and once in a hundred words or more. */
export function mainWords(words: readonly string[]): readonly string[] {
  if (words.length < mainTimes) return [];
  const times = new Map<string, number>();
  for (const word of words) times.set(word, (times.get(word) ?? 0) + 1);
  const least = Math.max(mainTimes, words.length / mainShare);
  return Array.from(times)
    .filter(([, count]) => count >= least)
    .map(([word]) => word);
}

/** A text as its words are kept, each list with a space before and after each word: ` a red sailboat `. */
export interface KeptWords {
  /** All words, in order. */
  readonly words: string;
  /** How many they are. */
  readonly count: number;
  /** The main words. */
  readonly main: string;
}

/** The words of a text, as they are kept. */
export function keptWords(words: readonly string[]): KeptWords {
  return { words: spaced(words), count: words.length, main: spaced(mainWords(words)) };
}

function spaced(words: readonly string[]): string {
  return ` ${words.join(" ")} `;
}

/** The points of a text for a term. 0: the text does not have it. A term of several words is a main word where each of them is one. */
export function pointsOf({ words, count, main }: KeptWords, { words: wanted, prefix = false }: SearchTerm): number {
  const ending = prefix ? "" : " ";
  if (!words.includes(` ${wanted.join(" ")}${ending}`)) return 0;
  const last = wanted.length - 1;
  const isMain = wanted.every((word, at) => main.includes(` ${word}${at === last ? ending : " "}`));
  return isMain ? searchPoints.main : Math.floor(searchPoints.most / (searchPoints.least + count));
}
