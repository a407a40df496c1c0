import {
  delegationFeature,
  operatorBounds,
  readChange,
  type ActQuery,
  type AgentCounts,
  type AuditedAct,
  type OperatorChange,
  type OperatorPage,
  type OperatorQuery,
  type StandingOrder,
  type StoredAct,
  type TaskHead,
} from "@parley/server/internal/store/index";
import { all, change, first, query, type Dialect, type Query, type Row, type Steps } from "./dialect.ts";
import {
  count,
  decodeName,
  encodeJson,
  encodeName,
  int,
  stateNumber,
  states,
  taskRow,
  taskWidth,
  text,
  timeLimit,
  type Value,
} from "./rows.ts";

// Functions for operators, which read tasks of all owners, and store orders of operators and the audit of their acts.

type Position = Required<OperatorQuery>["after"];

/** Call it in a transaction. Reads a sorted list for each state of each agent (or owner) from an index, and merges these lists. */
export function* readOperatorTasks(dialect: Dialect, asked: OperatorQuery): Steps<OperatorPage> {
  const { owner, states: wanted = states, order, limit } = asked;
  const level = owner === undefined ? "agent" : "owner";
  const ids = (yield* all(scopesOf(dialect, asked))).map(count);
  const found: Position[] = [];
  const lists = ids.flatMap((id) => wanted.flatMap((state) => listOf(dialect, level, [id, stateNumber(state)], asked)));
  for (const rows of yield lists) found.push(...rows.map(positionOf));
  const sign = order === "newest" ? -1 : 1;
  found.sort((a, b) => sign * (a.statusTime - b.statusTime || a.number - b.number));
  const page = found.slice(0, limit);
  const open = "SELECT count(*) FROM parley.features f WHERE f.task = t.number AND f.feature = $2";
  const select = `SELECT ${dialect.taskColumns}, (${open}) FROM ${dialect.taskTables} WHERE t.number = $1`;
  const rows = yield page.map(({ number }) => query(select, number, encodeName(delegationFeature)));
  const heads = rows.flatMap(([row]): readonly TaskHead[] => {
    if (row === undefined) return [];
    return [{ ...taskRow(row).head, ...(Number(row[taskWidth]) > 0 && { delegates: true }) }];
  });
  const last = page.at(-1);
  return found.length <= limit || last === undefined ? { heads } : { heads, next: last };
}

function positionOf(row: Row): Position {
  return { number: int(row, 0), statusTime: int(row, 1) };
}

function scopesOf({ name, ownerTables }: Dialect, { agent, owner }: OperatorQuery): Query {
  const values = [agent, owner].flatMap((each) => (each === undefined ? [] : [name(each)]));
  const named = agent === undefined ? "" : "AND a.name = $1";
  if (owner === undefined) return query(`SELECT a.id FROM parley.scopes a WHERE a.parent = 0 ${named}`, ...values);
  return query(`SELECT o.id FROM ${ownerTables} WHERE a.parent = 0 ${named} AND o.name = $${values.length}`, ...values);
}

/** Two index seeks find the page, at any depth: one for tasks at the time of the position, one for tasks beyond that time. */
function listOf(
  { tasksBy }: Dialect,
  level: "agent" | "owner",
  [id, state]: readonly [id: number, state: number],
  { since = -Infinity, before = Infinity, order, limit, after }: OperatorQuery,
): readonly Query[] {
  const [beyond, down] = order === "newest" ? ["<", "DESC"] : [">", ""];
  const select = `SELECT number, status_time FROM ${tasksBy(level)} WHERE ${level} = $1 AND state = $2`;
  const inOrder = `ORDER BY status_time ${down}, number ${down} LIMIT $5`;
  let [from, to] = [timeLimit(Math.ceil(since)), timeLimit(Math.ceil(before))];
  if (after === undefined) {
    return [query(`${select} AND status_time >= $3 AND status_time < $4 ${inOrder}`, id, state, from, to, limit + 1)];
  }
  if (order === "newest") to = Math.min(to, after.statusTime);
  else from = Math.max(from, after.statusTime + 1);
  const isInside = after.statusTime >= since && after.statusTime < before;
  const ties = `${select} AND status_time = $3 AND number ${beyond} $4 ORDER BY number ${down} LIMIT $5`;
  return [
    ...(isInside ? [query(ties, id, state, after.statusTime, after.number, limit + 1)] : []),
    query(`${select} AND status_time >= $3 AND status_time < $4 ${inOrder}`, id, state, from, to, limit + 1),
  ];
}

