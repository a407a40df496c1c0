import type { LoadOptions, StoredEvent } from "@parley/server/internal/store/index";
import {
  all,
  change,
  query,
  type Dialect,
  type LogRange,
  type Pieces,
  type PiecesOf,
  type Query,
  type Steps,
} from "../shared/dialect.ts";
import {
  agentName,
  eventOf,
  indexName,
  int,
  kindNumber,
  maxSeq,
  ownerName,
  recordColumns,
  states,
  taskColumns,
  taskTables,
  text,
  together,
  wholeKey,
  wholeName,
  type Sql,
} from "./schema.ts";

/** Runs steps over a connection, a transaction or a database. */
export async function run<T>(sql: Sql, steps: Steps<T>): Promise<T> {
  for (let step = steps.next(); ;) {
    if (step.done === true) return step.value;
    step = steps.next(await together(step.value.map((asked) => sql(asked.sql, ...asked.values))));
  }
}

const [artifactUpdate, statusUpdate] = [kindNumber("artifactUpdate"), kindNumber("statusUpdate")];

const parts = {
  history: "AND place IS NOT NULL",
  artifacts: `AND kind = ${artifactUpdate}`,
  agent: "AND actor > 0",
  metadata: "AND has_metadata = 1",
} as const;

function log(
  columns: string,
  { task, after = 0, upTo = maxSeq, part, and, newestFirst = false, limit = maxSeq }: LogRange,
): Query {
  const where = `${part === undefined ? "" : parts[part]} ${and === undefined ? "" : `AND ${and}`}`;
  return query(
    `SELECT ${columns} FROM parley.log WHERE task = $1 AND seq > $2 AND seq <= $3 ${where}
     ORDER BY seq ${newestFirst ? "DESC" : ""} LIMIT $4`,
    task,
    after,
    upTo,
    limit,
  );
}

const sumsOfCounts = states.map((_, at) => `coalesce(sum(n.n${at}), 0)::bigint`).join(", ");

export const dialect: Dialect = {
  name: indexName,
  taskColumns,
  taskTables,
  ownerTables: "parley.scopes a JOIN parley.scopes o ON o.parent = a.id",
  ownerNames: `${agentName}, ${ownerName}`,
  tasksBy: () => "parley.tasks",
  agentCounts: `SELECT max(${agentName}), ${sumsOfCounts} FROM parley.scopes a LEFT JOIN parley.counts n ON n.scope = a.id
    WHERE a.parent = 0 GROUP BY a.id, a.name ORDER BY a.name LIMIT $1`,
  contextTables: `parley.scopes a JOIN parley.scopes o ON o.parent = a.id JOIN parley.contexts c ON c.owner = o.id
    WHERE a.parent = 0 AND a.name = $1 AND o.name = $2`,
  contextName: wholeName("c"),
  featureKey: wholeKey,
  // The log keeps the records of deleted tasks until their partition is dropped.
  logOfContext: `parley.log WHERE place IS NOT NULL AND context = $1
    AND EXISTS (SELECT 1 FROM parley.tasks t WHERE t.number = log.task)`,
  recordTask: "task",
  recordSeq: "seq",
  seq: "seq",
  recordColumns,
  log,
  compact(task, seq, base, artifacts) {
    const starts = artifacts.map((artifact) => artifact.seq);
    return [
      change("UPDATE parley.log SET base = $2 WHERE task = $1 AND seq = 1", task, base),
      change(
        `UPDATE parley.log l SET json = v.json FROM unnest($2::integer[], $3::text[]) AS v (seq, json)
         WHERE l.task = $1 AND l.seq = v.seq`,
        task,
        starts,
        artifacts.map(({ json }) => json),
      ),
      change(
        `DELETE FROM parley.log WHERE task = $1 AND seq < $2 AND seq <> ALL($3::integer[])
           AND (kind = ${artifactUpdate} OR (kind = ${statusUpdate} AND place IS NULL))`,
        task,
        seq,
        starts,
      ),
      change("UPDATE parley.log SET has_metadata = 0 WHERE task = $1 AND has_metadata = 1", task),
      change(
        `UPDATE parley.tasks SET bytes = least(bytes, (SELECT sum(octet_length(json)) FROM parley.log WHERE task = $1))
         WHERE number = $1`,
        task,
      ),
    ];
  },
  pieces: (tasks, options) => readPieces(tasks, options),
};

const [base, status, message, artifact, metadata] = [0, 1, 2, 3, 4] as const;
const ofTasks = "task = ANY($1::bigint[])";
/**
 * Each kind of piece has a partial index. Task numbers are passed as parameters instead of joined, so that the planner reads only the
 * partitions of these tasks.
 */
const selectBases = `SELECT ${base}, task, seq, kind, base FROM parley.log WHERE ${ofTasks} AND seq = 1`;
const selectStatuses = `SELECT ${status}, l.task, l.seq, l.kind, l.json FROM unnest($2::bigint[], $3::integer[]) AS v (task, seq)
  JOIN parley.log l ON l.task = v.task AND l.seq = v.seq WHERE l.${ofTasks} AND v.seq > 0`;
const allMessages = `SELECT ${message}, task, seq, kind, json FROM parley.log WHERE ${ofTasks} AND place IS NOT NULL`;
const newestMessages = `SELECT ${message}, v.task, l.seq, l.kind, l.json FROM unnest($1::bigint[]) AS v (task)
  CROSS JOIN LATERAL (
    SELECT seq, kind, json FROM parley.log WHERE task = v.task AND ${ofTasks} AND place IS NOT NULL ORDER BY seq DESC LIMIT $4
  ) l`;
const selectArtifacts = `SELECT ${artifact}, task, seq, kind, json FROM parley.log WHERE ${ofTasks} AND kind = ${artifactUpdate}`;
const selectMetadata = `SELECT ${metadata}, task, seq, kind, json FROM parley.log WHERE ${ofTasks} AND has_metadata = 1`;

interface Collected {
  base: string;
  status: string | undefined;
  readonly history: StoredEvent[];
  readonly artifacts: string[];
  readonly metadata: string[];
}

/** Reads the pieces of tasks in one statement. */
function* readPieces(
  tasks: readonly PiecesOf[],
  { history, artifacts }: LoadOptions,
): Steps<ReadonlyMap<number, Pieces>> {
  const selects = [selectBases, selectStatuses];
  if (history === undefined) selects.push(allMessages);
  else if (history > 0) selects.push(newestMessages);
  if (artifacts) selects.push(selectArtifacts);
  if (tasks.some(({ hasMetadata }) => hasMetadata)) selects.push(selectMetadata);
  const numbers = tasks.map(({ number }) => number);
  const seqs = tasks.map(({ statusSeq }) => statusSeq);
  const sql = `SELECT * FROM (${selects.join(" UNION ALL ")}) p (part, task, seq, kind, json) ORDER BY seq`;
  const limit = history !== undefined && history > 0 ? [Math.min(history, maxSeq)] : [];
  const found = new Map<number, Collected>();
  for (const row of yield* all(query(sql, numbers, numbers, seqs, ...limit))) {
    const number = int(row, 1);
    let task = found.get(number);
    if (task === undefined) {
      task = { base: "{}", status: undefined, history: [], artifacts: [], metadata: [] };
      found.set(number, task);
    }
    const [part, json] = [int(row, 0), text(row, 4)];
    if (part === base) task.base = json;
    else if (part === status) task.status = json;
    else if (part === message) task.history.push(eventOf(int(row, 3), json));
    else task[part === artifact ? "artifacts" : "metadata"].push(json);
  }
  return found;
}
