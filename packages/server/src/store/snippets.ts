import {
  letters,
  longestWord,
  searchBounds,
  type SearchSnippet,
  type SearchTerm,
  type SearchText,
  wordsOfRun,
} from "./search.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/* Positions of words in a text, and snippets of a text. */

/** A word, and its position in the text. */
interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

function* findTerm(
  words: readonly Word[],
  { words: wanted, prefix = false }: SearchTerm,
): Generator<Pick<Word, "start" | "end">> {
  const last = wanted.length - 1;
  for (const [at, { start }] of words.entries()) {
    const end = words[at + last]?.end;
    if (end === undefined) return;
    const matches = wanted.every((each, more) => {
      const word = words[at + more]?.word ?? "";
      return prefix && more === last ? word.startsWith(each) : word === each;
    });
    if (matches) yield { start, end };
  }
}

/** Approximate characters of a snippet. */
const snippetLength = 160;
const maxMarks = 20;

/** A part of a text around the first position of a term. `undefined`: the text contains no term. */
function snippetOf(
  { text, messageId, artifactId }: SearchText,
  terms: readonly SearchTerm[],
): SearchSnippet | undefined {
  const words: Word[] = [];
  for (const { 0: run, index } of text.matchAll(letters)) {
    for (const word of wordsOfRun(run)) words.push({ word, start: index, end: index + run.length });
  }
  const marks = terms.flatMap((term) => [...findTerm(words, term)]);
  marks.sort((one, other) => one.start - other.start);
  const first = marks[0]?.start;
  if (first === undefined) return undefined;
  const start = beginning(text, Math.max(0, first - snippetLength / 4));
  const end = start + ending(text.slice(start, start + snippetLength + longestWord));
  const shown = marks.filter((mark) => mark.start >= start && mark.end <= end).slice(0, maxMarks);
  return {
    ...defined({ messageId, artifactId }),
    text: text.slice(start, end),
    marks: merged(shown.map((mark) => ({ start: mark.start - start, end: mark.end - start }))),
  };
}

/** The beginning of a word, at or after a position that may be inside a word. */
function beginning(text: string, at: number): number {
  if (at === 0) return 0;
  const gap = /[^\p{L}\p{N}\p{M}]/u.exec(text.slice(at, at + snippetLength / 4));
  const start = at + (gap === null ? 0 : gap.index + gap[0].length);
  return /[\uDC00-\uDFFF]/.test(text.charAt(start)) ? start + 1 : start;
}

/** The end of a snippet: the end of the last whole word in it. */
function ending(text: string): number {
  if (text.length <= snippetLength) return text.length;
  const gap = /[^\p{L}\p{N}\p{M}][\p{L}\p{N}\p{M}]*$/u.exec(text.slice(0, snippetLength + longestWord - 1));
  const end = gap === null || gap.index < snippetLength / 2 ? snippetLength : gap.index;
  return /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) ? end - 1 : end;
}

/** Merges marks that overlap or touch. */
function merged(marks: readonly { readonly start: number; readonly end: number }[]): SearchSnippet["marks"] {
  const all: { start: number; end: number }[] = [];
  for (const { start, end } of marks) {
    const last = all.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else all.push({ start, end });
  }
  return all;
}

/** Maximum number of texts of a task that get a snippet. */
export const maxSnippets = 3;

/** Makes the snippets of a page from a limited amount of text, so that it takes only some milliseconds. */
export class Snippets {
  readonly #terms: readonly SearchTerm[];
  /** Characters that may still be read. */
  #left: number = searchBounds.page;

  /** `terms`: the terms of the query. */
  constructor(terms: readonly SearchTerm[]) {
    this.#terms = terms;
  }

  /** A snippet of each text, while characters are left. The best tasks come first on the page, so these tasks get snippets first. */
  of(texts: readonly SearchText[]): readonly SearchSnippet[] {
    return texts.slice(0, maxSnippets).flatMap((text) => {
      if (text.text.length > this.#left) return [];
      this.#left -= text.text.length;
      return snippetOf(text, this.#terms) ?? [];
    });
  }
}