export function* readCounts({ agentCounts }: Dialect, limit: number): Steps<readonly AgentCounts[]> {
  const rows = yield* all(query(agentCounts, limit));
  return rows.map((row) => {
    const held = states.map((state, at) => [state, int(row, at + 1)] as const).filter(([, tasks]) => tasks > 0);
    return { agent: decodeName(text(row, 0)), states: Object.fromEntries(held) };
  });
}

export function* readOrders(): Steps<readonly StandingOrder[]> {
  const rows = yield* all(
    query("SELECT whole, value FROM parley.orders ORDER BY name LIMIT $1", operatorBounds.orders),
  );
  return rows.map((row) => ({ name: decodeName(text(row, 0)), value: text(row, 1) }));
}

/** Call this in a transaction that excludes other changes of orders. */
export function* changeOrders(dialect: Dialect, asked: OperatorChange): Steps<boolean> {
  const { order, act } = readChange(asked);
  if (order !== undefined && !(yield* setOrder(dialect, order))) return false;
  if (act !== undefined) yield [insertAct(dialect, act), trimActs];
  return true;
}

function* setOrder(
  { name: indexed }: Dialect,
  { name, value, if: expected }: Required<OperatorChange>["order"],
): Steps<boolean> {
  const key = indexed(name);
  const found = yield* first(query("SELECT value FROM parley.orders WHERE name = $1", key));
  const before = found === undefined ? null : text(found, 0);
  if (before !== expected) return false;
  if (value === null) {
    yield [change("DELETE FROM parley.orders WHERE name = $1", key)];
    return true;
  }
  if (before !== null) {
    yield [change("UPDATE parley.orders SET value = $2 WHERE name = $1", key, value)];
    return true;
  }
  const held = yield* first(query("SELECT count(*) FROM parley.orders"));
  if (count(held) >= operatorBounds.orders) return false;
  const insert = "INSERT INTO parley.orders (name, whole, value) VALUES ($1, $2, $3)";
  yield [change(insert, key, encodeName(name), value)];
  return true;
}

export function insertAct(dialect: Dialect, act: AuditedAct): Query {
  const insert = "INSERT INTO parley.acts (subject, whole, time, json) VALUES ($1, $2, $3, $4)";
  return change(insert, ...actValues(dialect, act));
}

export function actValues({ name }: Dialect, { subject, json, time }: AuditedAct): readonly Value[] {
  return [name(subject), encodeName(subject), time, encodeJson(json)];
}

/** Deletes all but the newest acts. */
export const trimActs: Query = change(
  `DELETE FROM parley.acts WHERE id <= (SELECT max(id) FROM parley.acts) - ${operatorBounds.acts}`,
);

export function* readActs(
  { name }: Dialect,
  { subject, before = Number.MAX_SAFE_INTEGER, limit }: ActQuery,
): Steps<readonly StoredAct[]> {
  const about = subject === undefined ? "" : "AND subject = $3";
  const values = subject === undefined ? [before, limit] : [before, limit, name(subject)];
  const select = `SELECT id, whole, time, json FROM parley.acts WHERE id < $1 ${about} ORDER BY id DESC LIMIT $2`;
  return (yield* all(query(select, ...values))).map((row) => ({
    number: int(row, 0),
    subject: decodeName(text(row, 1)),
    time: int(row, 2),
    json: text(row, 3),
  }));
}
