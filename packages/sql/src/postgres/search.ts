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
import type { Row, Value } from "./driver.ts";
import { decodeName, int, optional, stateNumber, text, taskId } from "./rows.ts";
import type { Sql } from "./schema.ts";
import { findPlace } from "./scopes.ts";
import { stateOfIndex } from "./search-index.ts";

// Finds tasks by their texts. `search-index.ts` says what the index has.

/** Texts of one term that are looked at, the newest ones. Few owners have so many. */
const maxTexts = 10_000;

/** Call it in a transaction. */
export async function findTasks(sql: Sql, owner: Owner, query: SearchQuery): Promise<SearchPage> {
  const { isOn, isMade } = await stateOfIndex(sql);
  if (!isOn) throw unavailable("Full text search is switched off");
  if (!isMade) throw unavailable("The index of full text search is being made");
  const { terms, contextId, state, limit, skip = 0 } = query;
  const { owner: id, context } = (await findPlace(sql, owner, contextId ?? "")) ?? {};
  if (id === undefined || (contextId !== undefined && context === undefined)) return { hits: [], total: 0 };
  const matches = terms.flatMap((term) => matchOf(id, term));
  const filters = [
    id,
    contextId === undefined ? null : (context ?? null),
    state === undefined ? null : stateNumber(state),
  ];
  const statement = pageStatement(terms.length);
  const rows = await sql(statement, ...filters, limit, skip, ...matches);
  const [first] = rows.length > 0 || skip === 0 ? rows : await sql(statement, ...filters, 1, 0, ...matches);
  const snippets = new Snippets(terms);
  const best = await bestTexts(
    sql,
    rows.map((row) => int(row, 0)),
    terms.length,
    matches,
  );
  const hits = rows.map((row): SearchHit => ({
    taskId: decodeName(text(row, 1)),
    snippets: snippets.of((best.get(int(row, 0)) ?? []).map(textOf)),
  }));
  return { hits, total: first === undefined ? 0 : int(first, 2) };
}

/** Values of each term, after the five of a page. */
const valuesPerTerm = 3;

/** The words of a term as a `tsquery`; the phrase that they are; what the main words of a text have to have. */
function matchOf(owner: number, { words, prefix = false }: SearchTerm): readonly Value[] {
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

/** The tasks that have all terms, in the order that `pointsOf` of the port gives. */
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

/** The texts that have terms, by task: first those with more of the terms, and of these the newest. */
async function bestTexts(
  sql: Sql,
  numbers: readonly number[],
  terms: number,
  matches: readonly Value[],
): Promise<ReadonlyMap<number, readonly Row[]>> {
  const found = new Map<number, Row[]>();
  if (numbers.length === 0) return found;
  // Without what the main words have to have.
  const used = matches.filter((_value, at) => at % valuesPerTerm < 2);
  const texts = Array.from({ length: terms }, (_, at) => `(${textsOfTerm("task, seq", 2 + 2 * at)})`);
  const rows = await sql(
    `SELECT s.task, s.message, s.artifact, s.text FROM (
       SELECT task, seq, terms, row_number() OVER (PARTITION BY task ORDER BY terms DESC, seq DESC) AS rank FROM (
         SELECT task, seq, count(*) AS terms FROM (${texts.join(" UNION ALL ")}) a
         WHERE task = ANY($1::bigint[]) GROUP BY task, seq
       ) b
     ) c JOIN parley.search_texts s ON s.task = c.task AND s.seq = c.seq
     WHERE c.rank <= ${maxSnippets} ORDER BY s.task, c.rank`,
    numbers,
    ...used,
  );
  for (const row of rows) {
    const task = int(row, 0);
    const known = found.get(task);
    if (known === undefined) found.set(task, [row]);
    else known.push(row);
  }
  return found;
}

function textOf(row: Row): SearchText {
  const [messageId, artifactId] = [optional(row, 1), optional(row, 2)];
  const found = JSON.parse(text(row, 3)) as string | SearchPieces;
  return {
    ...(typeof messageId === "string" && { messageId: decodeName(messageId) }),
    ...(typeof artifactId === "string" && { artifactId: decodeName(artifactId) }),
    text: typeof found === "string" ? found : piecesText(found),
  };
}
