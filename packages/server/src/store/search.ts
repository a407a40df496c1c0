import { utf8Length } from "@parley/a2a/internal/base/bytes";
import type { Artifact, Message, Part, TaskState } from "@parley/a2a/internal/model/index";
import type { Owner } from "./append.ts";
import { messagesOf, type StoredEvent } from "./assemble.ts";
import { storedJson } from "@parley/a2a/internal/base/json";

/**
 * Optional full text search of a store, in the messages of histories and in artifacts. Off by default, and without cost while off.
 */
export interface TaskSearch {
  /**
   * Switches the index on or off, for every process that shares the store. Resolves when all stored tasks are indexed. From then
   * on each append updates the index in its transaction: messages immediately, and artifacts when their task is interrupted or
   * terminal. Deleted tasks leave the index. While off, the store indexes nothing. Switching on again indexes the missing texts.
   *
   * @throws A2AError `Unavailable` if the store cannot have an index.
   */
  use(on: boolean): Promise<void>;
  /**
   * Finds tasks of an owner, best first, then newest first. Result and order depend only on this owner's tasks.
   *
   * @throws A2AError `Unavailable` while the search is off, and until the index is complete.
   */
  find(owner: Owner, query: SearchQuery): Promise<SearchPage>;
}

/** Words to find in the texts of a task. */
export interface SearchTerm {
  /** Consecutive words, as `searchWords` returns them. At least one. */
  readonly words: readonly string[];
  /** Whether the last word is a prefix. */
  readonly prefix?: boolean;
}

/** Selects tasks to find. */
export interface SearchQuery {
  /** Words that must all occur in texts of the task. From 1 to `maxSearchTerms`, as `searchTerms` returns them. */
  readonly terms: readonly SearchTerm[];
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly state?: TaskState;
  /** Maximum tasks on the page. */
  readonly limit: number;
  /** How many tasks the previous pages had. Default 0. */
  readonly skip?: number;
}

/** A page of tasks that were found. */
export interface SearchPage {
  /** The tasks. */
  readonly hits: readonly SearchHit[];
  /** The number of tasks on all pages. A store may omit the oldest ones if there are very many. */
  readonly total: number;
}

/** A task that was found. */
export interface SearchHit {
  /** Its id. */
  readonly taskId: string;
  /** Snippets of at most three texts, the best text first. */
  readonly snippets: readonly SearchSnippet[];
}

/** A part of a text in which words were found. */
export interface SearchSnippet {
  /** The message that has the text. */
  readonly messageId?: string;
  /** The artifact that has the text. */
  readonly artifactId?: string;
  /** The text of the snippet, about 160 characters. */
  readonly text: string;
  /** The positions of the words in `text`, in UTF-16 units, in order. */
  readonly marks: readonly { readonly start: number; readonly end: number }[];
}

/* The ranking, equal in every store: an integer function of the task's own texts, which texts of other owners do not affect. */

/** The points of a task for a text that has a term. */
export const searchPoints: {
  /** Points if the term is a main word of the text. */
  readonly main: number;
  /** Otherwise: `most / (least + words)`, rounded down. `words`: the number of words in the text. */
  readonly most: number;
  /** See `most`. */
  readonly least: number;
} = { main: 800, most: 200_000, least: 400 };

/** A main word occurs at least this many times in its text, and at least once per `mainShare` words. */
const mainTimes = 3;
const mainShare = 100;

/** The main words of a text with these words. */
export function mainWords(words: readonly string[]): readonly string[] {
  if (words.length < mainTimes) return [];
  const times = new Map<string, number>();
  for (const word of words) times.set(word, (times.get(word) ?? 0) + 1);
  const least = Math.max(mainTimes, words.length / mainShare);
  return Array.from(times)
    .filter(([, count]) => count >= least)
    .map(([word]) => word);
}

/** The words of a text, each list with a space before and after each word: ` a red sailboat `. */
export interface KeptWords {
  /** All words, in order. */
  readonly words: string;
  /** The number of words. */
  readonly count: number;
  /** The main words. */
  readonly main: string;
}

/** The form in which words are stored. */
export function keptWords(words: readonly string[]): KeptWords {
  return { words: spaced(words), count: words.length, main: spaced(mainWords(words)) };
}

function spaced(words: readonly string[]): string {
  return ` ${words.join(" ")} `;
}

/** The points of a text for a term. 0: the text does not have the term. A term of several words counts as a main word if each word does. */
export function pointsOf({ words, count, main }: KeptWords, { words: wanted, prefix = false }: SearchTerm): number {
  const ending = prefix ? "" : " ";
  if (!words.includes(` ${wanted.join(" ")}${ending}`)) return 0;
  const last = wanted.length - 1;
  const isMain = wanted.every((word, at) => main.includes(` ${word}${at === last ? ending : " "}`));
  return isMain ? searchPoints.main : Math.floor(searchPoints.most / (searchPoints.least + count));
}

