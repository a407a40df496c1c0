import { utf8Length } from "../base/utf8-length.ts";
import type { Artifact, Message, Part } from "../model/index.ts";
import type { SearchSnippet, SearchTerm } from "./search-port.ts";

/*
 * Full text search, the same in every store: what of a task is searched, what a word is, and what a snippet shows. A store keeps words and
 * finds them; it never reads the text of a query.
 */

/** How much of a task is searched, in bytes of UTF-8. What is beyond is not found. */
export const searchBounds: {
  /** Of one text: a message, or what was stored of an artifact at a time. */
  readonly text: number;
  /** Of all texts of a task. */
  readonly task: number;
  /** Of the JSON of a record. The text of a larger one is not read. */
  readonly record: number;
} = { text: 64 << 10, task: 256 << 10, record: 1 << 20 };

/** Whether the text of a record is read. Large records that begin with bytes are the chunks of files. */
export function isSearched(json: string): boolean {
  if (json.length <= searchBounds.text) return true;
  return json.length <= searchBounds.record && !json.slice(0, 1024).includes('"raw":"');
}

/** Characters of a word. What is beyond is cut, in texts and in queries. */
const longestWord = 64;

/** A text of a task, with the message or the artifact that it is of. */
export interface SearchText {
  /** The message that it is of. */
  readonly messageId?: string;
  /** The artifact that it is of. */
  readonly artifactId?: string;
  /** The text. */
  readonly text: string;
}

const run = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts that are written without spaces: each of their characters is a word, and a word of a reader is a phrase of those. */
const unspaced =
  "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}\\p{sc=Tibetan}";
const word = new RegExp(`[${unspaced}]|(?:(?![${unspaced}])[\\p{L}\\p{N}])+`, "gu");

/** The words of letters and digits without a break: small, without accents and other marks, in compatible forms (NFKD). */
function wordsOfRun(letters: string): readonly string[] {
  if (/^[a-z0-9]*$/.test(letters)) return [letters.slice(0, longestWord)];
  const folded = letters
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{M}+/gu, "");
  return Array.from(folded.matchAll(word), ([found]) => Array.from(found).slice(0, longestWord).join(""));
}

/** The words of a text, in order, as they are kept and looked for. They have letters and digits, and nothing else. */
export function searchWords(text: string): readonly string[] {
  return Array.from(text.matchAll(run)).flatMap(([letters]) => wordsOfRun(letters));
}

/** Words or phrases of a query at most. */
export const mostSearchTerms = 8;

/**
 * What a query asks for: its words, texts in quotes as phrases, and beginnings of words, which end in `*`. Anything else in it separates
 * words, so no text is a wrong query. Empty where it has no word. There may be more than `mostSearchTerms`.
 *
 * @example
 * ```ts
 * searchTerms('"red sailboat" Zürich hot*');
 * // [{ words: ["red", "sailboat"] }, { words: ["zurich"] }, { words: ["hot"], prefix: true }]
 * ```
 */
export function searchTerms(query: string): readonly SearchTerm[] {
  const terms = new Map<string, SearchTerm>();
  for (const [, phrase, plain = ""] of query.matchAll(/"([^"]*)"?|([^\s"]+)/g)) {
    const words = searchWords(phrase ?? plain);
    const prefix = phrase === undefined && plain.endsWith("*") && (words.at(-1)?.length ?? 0) > 1;
    if (words.length > 0) terms.set(JSON.stringify([words, prefix]), prefix ? { words, prefix } : { words });
  }
  return [...terms.values()];
}

/** Up to `bytes` bytes of a text. */
function cut(text: string, bytes: number): string {
  if (text.length * 3 <= bytes || utf8Length(text) <= bytes) return text;
  // No character takes more than three bytes for each of its UTF-16 units.
  return text.slice(0, Math.floor(bytes / 3)).replace(/[\uD800-\uDBFF]$/, "");
}

/** The texts of a value of JSON. */
function* textsIn(value: unknown): Generator<string, void, void> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null)
    for (const member of Object.values(value)) yield* textsIn(member);
}

function* textsOfPart(part: Part): Generator<string, void, void> {
  if (part.text !== undefined) yield part.text;
  else if (part.data !== undefined) yield* textsIn(part.data);
  if (part.filename !== undefined) yield part.filename;
}

/** Texts in lines, up to the bound of one text. */
function lines(texts: Iterable<string>): string {
  let all = "";
  for (const text of texts) {
    if (all.length > searchBounds.text) break;
    all += all === "" ? text : `\n${text}`;
  }
  return cut(all, searchBounds.text);
}

const letter = /[\p{L}\p{N}\p{M}]/u;

/** The words on both sides of each place where two texts were joined within a word: it may be one word or two. */
function atJoints(texts: readonly string[]): string {
  const words: string[] = [];
  for (const [at, text] of texts.entries()) {
    const next = texts[at + 1] ?? "";
    if (!letter.test(text.slice(-1)) || !letter.test(next.slice(0, 1))) continue;
    words.push(/[\p{L}\p{N}\p{M}]+$/u.exec(text.slice(-longestWord))?.[0] ?? "");
    words.push(/^[\p{L}\p{N}\p{M}]+/u.exec(next.slice(0, longestWord))?.[0] ?? "");
    if (words.length > 1000) break;
  }
  return words.join(" ");
}

