import type { TaskState } from "@parley/a2a";
import { BoundedMap, memoryOf, type Owner, type TaskHead } from "@parley/a2a/store";
import type { Row, Value } from "./driver.ts";
import {
  count,
  decodeName,
  encodeName,
  indexName,
  insertInto,
  int,
  rowsOf,
  stateNumber,
  states,
  text,
  write,
  type Column,
  type TaskRow,
} from "./rows.ts";
import { columnsOf, type Sql } from "./schema.ts";

/** The parent of agents. */
const root = 0;

/** Bytes of memory. */
const mostBytes = 4 << 20;

const named: readonly Column[] = [
  ["parent", "bigint"],
  ["name", "text"],
];
const findScopes = `SELECT s.parent, s.name, s.id FROM ${rowsOf(named)} JOIN parley.scopes s USING (parent, name)`;
const insertScopes = insertInto("scopes", named, "parent, name", "ON CONFLICT (parent, name) DO NOTHING");

/** Ids of agents and of their owners, which are never deleted and therefore remembered. */
export class ScopeIds {
  readonly #known = new BoundedMap<number>({ bytes: mostBytes, bytesOf: (path) => memoryOf(path) });

  /** The id of an agent, or of an owner. */
  async find(sql: Sql, agent: string, owner?: string): Promise<number | undefined> {
    const names = await this.resolve(sql, [{ agent, owner: owner ?? "", make: false }], owner !== undefined);
    return names.find(agent, owner);
  }

  /** The names of all agents that ever had a task. */
  async agents(sql: Sql): Promise<readonly string[]> {
    const rows = await sql("SELECT name FROM parley.scopes WHERE parent = $1", root);
    return rows.map((row) => decodeName(text(row, 0)));
  }

  /** The ids of all of these. Those with `make` are created where they are missing. */
  async resolve(
    sql: Sql,
    wanted: readonly (Owner & { readonly make: boolean })[],
    withOwners = true,
  ): Promise<ScopeNames> {
    const found = new ScopeNames();
    await this.#resolve(
      sql,
      found,
      wanted.map(({ agent, make }) => ({ parent: root, name: agent, make })),
    );
    if (!withOwners) return found;
    const owners = wanted.flatMap(({ agent, owner, make }) => {
      const parent = found.find(agent);
      return parent === undefined ? [] : [{ parent, name: owner, make }];
    });
    await this.#resolve(sql, found, owners);
    return found;
  }

  async #resolve(
    sql: Sql,
    found: ScopeNames,
    wanted: readonly { readonly parent: number; readonly name: string; readonly make: boolean }[],
  ): Promise<void> {
    const missing = new Map<string, { readonly row: readonly Value[]; make: boolean }>();
    for (const { parent, name, make } of wanted) {
      const path = pathOf(parent, name);
      const id = found.get(path) ?? this.#known.get(path);
      if (id !== undefined) found.set(path, id);
      else {
        const before = missing.get(path);
        missing.set(path, { row: [parent, encodeName(name)], make: make || before?.make === true });
      }
    }
    if (missing.size === 0) return;
    const look = async (): Promise<void> => {
      const rows = [...missing.values()].map(({ row }) => row);
      for (const row of await write(sql, findScopes, rows, named.length)) this.#note(found, missing, row);
    };
    await look();
    const made = [...missing.values()].filter(({ make }) => make).map(({ row }) => row);
    if (made.length === 0) return;
    await sql(insertScopes, ...columnsOf(made, named.length));
    await look();
  }

  #note(found: ScopeNames, missing: Map<string, unknown>, row: Row): void {
    const path = pathOf(int(row, 0), decodeName(text(row, 1)));
    missing.delete(path);
    found.set(path, int(row, 2));
    this.#known.set(path, int(row, 2));
  }
}

function pathOf(parent: number, name: string): string {
  return `${parent}/${name}`;
}

/** Ids that were looked up. */
export class ScopeNames {
  readonly #ids = new Map<string, number>();

  get(path: string): number | undefined {
    return this.#ids.get(path);
  }

  set(path: string, id: number): void {
    this.#ids.set(path, id);
  }

  /** The id of an agent, or of an owner. */
  find(agent: string, owner?: string): number | undefined {
    const parent = this.get(pathOf(root, agent));
    return owner === undefined || parent === undefined ? parent : this.get(pathOf(parent, owner));
  }
}

/** The contexts of one name of all owners of an agent. */
export async function findContexts(sql: Sql, agent: number, contextId: string): Promise<readonly number[]> {
  const rows = await sql(
    "SELECT c.id FROM parley.scopes o JOIN parley.contexts c ON c.owner = o.id AND c.name = $1 WHERE o.parent = $2",
    indexName(contextId),
    agent,
  );
  return rows.map(count);
}

/** The context of an owner. */
export async function findContext(sql: Sql, owner: number, contextId: string): Promise<number | undefined> {
  const [row] = await sql("SELECT id FROM parley.contexts WHERE owner = $1 AND name = $2", owner, indexName(contextId));
  return row && count(row);
}

