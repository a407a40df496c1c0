import { maxSnippets } from "@parley/server/internal/store/snippets";
import { searchPoints } from "@parley/server/internal/store/search";
import type { Owner, SearchPage, SearchQuery, SearchTerm } from "@parley/server/internal/store/index";
import { checkReady, findTasks as findIn, indexed, maxTexts, type SearchDialect } from "../shared/search.ts";
import { all, change, first, query, type Query, type Row } from "../shared/dialect.ts";
import { dialect, run } from "./dialect.ts";
import { int, taskId, text, type Sql } from "./schema.ts";
import { findPlace } from "./scopes.ts";

/*
 * The index of full text search: a text by task and record. Its words, prefixed with the owner, are a `tsvector` under a GIN index, so a
 * query reads only words of its owner. The `tsvector` has no positions, because it keeps at most 16,383. Phrases are matched in `words`.
 */

export const search: SearchDialect = {
  dialect,
  position: "strpos",
  lockSearch: "FOR UPDATE",
  // Appends wait for this lock.
  lockTask: "FOR NO KEY UPDATE OF t",
  page(owner, terms, filters, { limit, skip }) {
    const matches = terms.flatMap((term) => matchOf(owner, term));
    return query(pageStatement(terms.length), owner, ...filters, limit, skip, ...matches);
  },
  *best(owner, terms, tasks) {
    const matches = terms.flatMap((term) => matchOf(owner, term).slice(0, 2));
    const texts = terms.map((_term, at) => `(${textsOfTerm("task, seq", 2 + 2 * at)})`);
    const sql = `SELECT s.message, s.artifact, s.text, s.task FROM (
         SELECT task, seq, terms, row_number() OVER (PARTITION BY task ORDER BY terms DESC, seq DESC) AS rank FROM (
           SELECT task, seq, count(*) AS terms FROM (${texts.join(" UNION ALL ")}) a
           WHERE task = ANY($1::bigint[]) GROUP BY task, seq
         ) b
       ) c JOIN parley.search_texts s ON s.task = c.task AND s.seq = c.seq
       WHERE c.rank <= ${maxSnippets} ORDER BY s.task, c.rank`;
    const found = new Map<number, Row[]>();
    for (const row of yield* all(query(sql, tasks, ...matches))) {
      const known = found.get(int(row, 3));
      if (known === undefined) found.set(int(row, 3), [row]);
      else known.push(row);
    }
    return found;
  },
  add({ task, owner, seq, words, mainWords, message, artifact, text: json }) {
    // Words contain only letters and digits, so they contain no syntax.
    const lexemes = Array.from(new Set(words), (word) => `'${indexed(owner, word)}'`).join(" ");
    return [
      change(
        `INSERT INTO parley.search_texts (task, seq, message, artifact, text, count, words, main, lexemes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::tsvector)`,
        task,
        seq,
        message,
        artifact,
        json,
        words.length,
        ` ${words.join(" ")} `,
        ` ${mainWords.join(" ")} `,
        lexemes,
      ),
    ];
  },
  *take(task, artifact) {
    const sql = "DELETE FROM parley.search_texts WHERE task = $1 AND artifact = $2 RETURNING text";
    const row = yield* first(query(sql, task, artifact));
    return row && text(row, 0);
  },
};

/** Number of values per term, which follow the five values of a page. */
const valuesPerTerm = 3;

/** The words of a term as a `tsquery`; its phrase; and the main words, all of which a text must have. */
function matchOf(owner: number, { words, prefix = false }: SearchTerm): Query["values"] {
  const last = words.length - 1;
  const ending = prefix ? "" : " ";
  const lexemes = words.map((word, at) => `'${indexed(owner, word)}'${prefix && at === last ? ":*" : ""}`);
  const phrase = words.length > 1 ? ` ${words.join(" ")}${ending}` : null;
  return [lexemes.join(" & "), phrase, words.map((word, at) => ` ${word}${at === last ? ending : " "}`)];
}

/** The newest texts of a term, whose first value is `$n`. */
function textsOfTerm(columns: string, n: number): string {
  return `SELECT ${columns} FROM parley.search_texts
    WHERE lexemes @@ $${n}::tsquery AND ($${n + 1}::text IS NULL OR strpos(words, $${n + 1}::text) > 0)
    ORDER BY task DESC, seq DESC LIMIT ${maxTexts}`;
}

function pageStatement(terms: number): string {
  const { main, most, least } = searchPoints;
  const names = Array.from({ length: terms }, (_, at) => `t${at}`);
  const found = names.map((name, at) => {
    const first = 6 + valuesPerTerm * at;
    const isMain = `NOT EXISTS (SELECT 1 FROM unnest($${first + 2}::text[]) w WHERE strpos(f.main, w) = 0)`;
    return `${name} (task, points) AS MATERIALIZED (
      SELECT task, sum(CASE WHEN ${isMain} THEN ${main} ELSE ${most} / (${least} + f.count) END)
      FROM (${textsOfTerm("task, count, main", first)}) f GROUP BY task
    )`;
  });
  const points = names.map((name) => `${name}.points`).join(" + ");
  const joins = names.slice(1).map((name) => `JOIN ${name} ON ${name}.task = t0.task`);
  return `WITH ${found.join(", ")}
    SELECT t.number, ${taskId}, count(*) OVER () FROM t0 ${joins.join(" ")} JOIN parley.tasks t ON t.number = t0.task
    WHERE t.owner = $1 AND t.context = coalesce($2, t.context) AND t.state = coalesce($3, t.state)
    ORDER BY ${points} DESC, t.number DESC LIMIT $4 OFFSET $5`;
}

/** Call this in a transaction. */
export async function findTasks(sql: Sql, owner: Owner, wanted: SearchQuery): Promise<SearchPage> {
  await run(sql, checkReady());
  const { contextId } = wanted;
  const { owner: id, context } = (await findPlace(sql, owner, contextId ?? "")) ?? {};
  if (id === undefined || (contextId !== undefined && context === undefined)) return { hits: [], total: 0 };
  return run(sql, findIn(search, id, contextId === undefined ? undefined : context, wanted));
}

/** Call this in a transaction. Waits for running appends, so that all later appends see the change. */
export async function switchIndex(sql: Sql, on: boolean): Promise<void> {
  await sql("LOCK TABLE parley.search IN ACCESS EXCLUSIVE MODE");
  if (on) await sql("UPDATE parley.search SET is_on = 1, next = 0 WHERE is_on = 0");
  else await sql("UPDATE parley.search SET is_on = 0 WHERE is_on = 1");
}
