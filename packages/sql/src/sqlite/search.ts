import { maxSnippets, Snippets } from "@parley/server/internal/store/snippets";
import { piecesText, searchPoints, type SearchPieces, type SearchText } from "@parley/server/internal/store/search";
import {
  unavailable,
  type Owner,
  type SearchHit,
  type SearchPage,
  type SearchQuery,
  type SearchTerm,
} from "@parley/server/internal/store/index";
import { indexed } from "../shared/owned-words.ts";
import type { Driver, Value } from "./driver.ts";
import { count, decodeName, int, logKey, optional, stateNumber, text } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";

// Finds tasks by their texts. `search-index.ts` says what the index has.

/** Texts of one term that are looked at, the newest ones. Few owners have so many. */
const maxTexts = 10_000;

/** Call it in a transaction. */
export function findTasks(driver: Driver, scopes: ScopeIds, owner: Owner, query: SearchQuery): SearchPage {
  checkReady(driver);
  const page = findPage(driver, scopes, owner, query);
  const isMissed = page.total === 0 && scopes.hasMoved(owner.agent, owner.owner);
  return isMissed ? findPage(driver, scopes, owner, query) : page;
}

function findPage(driver: Driver, scopes: ScopeIds, owner: Owner, query: SearchQuery): SearchPage {
  const { terms, contextId, state, limit, skip = 0 } = query;
  const id = scopes.find(owner.agent, owner.owner);
  const context = contextId === undefined ? undefined : scopes.find(owner.agent, owner.owner, contextId);
  if (id === undefined || (contextId !== undefined && context === undefined)) return { hits: [], total: 0 };
  const matches = terms.map((term) => matchOf(id, term));
  const ranked = terms.flatMap((term, at) => [matches[at] ?? "", mainMatchOf(id, term)]);
  const filters: Value[] = [id, context ?? null, state === undefined ? null : stateNumber(state)];
  const sql = pageStatement(terms.length);
  const rows = driver.prepare(sql).all(...ranked, ...filters, limit, skip);
  const [first] = rows.length > 0 || skip === 0 ? rows : driver.prepare(sql).all(...ranked, ...filters, 1, 0);
  const snippets = new Snippets(terms);
  const numbers = rows.map((row) => int(row, 0));
  const best = bestTexts(driver, numbers, matches);
  const hits = rows.map((row): SearchHit => {
    const texts = textsOf(driver, best.get(int(row, 0)) ?? []);
    return { taskId: decodeName(text(row, 1)), snippets: snippets.of(texts) };
  });
  return { hits, total: first === undefined ? 0 : int(first, 2) };
}

function checkReady(driver: Driver): void {
  const row = driver.prepare("SELECT is_on, next FROM search").get();
  if (count(row) !== 1) throw unavailable("Full text search is switched off");
  if (optional(row ?? [], 1) !== undefined) throw unavailable("The index of full text search is being made");
}

/** A term for FTS5: a phrase of words, which have letters and digits alone, so nothing of the query is syntax. */
function matchOf(owner: number, { words, prefix = false }: SearchTerm): string {
  return `words : "${words.map((word) => indexed(owner, word)).join(" ")}"${prefix ? " *" : ""}`;
}

/** The texts of a term in which each of its words is a main one. */
function mainMatchOf(owner: number, term: SearchTerm): string {
  const { words, prefix = false } = term;
  const each = words.map((word, at) => `"${indexed(owner, word)}"${prefix && at === words.length - 1 ? " *" : ""}`);
  return `(${matchOf(owner, term)}) AND main : (${each.join(" AND ")})`;
}

/** The newest texts of a match. */
const newest = `SELECT rowid FROM search_index WHERE search_index MATCH ? ORDER BY rowid DESC LIMIT ${maxTexts}`;

/** The tasks that have all terms, in the order that `pointsOf` gives. FTS5 has `bm25`, but that counts what the texts of all owners have. */
function pageStatement(terms: number): string {
  const { main, most, least } = searchPoints;
  const names = Array.from({ length: terms }, (_, at) => `t${at}`);
  const found = names.map(
    (name) => `${name} (task, points) AS MATERIALIZED (
      SELECT f.rowid >> 24, sum(CASE WHEN m.rowid IS NULL THEN ${most} / (${least} + s.words) ELSE ${main} END)
      FROM (${newest}) f JOIN search_texts s ON s.key = f.rowid LEFT JOIN (${newest}) m ON m.rowid = f.rowid GROUP BY 1
    )`,
  );
  const points = names.map((name) => `${name}.points`).join(" + ");
  const joins = names.slice(1).map((name) => `JOIN ${name} ON ${name}.task = t0.task`);
  return `WITH ${found.join(", ")}
    SELECT t.number, t.id, count(*) OVER () FROM t0 ${joins.join(" ")} JOIN tasks t ON t.number = t0.task
    WHERE t.owner = ? AND t.context = coalesce(?, t.context) AND t.state = coalesce(?, t.state)
    ORDER BY ${points} DESC, t.number DESC LIMIT ? OFFSET ?`;
}

/**
 * The keys of the texts that have terms, by task: first those with more of the terms, and of these the newest. Each term is read once for
 * all tasks. A rank of each text would count all texts of each term again for each task.
 */
function bestTexts(
  driver: Driver,
  numbers: readonly number[],
  matches: readonly string[],
): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, Map<number, number>>();
  const statement = driver.prepare(
    `SELECT f.rowid FROM (${newest}) f JOIN search_texts s ON s.key = f.rowid
     WHERE f.rowid >> 24 IN (SELECT value FROM json_each(?))`,
  );
  for (const match of matches) {
    for (const row of statement.all(match, JSON.stringify(numbers))) {
      const key = int(row, 0);
      const number = Math.floor(key / logKey(1, 0));
      const texts = found.get(number) ?? new Map<number, number>();
      texts.set(key, (texts.get(key) ?? 0) + 1);
      found.set(number, texts);
    }
  }
  const best = Array.from(found, ([number, texts]): [number, readonly number[]] => {
    const ranked = [...texts].sort(([one, terms], [other, others]) => others - terms || other - one);
    return [number, ranked.slice(0, maxSnippets).map(([key]) => key)];
  });
  return new Map(best);
}

/** The texts of these keys. */
function textsOf(driver: Driver, keys: readonly number[]): readonly SearchText[] {
  const select = driver.prepare("SELECT message, artifact, text FROM search_texts WHERE key = ?");
  return keys.flatMap((key) => {
    const row = select.get(key);
    return row === undefined ? [] : textOf(row);
  });
}

function textOf(row: readonly Value[]): SearchText {
  const [messageId, artifactId] = [optional(row, 0), optional(row, 1)];
  const found = JSON.parse(text(row, 2)) as string | SearchPieces;
  return {
    ...(typeof messageId === "string" && { messageId: decodeName(messageId) }),
    ...(typeof artifactId === "string" && { artifactId: decodeName(artifactId) }),
    text: typeof found === "string" ? found : piecesText(found),
  };
}