const tallies = states.map((_, index): Column => [`n${index}`, "bigint"]);
const sums = tallies.map(([name]) => `coalesce(sum(${name}), 0)::bigint`).join(", ");

/** How many tasks there are of each state, in the order of `states`. */
export async function tallyOf(
  sql: Sql,
  level: "agent" | "owner" | "context",
  ids: readonly number[],
): Promise<readonly number[]> {
  const from = level === "context" ? "contexts WHERE id" : "counts WHERE scope";
  const [row] = await sql(`SELECT ${sums} FROM parley.${from} = ANY($1::bigint[])`, ids);
  return states.map((_, index) => int(row, index));
}

type Listed = Pick<TaskHead, "state" | "statusTime">;

interface ContextChange {
  readonly owner: number;
  readonly name: string;
  readonly tally: number[];
  tasks: number;
  touched: number;
}

/** Rows of `counts` of a scope. Nodes that write at once take different ones, by their connection. */
const shards = 16;

const contextColumns: readonly Column[] = [
  ["id", "bigint"],
  ["owner", "bigint"],
  ["name", "text"],
  ["long_name", "text"],
  ["tasks", "bigint"],
  ["touched", "bigint"],
  ...tallies,
];
const added = (table: string): string =>
  tallies.map(([name]) => `${name} = ${table}.${name} + excluded.${name}`).join(", ");
const upsertContexts = insertInto(
  "contexts",
  contextColumns,
  "owner, name",
  `ON CONFLICT (owner, name) DO UPDATE SET tasks = contexts.tasks + excluded.tasks,
     touched = greatest(contexts.touched, excluded.touched), ${added("contexts")} RETURNING owner, name, id`,
);
const countColumns: readonly Column[] = [["scope", "bigint"], ...tallies];
const tallyNames = tallies.map(([name]) => name).join(", ");
const upsertCounts = `INSERT INTO parley.counts (scope, shard, ${tallyNames})
  SELECT scope, pg_backend_pid() % ${shards}, ${tallyNames} FROM ${rowsOf(countColumns)} ORDER BY scope
  ON CONFLICT (scope, shard) DO UPDATE SET ${added("counts")}`;

/** The changes of a transaction to the counts of scopes. The items of a batch share few scopes. */
export class ScopeChanges {
  readonly #tallies = new Map<number, number[]>();
  readonly #contexts = new Map<number, ContextChange>();

  /** A context that is created where it is missing. */
  touch(context: number, owner: number, name: string, time: number): void {
    const change = this.#context(context, owner, name);
    change.touched = Math.max(change.touched, time);
  }

  /** Adds a task to the counts of its scopes, removes it, or moves it from one state to another one. */
  move(
    { row, head }: { readonly row: Scopes; readonly head: TaskHead },
    from: Listed | undefined,
    to: Listed | undefined,
  ): void {
    if (from?.state === to?.state) return;
    const context = this.#context(row.context, row.owner, head.contextId);
    context.tasks += (to === undefined ? 0 : 1) - (from === undefined ? 0 : 1);
    const all = [this.#tally(row.agent), this.#tally(row.owner), context.tally];
    for (const tally of all) {
      if (from !== undefined) add(tally, from.state, -1);
      if (to !== undefined) add(tally, to.state, 1);
    }
  }

  /** Resolves to the ids of the contexts that are not those that were expected: somebody else has created them meanwhile. */
  async writeContexts(sql: Sql): Promise<boolean> {
    const rows = Array.from(this.#contexts, ([id, { owner, name, tasks, touched, tally }]): Value[] => {
      const [short, long] = [indexName(name), encodeName(name)];
      return [id, owner, short, short === long ? null : long, tasks, touched, ...tally];
    });
    const written = await write(sql, upsertContexts, rows, contextColumns.length);
    return written.every((row) => this.#contexts.has(int(row, 2)));
  }

  /** Call it last: these rows are those that others wait for. */
  async writeCounts(sql: Sql): Promise<void> {
    const rows = Array.from(this.#tallies, ([scope, tally]): Value[] => [scope, ...tally]);
    await write(sql, upsertCounts, rows, countColumns.length);
  }

  #tally(scope: number): number[] {
    let tally = this.#tallies.get(scope);
    if (tally === undefined) this.#tallies.set(scope, (tally = states.map(() => 0)));
    return tally;
  }

  #context(id: number, owner: number, name: string): ContextChange {
    let change = this.#contexts.get(id);
    if (change === undefined) {
      change = { owner, name, tally: states.map(() => 0), tasks: 0, touched: 0 };
      this.#contexts.set(id, change);
    }
    return change;
  }
}

type Scopes = Pick<TaskRow, "agent" | "owner" | "context">;

function add(tally: number[], state: TaskState, by: number): void {
  const index = stateNumber(state);
  tally[index] = (tally[index] ?? 0) + by;
}
