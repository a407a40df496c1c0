import { unavailable } from "../bounds.ts";
import { messagesOf, type StoredEvent } from "../assemble.ts";
import type { Message, TaskArtifactUpdateEvent } from "../../model/index.ts";
import type { Owner, SearchHit, SearchPage, SearchQuery, SearchTerm, TaskSearch } from "../port.ts";
import { isSearched, SearchTexts, searchWords, type SearchText } from "../search.ts";
import { Snippets } from "../snippets.ts";
import type { StoredTask } from "./rows.ts";
import type { MemoryTables } from "./tables.ts";

/** The words of a text. It takes about as many bytes as the text. */
interface Indexed {
  /** The words in order, with a space before and after each: ` a red sailboat `. */
  readonly words: string;
  /** How many these are. */
  readonly count: number;
}

interface Found {
  readonly task: StoredTask;
  readonly texts: readonly Indexed[];
  /** By term. */
  readonly scores: readonly number[];
}

/**
 * Full text search in memory. The words of a task are made when it is first searched, and again when it has changed: tasks that nobody
 * searches cost nothing.
 */
export class MemorySearch implements TaskSearch {
  readonly #tables: () => MemoryTables;
  readonly #known = new WeakMap<StoredTask, { readonly seq: number; readonly texts: readonly Indexed[] }>();
  #on = false;

  /** `tables`: throws where the store is closed. */
  constructor(tables: () => MemoryTables) {
    this.#tables = tables;
  }

  async use(on: boolean): Promise<void> {
    this.#tables();
    this.#on = on;
  }

  async find(owner: Owner, { terms, contextId, state, limit, skip = 0 }: SearchQuery): Promise<SearchPage> {
    const tables = this.#tables();
    if (!this.#on) throw unavailable("Full text search is switched off");
    const wanted = { limit: Infinity, after: undefined, ...(state !== undefined && { state }) };
    const found: Found[] = [];
    for (const task of tables.indexesOf(owner, contextId).flatMap((index) => index.page(wanted))) {
      const texts = this.#texts(task);
      const scores = terms.map((term) => scoreOf(texts, term));
      if (scores.every((score) => score > 0)) found.push({ task, texts, scores });
    }
    // Each term counts the same, however often it is anywhere.
    const best = terms.map((_term, at) => found.reduce((most, { scores }) => Math.max(most, scores[at] ?? 0), 0));
    const rank = ({ scores }: Found): number => scores.reduce((sum, score, at) => sum + score / (best[at] ?? 1), 0);
    const ranked = found.map((each) => ({ ...each, rank: rank(each) }));
    ranked.sort((one, other) => other.rank - one.rank || other.task.number - one.task.number);
    const snippets = new Snippets(terms);
    return { total: ranked.length, hits: ranked.slice(skip, skip + limit).map((each) => hitOf(each, terms, snippets)) };
  }

  #texts(task: StoredTask): readonly Indexed[] {
    const { seq } = task.head;
    const known = this.#known.get(task);
    if (known?.seq === seq) return known.texts;
    const texts = textsOf(task).map(({ text }): Indexed => {
      const words = searchWords(text);
      return { words: ` ${words.join(" ")} `, count: words.length };
    });
    this.#known.set(task, { seq, texts });
    return texts;
  }
}

function textsOf({ messages, artifacts }: StoredTask): readonly SearchText[] {
  const texts = new SearchTexts();
  const said = messages.flatMap(({ event }) => {
    const { kind, json } = event as StoredEvent;
    if (!isSearched(json)) return [];
    return messagesOf({ kind, json }).flatMap((text) => texts.message(JSON.parse(text) as Message) ?? []);
  });
  for (const json of artifacts) {
    if (!isSearched(json)) continue;
    const { artifact, append = false } = JSON.parse(json) as TaskArtifactUpdateEvent;
    texts.piece(artifact, append);
  }
  return [...said, ...texts.artifacts()];
}

/** How much of a term is in some texts: more for more places, and for shorter texts. */
function scoreOf(texts: readonly Indexed[], term: SearchTerm): number {
  let score = 0;
  for (const text of texts) {
    const places = placesOf(text, term);
    if (places > 0) score += places / (places + 1 + text.count / 200);
  }
  return score;
}

/** Places of a term in a text that are counted: more do not change its score much. */
const mostPlaces = 1000;

function placesOf({ words }: Indexed, { words: wanted, prefix = false }: SearchTerm): number {
  const sought = ` ${wanted.join(" ")}${prefix ? "" : " "}`;
  let places = 0;
  for (let at = words.indexOf(sought); at >= 0 && places < mostPlaces; at = words.indexOf(sought, at + 1)) places += 1;
  return places;
}

function hitOf({ task, texts }: Found, terms: readonly SearchTerm[], snippets: Snippets): SearchHit {
  const sources = textsOf(task);
  const scored = texts.map((text, at) => {
    return { source: sources[at] as SearchText, score: terms.reduce((sum, term) => sum + scoreOf([text], term), 0) };
  });
  const best = scored.filter(({ score }) => score > 0).sort((one, other) => other.score - one.score);
  return { taskId: task.head.task.taskId, snippets: snippets.of(best.map(({ source }) => source)) };
}
