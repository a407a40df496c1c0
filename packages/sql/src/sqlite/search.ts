import { maxSnippets } from "@parley/server/internal/store/snippets";
import { searchPoints } from "@parley/server/internal/store/search";
import type { Owner, SearchPage, SearchQuery, SearchTerm } from "@parley/server/internal/store/index";
import {
  checkReady,
  findTasks as findIn,
  indexed,
  maxTexts,
  stateOfIndex,
  stepIndex as stepIn,
  type SearchDialect,
} from "../shared/search.ts";
import { all, change, first, query, type Query, type Row } from "../shared/dialect.ts";
import { ask, dialect, run } from "./dialect.ts";
import type { Driver } from "./driver.ts";
import { count, int, logKey, maxSeq, text } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";

/*
 * The index of full text search. The rowid of a text is the key of its record, so the texts of a task are adjacent. Each word is
 * prefixed with the owner, so a query reads only words of its owner. Words have letters, digits and the sign after the owner, which the
 * tokenizer `ascii` keeps. The column `main` repeats the main words.
 *
 * A trigger deletes the texts of a deleted task, because earlier releases also delete tasks, and their SQLite may be unable to change the index.
 * The trigger records the task, so that a process of this release can delete the words. Until then, a search ignores words without a text.
 */

const createIndex = `CREATE VIRTUAL TABLE IF NOT EXISTS search_index USING fts5(
  words, main, content = '', contentless_delete = 1, tokenize = 'ascii'
)`;

/** The newest texts of a match. */
const newest = `SELECT rowid FROM search_index WHERE search_index MATCH ? ORDER BY rowid DESC LIMIT ${maxTexts}`;

export const search: SearchDialect = {
  dialect,
  position: "instr",
  lockSearch: "",
  lockTask: "",
  page(owner, terms, filters, { limit, skip }) {
    const matches = terms.flatMap((term) => [matchOf(owner, term), mainMatchOf(owner, term)]);
    return query(pageStatement(terms.length), ...matches, owner, ...filters, limit, skip);
  },
  *best(owner, terms, tasks) {
    const found = new Map<number, Map<number, number>>();
    const sql = `SELECT f.rowid FROM (${newest}) f JOIN search_texts s ON s.key = f.rowid
      WHERE f.rowid >> 24 IN (SELECT value FROM json_each(?))`;
    // Ranking in SQL would count all texts of each term again for each task.
    for (const row of (yield terms.map((term) => query(sql, matchOf(owner, term), JSON.stringify(tasks)))).flat()) {
      const key = int(row, 0);
      const task = Math.floor(key / logKey(1, 0));
      const counts = found.get(task) ?? new Map<number, number>();
      counts.set(key, (counts.get(key) ?? 0) + 1);
      found.set(task, counts);
    }
    const best = new Map<number, readonly Row[]>();
    for (const [task, counts] of found) {
      const ranked = [...counts].sort(([one, hits], [other, others]) => others - hits || other - one);
      const select = "SELECT message, artifact, text FROM search_texts WHERE key = ?";
      best.set(task, (yield ranked.slice(0, maxSnippets).map(([key]) => query(select, key))).flat());
    }
    return best;
  },
  add({ task, owner, seq, words, mainWords, message, artifact, text: json }) {
    const key = logKey(task, seq);
    const columns = [words, mainWords].map((each) => each.map((word) => indexed(owner, word)).join(" "));
    return [
      change("INSERT INTO search_index (rowid, words, main) VALUES (?, ?, ?)", key, ...columns),
      change(
        "INSERT INTO search_texts (key, words, message, artifact, text) VALUES (?, ?, ?, ?, ?)",
        key,
        words.length,
        message,
        artifact,
        json,
      ),
    ];
  },
  *take(task, artifact) {
    const range = [logKey(task, 0), logKey(task, maxSeq)];
    const row = yield* first(
      query("SELECT key, text FROM search_texts WHERE key > ? AND key <= ? AND artifact = ?", ...range, artifact),
    );
    if (row === undefined) return undefined;
    const key = int(row, 0);
    yield [
      change("DELETE FROM search_index WHERE rowid = ?", key),
      change("DELETE FROM search_texts WHERE key = ?", key),
    ];
    return text(row, 1);
  },
  // The task may have the number of a deleted task whose words still exist.
  *begin(task) {
    const [row] = yield* all(query("SELECT 1 FROM search_gone WHERE task = ?", task));
    if (row !== undefined) yield dropWordsOf(task);
  },
};

/** A term for FTS5: a phrase of words, which contain only letters and digits, so a query cannot inject syntax. */
function matchOf(owner: number, { words, prefix = false }: SearchTerm): string {
  return `words : "${words.map((word) => indexed(owner, word)).join(" ")}"${prefix ? " *" : ""}`;
}

/** The texts in which each word of the term is a main word. */
function mainMatchOf(owner: number, term: SearchTerm): string {
  const { words, prefix = false } = term;
  const each = words.map((word, at) => `"${indexed(owner, word)}"${prefix && at === words.length - 1 ? " *" : ""}`);
  return `(${matchOf(owner, term)}) AND main : (${each.join(" AND ")})`;
}

/** Does not use `bm25` of FTS5, which counts the texts of all owners. */
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

/** Call this in a transaction. */
export function findTasks(driver: Driver, scopes: ScopeIds, owner: Owner, wanted: SearchQuery): SearchPage {
  run(driver, checkReady());
  const find = (): SearchPage => {
    const id = scopes.find(owner.agent, owner.owner);
    const { contextId } = wanted;
    const context = contextId === undefined ? undefined : scopes.find(owner.agent, owner.owner, contextId);
    if (id === undefined || (contextId !== undefined && context === undefined)) return { hits: [], total: 0 };
    return run(driver, findIn(search, id, context, wanted));
  };
  const page = find();
  return page.total === 0 && scopes.hasMoved(owner.agent, owner.owner) ? find() : page;
}

export function isIndexed(driver: Driver): boolean {
  return run(driver, stateOfIndex()).isOn;
}

/** `on` and `off` switch the index, and `more` indexes older data. */
export type IndexStep = "on" | "off" | "more";

/** Call this in a transaction. Returns whether there is more to add. */
export function stepIndex(driver: Driver, step: IndexStep): boolean {
  if (step === "off") {
    driver.prepare("UPDATE search SET is_on = 0 WHERE is_on = 1").run();
    return false;
  }
  if (step === "on") {
    driver.exec(createIndex);
    dropWords(driver);
    driver.prepare("UPDATE search SET is_on = 1, next = 0 WHERE is_on = 0").run();
  }
  return run(driver, stepIn(search));
}

/** Deletes the words of deleted tasks. */
export function dropWords(driver: Driver): void {
  for (const task of driver.prepare("SELECT task FROM search_gone").all().map(count)) {
    for (const statement of dropWordsOf(task)) ask(driver, statement);
  }
}

function dropWordsOf(task: number): readonly Query[] {
  return [
    change("DELETE FROM search_gone WHERE task = ?", task),
    change("DELETE FROM search_index WHERE rowid > ? AND rowid <= ?", logKey(task, 0), logKey(task, maxSeq)),
  ];
}
