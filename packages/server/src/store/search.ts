import { utf8Length } from "@parley/a2a/internal/base/utf8";
import type { Artifact, Message, Part } from "@parley/a2a/internal/model/index";
import { messagesOf, type StoredEvent } from "./assemble.ts";
import type { SearchTerm } from "./search-port.ts";

export { mainWords, searchPoints } from "./search-rank.ts";

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
  /** Of the texts from which the snippets of a page are made. */
  readonly page: number;
} = { text: 64 << 10, task: 256 << 10, record: 1 << 20, page: 512 << 10 };

/** Whether the text of a record is read. Large records that begin with bytes are the chunks of files. */
export function isSearched(json: string): boolean {
  if (json.length <= searchBounds.text) return true;
  return json.length <= searchBounds.record && !json.slice(0, 1024).includes('"raw":"');
}

/** Characters of a word. What is beyond is cut, in texts and in queries. */
export const longestWord = 64;

/** A text of a task, with the message or the artifact that it is of. */
export interface SearchText {
  /** The message that it is of. */
  readonly messageId?: string;
  /** The artifact that it is of. */
  readonly artifactId?: string;
  /** The text. */
  readonly text: string;
  /** What an artifact is made of. */
  readonly pieces?: SearchPieces;
}

/** Letters and digits without a break. */
export const letters: RegExp = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts that are written without spaces: each of their characters is a word, and a word of a reader is a phrase of those. */
const unspaced =
  "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}\\p{sc=Tibetan}";
const word = new RegExp(`[${unspaced}]|(?:(?![${unspaced}])[\\p{L}\\p{N}])+`, "gu");

/** The words of letters and digits without a break: small, without accents and other marks, in compatible forms (NFKD). */
export function wordsOfRun(found: string): readonly string[] {
  if (/^[a-z0-9]*$/.test(found)) return [found.slice(0, longestWord)];
  const folded = found
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{M}+/gu, "");
  return Array.from(folded.matchAll(word), ([each]) => Array.from(each).slice(0, longestWord).join(""));
}

/** The words of a text, in order, as they are kept and looked for. They have letters and digits, and nothing else. */
export function searchWords(text: string): readonly string[] {
  return Array.from(text.matchAll(letters)).flatMap(([found]) => wordsOfRun(found));
}

/** Words or phrases of a query at most. */
export const maxSearchTerms = 8;
/** Words of all its terms at most: a longer phrase would be compared with each place of a text. */
export const maxSearchWords = 64;

/**
 * What a query asks for: its words, texts in quotes as phrases, and beginnings of words, which end in `*`. Anything else in it separates
 * words, so no text is a wrong query. Empty where it has no word. There may be more than `maxSearchTerms`.
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

/** A store keeps what it is given, so a part may be anything. */
function* textsOfPart(part: Part): Generator<string, void, void> {
  const { text, data, filename }: Readonly<Partial<Record<string, unknown>>> = { ...part };
  if (typeof text === "string") yield text;
  else if (data !== undefined) yield* textsIn(data);
  if (typeof filename === "string") yield filename;
}

/** What is kept of an artifact, so that more can be joined to it later. */
export interface SearchPieces {
  /** Its name and its description. */
  readonly head: string;
  /** Its texts, joined. */
  readonly text: string;
  /** Other texts, in lines: of data, and names of files. */
  readonly others: string;
  /** The words on both sides of each place where texts were joined within a word. */
  readonly joints: string;
}

/** The text of an artifact. */
export function piecesText({ head, text, others, joints }: SearchPieces): string {
  return lines([head, text, others, joints].filter((each) => each !== ""));
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

/** An artifact of which pieces are added. */
interface HeldArtifact {
  readonly head: string;
  readonly texts: string[];
  readonly others: string[];
  readonly joints: string;
  length: number;
}

/** Collects the texts of a task: of the messages of its history, and of its artifacts. */
export class SearchTexts {
  readonly #artifacts = new Map<string, HeldArtifact>();
  /** Characters of all artifacts that were added. */
  #held = 0;
  #left: number;

  /** @param bytes - How much of the task is searched. Default: all that may be. */
  constructor(bytes: number = searchBounds.task) {
    this.#left = bytes;
  }

  /**
   * Adds the messages of a record, each once: a status may repeat one of the history. They are one text where tasks are compared, and each
   * its own where texts are shown.
   */
  record(event: StoredEvent): readonly SearchText[] {
    const seen = new Set<string>();
    return messagesOf(event).flatMap((json) => {
      const { messageId, parts = [] } = JSON.parse(json) as Pick<Message, "messageId"> & Partial<Message>;
      if (seen.has(messageId)) return [];
      seen.add(messageId);
      const text = lines(parts.flatMap((part) => [...textsOfPart(part)]));
      return text !== "" && this.#take(text) ? [{ messageId, text }] : [];
    });
  }

  /** Adds an artifact, or the next piece of one. */
  piece(artifact: Artifact, append: boolean): void {
    const { artifactId, name, description, parts = [] } = artifact as Pick<Artifact, "artifactId"> & Partial<Artifact>;
    const before = this.#artifacts.get(artifactId);
    let held = append ? before : undefined;
    if (held === undefined) {
      this.#held -= before === undefined ? 0 : before.head.length + before.length;
      this.#artifacts.delete(artifactId);
      // What is beyond would not be taken.
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

  /** Adds an artifact as it was when it was collected before. Pieces are joined to it, or replace it, and its text is collected anew. */
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
        // A stream is cut anywhere, also within a word.
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