/*
 * Selects the texts of a task that are searched, and splits them into words, in the same way for every store. A store only stores and finds
 * words, and never reads the text of a query.
 */

/** How much of a task is searched, in bytes of UTF-8. */
export const searchBounds: {
  /** Maximum size of one text: of a message, or of the part of an artifact that one record has. */
  readonly text: number;
  /** Maximum size of all texts of a task. */
  readonly task: number;
  /** Maximum size of a record's JSON. The text of a larger record is not read. */
  readonly record: number;
  /** Maximum size of the texts from which the snippets of a page are made. */
  readonly page: number;
} = { text: 64 << 10, task: 256 << 10, record: 1 << 20, page: 512 << 10 };

/** Whether the text of a record is searched. Large records that begin with bytes are chunks of files. */
export function isSearched(json: string): boolean {
  if (json.length <= searchBounds.text) return true;
  return json.length <= searchBounds.record && !json.slice(0, 1024).includes('"raw":"');
}

/** Maximum characters of a word. Longer words are cut, in texts and in queries. */
export const longestWord = 64;

/** A text of a message or an artifact. */
export interface SearchText {
  /** The id of the message. Absent for an artifact. */
  readonly messageId?: string;
  /** The id of the artifact. Absent for a message. */
  readonly artifactId?: string;
  /** The text. */
  readonly text: string;
  /** The parts of an artifact's text, to append more. Absent for a message. */
  readonly pieces?: SearchPieces;
}

/** A run of letters and digits without a break. */
export const letters: RegExp = /[\p{L}\p{N}\p{M}]+/gu;
/** Characters of scripts without spaces. Each character counts as a word, so a real word is searched as a phrase. */
const unspaced =
  "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}\\p{sc=Tibetan}";
const word = new RegExp(`[${unspaced}]|(?:(?![${unspaced}])[\\p{L}\\p{N}])+`, "gu");

/** The words of an unbroken run of letters and digits: lower case, without accents and other marks, in compatible forms (NFKD). */
export function wordsOfRun(found: string): readonly string[] {
  if (/^[a-z0-9]*$/.test(found)) return [found.slice(0, longestWord)];
  const folded = found
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{M}+/gu, "");
  return Array.from(folded.matchAll(word), ([each]) => Array.from(each).slice(0, longestWord).join(""));
}

/** The words of a text, in order, as stored and searched. They contain only letters and digits. */
export function searchWords(text: string): readonly string[] {
  return Array.from(text.matchAll(letters)).flatMap(([found]) => wordsOfRun(found));
}

/** Maximum words or phrases of a query. */
export const maxSearchTerms = 8;
/** Maximum words of all terms together, because a phrase is compared at each position of a text. */
export const maxSearchWords = 64;

/**
 * The terms of a query: words, phrases in quotes, and prefixes, which end in `*`. Anything else separates words, so no query is malformed.
 * Empty if the query has no words. May return more than `maxSearchTerms`.
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

function cut(text: string, bytes: number): string {
  if (text.length * 3 <= bytes || utf8Length(text) <= bytes) return text;
  // A character takes at most three bytes per UTF-16 unit.
  return text.slice(0, Math.floor(bytes / 3)).replace(/[\uD800-\uDBFF]$/, "");
}

function* textsIn(value: unknown): Generator<string, void, void> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null)
    for (const member of Object.values(value)) yield* textsIn(member);
}

/** The texts of a part, of which no member can be relied on, because stores accept any part. */
function* textsOfPart(part: Part): Generator<string, void, void> {
  const { text, data, filename }: Readonly<Partial<Record<string, unknown>>> = { ...part };
  if (typeof text === "string") yield text;
  else if (data !== undefined) yield* textsIn(data);
  if (typeof filename === "string") yield filename;
}

/** The stored parts of an artifact's text, so that more can be appended later. */
export interface SearchPieces {
  /** The name and the description of the artifact. */
  readonly head: string;
  /** The artifact's text parts, joined. */
  readonly text: string;
  /** Texts in data, and names of files, one per line. */
  readonly others: string;
  /** The words on both sides of each place where texts were joined within a word. */
  readonly joints: string;
}

/** The text of an artifact. */
export function piecesText({ head, text, others, joints }: SearchPieces): string {
  return lines([head, text, others, joints].filter((each) => each !== ""));
}