/** Collects the texts of a task: of the messages of its history, and of its artifacts. */
export class SearchTexts {
  readonly #messages = new Map<string, SearchText>();
  readonly #artifacts = new Map<string, { head: string; texts: string[]; length: number; others: string[] }>();
  #left: number;

  /** @param bytes - How much of the task is searched. Default: all that may be. */
  constructor(bytes: number = searchBounds.task) {
    this.#left = bytes;
  }

  /** Adds a message. One that was added before is not added again. */
  message(message: Message): SearchText | undefined {
    const { messageId, parts } = message;
    if (this.#messages.has(messageId)) return undefined;
    const text = lines(parts.flatMap((part) => [...textsOfPart(part)]));
    return text === "" ? undefined : this.#add(this.#messages, messageId, { messageId, text });
  }

  /** Adds an artifact, or the next piece of one. */
  piece({ artifactId, name, description, parts }: Artifact, append: boolean): void {
    let held = append ? this.#artifacts.get(artifactId) : undefined;
    if (held === undefined) {
      held = { head: lines([name ?? [], description ?? []].flat()), texts: [], length: 0, others: [] };
      this.#artifacts.set(artifactId, held);
    }
    for (const part of parts) {
      if (held.length > searchBounds.text) return;
      const texts = part.text === undefined ? held.others : held.texts;
      for (const text of textsOfPart(part)) {
        texts.push(text);
        held.length += text.length;
      }
    }
  }

  /** The texts of the artifacts that were added. */
  artifacts(): readonly SearchText[] {
    return Array.from(this.#artifacts, ([artifactId, { head, texts, others }]) => {
      // A stream is cut anywhere, also within a word.
      const joined = texts.join("");
      return { artifactId, text: lines([head, joined, ...others, atJoints(texts)].filter((text) => text !== "")) };
    }).filter(({ text }) => text !== "" && this.#take(text));
  }

  /** How many bytes may still be added. */
  get left(): number {
    return this.#left;
  }

  #add(into: Map<string, SearchText>, id: string, text: SearchText): SearchText | undefined {
    if (!this.#take(text.text)) return undefined;
    into.set(id, text);
    return text;
  }

  #take(text: string): boolean {
    const bytes = utf8Length(text);
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }
}

/** Whether a word is one that a term looks for, at the end of the term. */
function fits(found: string, wanted: string, prefix: boolean): boolean {
  return prefix ? found.startsWith(wanted) : found === wanted;
}

/** Where a term is in some words: the index of its first word, each time. */
export function* findTerm(words: readonly string[], { words: wanted, prefix = false }: SearchTerm): Generator<number> {
  const last = wanted.length - 1;
  for (let at = 0; at + last < words.length; at += 1) {
    let matched = 0;
    while (
      matched <= last &&
      fits(words[at + matched] as string, wanted[matched] as string, prefix && matched === last)
    ) {
      matched += 1;
    }
    if (matched > last) yield at;
  }
}

/** Characters of a snippet, about. */
const snippetLength = 160;
const mostMarks = 20;

/** A part of a text around the first place where a term is. `undefined` where none is in it. */
export function snippetOf({ text, ...source }: SearchText, terms: readonly SearchTerm[]): SearchSnippet | undefined {
  const words: string[] = [];
  const spans: (readonly [start: number, end: number])[] = [];
  for (const { 0: letters, index } of text.matchAll(run)) {
    for (const found of wordsOfRun(letters)) {
      words.push(found);
      spans.push([index, index + letters.length]);
    }
  }
  const marks = terms.flatMap((term) =>
    Array.from(findTerm(words, term), (at) => [
      (spans[at] as readonly number[])[0] as number,
      (spans[at + term.words.length - 1] as readonly number[])[1] as number,
    ]),
  );
  marks.sort(([one = 0], [other = 0]) => one - other);
  const first = marks[0]?.[0];
  if (first === undefined) return undefined;
  const start = beginning(text, Math.max(0, first - snippetLength / 4));
  const end = start + ending(text.slice(start, start + snippetLength + longestWord));
  const shown = marks.filter(([from = 0, to = 0]) => from >= start && to <= end).slice(0, mostMarks);
  return {
    ...source,
    text: text.slice(start, end),
    marks: merged(shown.map(([from = 0, to = 0]) => ({ start: from - start, end: to - start }))),
  };
}

/** A place where a word begins, at or after a place that may be within one. */
function beginning(text: string, at: number): number {
  if (at === 0) return 0;
  const gap = /[^\p{L}\p{N}\p{M}]/u.exec(text.slice(at, at + snippetLength / 4));
  const start = at + (gap === null ? 0 : gap.index + gap[0].length);
  return /[\uDC00-\uDFFF]/.test(text.charAt(start)) ? start + 1 : start;
}

/** The end of a snippet: the last place within it where a word ends. */
function ending(text: string): number {
  if (text.length <= snippetLength) return text.length;
  const gap = /[^\p{L}\p{N}\p{M}][\p{L}\p{N}\p{M}]*$/u.exec(text.slice(0, snippetLength + longestWord - 1));
  const end = gap === null || gap.index < snippetLength / 2 ? snippetLength : gap.index;
  return /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) ? end - 1 : end;
}

/** Marks without those within others. */
function merged(marks: readonly { readonly start: number; readonly end: number }[]): SearchSnippet["marks"] {
  const all: { start: number; end: number }[] = [];
  for (const { start, end } of marks) {
    const last = all.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else all.push({ start, end });
  }
  return all;
}

/** Texts of a task from which snippets are made. */
export const mostSnippets = 3;
