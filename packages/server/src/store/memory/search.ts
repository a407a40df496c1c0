import { defer } from "@parley/a2a/internal/base/async";
import { unavailable } from "../bounds.ts";
import type { Owner, SearchHit, SearchPage, SearchQuery, SearchTerm, TaskSearch } from "../port.ts";
import {
  isSearched,
  keptWords,
  type KeptWords,
  pointsOf,
  type SearchText,
  SearchTexts,
  searchWords,
} from "../search.ts";
import { Snippets } from "../snippets.ts";
import type { StoredTask } from "./rows.ts";
import type { MemoryTables } from "./tables.ts";
import { updateJson } from "../json.ts";

/** Memory for the words of all tasks, in bytes. */
const maxBytes = 64 << 20;
/** Maximum characters in one turn of the event loop. Splitting this many characters into words takes some milliseconds. */
const sliceChars = 128 << 10;
/** Comparing words is this many times faster than splitting texts. */
const comparedFaster = 16;
/** Fixed cost of a task, as a number of characters, so that a search of many small tasks is sliced, too. */
const taskCost = 64;

/** The words of a task's texts, and the length of its log when they were extracted. */
interface Indexed {
  readonly seq: number;
  readonly texts: readonly KeptWords[];
  readonly chars: number;
  readonly bytes: number;
}

interface Found {
  readonly task: StoredTask;
  readonly points: number;
}

/**
 * Full text search in memory. The first search of a task extracts the task's words, and so does the first search after each change, so tasks that
 * are not searched cost nothing. A search yields to the event loop. Beyond `maxBytes`, the least recently searched words are dropped.
 */
export class MemorySearch implements TaskSearch {
  readonly #tables: () => MemoryTables;
  readonly #maxBytes: number;
  /** The extracted words by task number, in the order of the last search. */
  readonly #known = new Map<number, Indexed>();
  #bytes = 0;
  #on = false;

  /** `tables`: throws if the store is closed. `most`: bytes of words, for tests. */
  constructor(tables: () => MemoryTables, most: number = maxBytes) {
    this.#tables = tables;
    this.#maxBytes = most;
  }

  /** Bytes of kept words. */
  get bytes(): number {
    return this.#bytes;
  }

  async use(on: boolean): Promise<void> {
    const tables = this.#tables();
    this.#on = on;
    tables.onDelete = on ? ({ number }) => this.#forget(number) : undefined;
    if (on) return;
    this.#known.clear();
    this.#bytes = 0;
  }

  async find(owner: Owner, { terms, contextId, state, limit, skip = 0 }: SearchQuery): Promise<SearchPage> {
    const tables = this.#tables();
    if (!this.#on) throw unavailable("Full text search is switched off");
    const wanted = { limit: Infinity, after: undefined, ...(state !== undefined && { state }) };
    const slices = new Slices();
    const found: Found[] = [];
    for (const task of tables.indexesOf(owner, contextId).flatMap((index) => index.page(wanted))) {
      const { texts, chars } = await this.#indexOf(task, slices);
      const points = pointsOfTask(texts, terms);
      if (points > 0) found.push({ task, points });
      await slices.take(taskCost + (chars * terms.length) / comparedFaster);
    }
    this.#tables();
    // During the search, tasks may have been deleted, or their state may have changed.
    const ranked = found.filter(({ task }) => tables.has(task) && (state === undefined || task.state === state));
    ranked.sort((one, other) => other.points - one.points || other.task.number - one.task.number);
    const snippets = new Snippets(terms);
    const hits: SearchHit[] = [];
    for (const { task } of ranked.slice(skip, skip + limit)) {
      hits.push(await hitOf(task, terms, snippets, slices));
    }
    return { total: ranked.length, hits };
  }

  async #indexOf(task: StoredTask, slices: Slices): Promise<Indexed> {
    const { number, head } = task;
    const known = this.#known.get(number);
    const indexed = known?.seq === head.seq ? known : await indexedOf(task, slices);
    this.#forget(number);
    // A task may have been deleted since the search began.
    if (!this.#on || !this.#tables().has(task) || indexed.bytes > this.#maxBytes) return indexed;
    this.#known.set(number, indexed);
    this.#bytes += indexed.bytes;
    for (const [oldest] of this.#known) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#forget(oldest);
    }
    return indexed;
  }

  #forget(number: number): void {
    this.#bytes -= this.#known.get(number)?.bytes ?? 0;
    this.#known.delete(number);
  }
}

/** Yields to the event loop after `sliceChars` characters. */
class Slices {
  #left = sliceChars;

  /** Counts characters, and waits for the next turn of the event loop if the slice is used up. */
  async take(chars: number): Promise<void> {
    this.#left -= chars;
    if (this.#left > 0) return;
    this.#left = sliceChars;
    await new Promise<void>((resolve) => defer(resolve));
  }
}

/** The texts of a task. The texts of a record stay together, because ranking counts them as one. */
async function textsOf(
  { messages, artifacts }: StoredTask,
  slices: Slices,
): Promise<readonly (readonly SearchText[])[]> {
  const texts = new SearchTexts();
  const said: (readonly SearchText[])[] = [];
  for (const { event } of messages) {
    const { kind, json } = event;
    if (!isSearched(json)) continue;
    said.push(texts.record({ kind, json }));
    await slices.take(json.length);
  }
  for (const json of artifacts) {
    if (!isSearched(json)) continue;
    const { artifact, append = false } = updateJson.read(json);
    texts.piece(artifact, append);
    await slices.take(json.length);
  }
  return [...said.filter(({ length }) => length > 0), ...texts.artifacts().map((artifact) => [artifact])];
}

async function indexedOf(task: StoredTask, slices: Slices): Promise<Indexed> {
  // The log may grow while it is read.
  const { seq } = task.head;
  const texts: KeptWords[] = [];
  for (const some of await textsOf(task, slices)) {
    const kept = wordsOf(some);
    texts.push(kept);
    await slices.take(kept.words.length);
  }
  const chars = texts.reduce((sum, { words, main }) => sum + words.length + main.length, 0);
  return { seq, texts, chars, bytes: texts.reduce((sum, kept) => sum + bytesOf(kept), 200) };
}

function wordsOf(texts: readonly SearchText[]): KeptWords {
  return keptWords(searchWords(texts.map(({ text }) => text).join("\n")));
}

/** Strings with non-Latin letters take two bytes per character. */
function bytesOf({ words, main }: KeptWords): number {
  return 150 + (words.length + main.length) * (/[\u0100-\uFFFF]/.test(words) ? 2 : 1);
}

/** The points of a task. 0: the task does not have all terms. */
function pointsOfTask(texts: readonly KeptWords[], terms: readonly SearchTerm[]): number {
  let all = 0;
  for (const term of terms) {
    const points = texts.reduce((sum, text) => sum + pointsOf(text, term), 0);
    if (points === 0) return 0;
    all += points;
  }
  return all;
}

async function hitOf(
  task: StoredTask,
  terms: readonly SearchTerm[],
  snippets: Snippets,
  slices: Slices,
): Promise<SearchHit> {
  const scored: { readonly source: SearchText; readonly score: number }[] = [];
  for (const source of (await textsOf(task, slices)).flat()) {
    const words = wordsOf([source]);
    const score = terms.reduce((sum, term) => sum + pointsOf(words, term), 0);
    if (score > 0) scored.push({ source, score });
    await slices.take(source.text.length);
  }
  scored.sort((one, other) => other.score - one.score);
  return { taskId: task.head.task.taskId, snippets: snippets.of(scored.map(({ source }) => source)) };
}