/** Joins texts as lines, up to the maximum size of one text. */
function lines(texts: Iterable<string>): string {
  let all = "";
  for (const text of texts) {
    if (all.length > searchBounds.text) break;
    all += all === "" ? text : `\n${text}`;
  }
  return cut(all, searchBounds.text);
}

const letter = /[\p{L}\p{N}\p{M}]/u;

/** The words on both sides of each joint that may be within a word, because these may be one word or two. */
function atJoints(texts: readonly string[]): string {
  const words: string[] = [];
  for (const [at, text] of texts.entries()) {
    const next = texts[at + 1] ?? "";
    if (!letter.test(text.slice(-1)) || !letter.test(next.slice(0, 1))) continue;
    words.push(
      text
        .slice(-longestWord)
        .split(/[^\p{L}\p{N}\p{M}]/u)
        .at(-1) ?? "",
    );
    words.push(/^[\p{L}\p{N}\p{M}]+/u.exec(next.slice(0, longestWord))?.[0] ?? "");
    if (words.length > 1000) break;
  }
  return words.join(" ");
}

interface HeldArtifact {
  readonly head: string;
  readonly texts: string[];
  readonly others: string[];
  readonly joints: string;
  length: number;
}

/** Messages whose members may be absent, because stores accept any message. */
const looseMessageJson = storedJson<Pick<Message, "messageId"> & Partial<Message>>();

/** Collects the texts of a task: of its history, and of its artifacts. */
export class SearchTexts {
  readonly #artifacts = new Map<string, HeldArtifact>();
  /** Characters of all artifacts that were added. */
  #held = 0;
  #left: number;

  /** @param bytes - How much of the task is searched. Default: the maximum. */
  constructor(bytes: number = searchBounds.task) {
    this.#left = bytes;
  }

  /** Adds the messages of a record, each once. Ranking counts all of them as one text, but each message is a separate text for snippets. */
  record(event: StoredEvent): readonly SearchText[] {
    const seen = new Set<string>();
    return messagesOf(event).flatMap((json) => {
      const { messageId, parts = [] } = looseMessageJson.read(json);
      if (seen.has(messageId)) return [];
      seen.add(messageId);
      const text = lines(parts.flatMap((part) => [...textsOfPart(part)]));
      return text !== "" && this.#take(text) ? [{ messageId, text }] : [];
    });
  }

  /** Adds an artifact, or the next piece of an artifact. */
  piece(
    { artifactId, name, description, parts = [] }: Pick<Artifact, "artifactId"> & Partial<Artifact>,
    append: boolean,
  ): void {
    const before = this.#artifacts.get(artifactId);
    let held = append ? before : undefined;
    if (held === undefined) {
      this.#held -= before === undefined ? 0 : before.head.length + before.length;
      this.#artifacts.delete(artifactId);
      if (this.#held > searchBounds.task) return;
      held = { head: lines([name ?? [], description ?? []].flat()), texts: [], length: 0, others: [], joints: "" };
      this.#hold(artifactId, held);
    }
    for (const part of parts) {
      if (held.length > searchBounds.text || this.#held > searchBounds.task) return;
      const texts = part.text === undefined ? held.others : held.texts;
      for (const text of textsOfPart(part)) {
        texts.push(text);
        held.length += text.length;
        this.#held += text.length;
      }
    }
  }

  /** Adds an artifact that was collected earlier. Further pieces are appended to this artifact, or replace it. */
  resume(artifactId: string, pieces: SearchPieces): void {
    this.#left += utf8Length(piecesText(pieces));
    const { head, text, others, joints } = pieces;
    const some = (each: string): string[] => (each === "" ? [] : [each]);
    const length = text.length + others.length;
    this.#hold(artifactId, { head, texts: some(text), length, others: some(others), joints });
  }

  /** Whether pieces of this artifact were added. */
  has(artifactId: string): boolean {
    return this.#artifacts.has(artifactId);
  }

  /** The texts of the artifacts that were added. */
  artifacts(): readonly SearchText[] {
    return Array.from(this.#artifacts, ([artifactId, { head, texts, others, joints }]) => {
      const pieces = {
        head,
        // Join the chunks without a separator, because a stream can be cut within a word.
        text: cut(texts.join(""), searchBounds.text),
        others: lines(others),
        joints: [joints, atJoints(texts)].filter((each) => each !== "").join(" "),
      };
      return { artifactId, text: piecesText(pieces), pieces };
    }).filter(({ text }) => text !== "" && this.#take(text));
  }

  /** How many bytes may still be added. */
  get left(): number {
    return this.#left;
  }

  #hold(artifactId: string, held: HeldArtifact): void {
    this.#held += held.head.length + held.length;
    this.#artifacts.set(artifactId, held);
  }

  #take(text: string): boolean {
    const bytes = utf8Length(text);
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }
}
