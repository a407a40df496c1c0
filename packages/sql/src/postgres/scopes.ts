import { randomInt } from "node:crypto";
import type { TaskState } from "@parley/a2a/internal/model/index";
import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Owner, TaskHead } from "@parley/server/internal/store/index";
import type { Value } from "./driver.ts";
import {
  bothNames,
  columns,
  count,
  indexName,
  insertInto,
  int,
  optional,
  rowsOf,
  stateNumber,
  states,
  text,
  write,
  type Sql,
  type TaskRow,
} from "./schema.ts";

/** The parent of agents. */
const root = 0;

/** Bytes of memory. */
const maxBytes = 4 << 20;

const named = columns("parent bigint, name text");
const findScopes = `SELECT s.parent, s.name, s.id FROM ${rowsOf(named)} JOIN parley.scopes s USING (parent, name)`;
const made = columns("parent bigint, name text, long_name text, id bigint");
const insertScopes = insertInto("scopes", made, "parent, name", "ON CONFLICT DO NOTHING");
/** Attempts to draw an id. With a million ids in use, a draw from 2^48 rarely collides. */
const maxDraws = 3;

/**
 * An id that no scope ever had, even if a failover lost rows, because a node that has cached an id must not find another owner under
 * that id. Ids of earlier releases are below 2^48.
 */
function newId(): number {
  return 2 ** 48 + randomInt(2 ** 48 - 1);
}

/** A cached scope no longer exists, because the owner was deleted, the database was restored, or a replica without the scope took over. */
export class ScopeGone extends Error {}

interface WantedScope {
  readonly parent: number;
  readonly name: string;
  readonly make: boolean;
}

/** Caches ids of agents and owners for appends, which check that the scopes still exist. */
export class ScopeIds {
  readonly #known = new BoundedMap<number>({ bytes: maxBytes, bytesOf: (path) => memoryOf(path) });

  /** Forgets all ids. */
  forget(): void {
    this.#known.clear();
  }

  /** Resolves ids. Creates missing scopes if `make` is set. */
  async resolve(sql: Sql, wanted: readonly (Owner & { readonly make: boolean })[]): Promise<ScopeNames> {
    const found = new ScopeNames();
    await this.#resolve(
      sql,
      found,
      wanted.map(({ agent, make }) => ({ parent: root, name: agent, make })),
    );
    const owners = wanted.flatMap(({ agent, owner, make }) => {
      const parent = found.find(agent);
      return parent === undefined ? [] : [{ parent, name: owner, make }];
    });
    await this.#resolve(sql, found, owners);
    return found;
  }

  async #resolve(sql: Sql, found: ScopeNames, wanted: readonly WantedScope[]): Promise<void> {
    const missing = new Map<string, WantedScope>();
    for (const scope of wanted) {
      const path = pathOf(scope.parent, scope.name);
      const id = found.get(path) ?? this.#known.get(path);
      if (id !== undefined) found.set(path, id);
      else if (missing.get(path)?.make !== true) missing.set(path, scope);
    }
    if (missing.size === 0) return;
    const look = async (): Promise<void> => {
      const rows = Array.from(missing.values(), ({ parent, name }) => [parent, indexName(name)]);
      for (const row of await write(sql, findScopes, rows, named.length)) {
        const path = `${int(row, 0)}/${text(row, 1)}`;
        missing.delete(path);
        found.set(path, int(row, 2));
        this.#known.set(path, int(row, 2));
      }
    };
    await look();
    for (let draws = 0; ; draws += 1) {
      const rows = [...missing.values()].filter(({ make }) => make);
      if (rows.length === 0) return;
      if (draws === maxDraws) throw new RangeError("Failed to draw an unused id for an agent or an owner");
      const values = rows.map(({ parent, name }) => [parent, ...bothNames(name), newId()]);
      await write(sql, insertScopes, values, made.length);
      await look();
    }
  }
}

function pathOf(parent: number, name: string): string {
  return `${parent}/${indexName(name)}`;
}

export class ScopeNames {
  readonly #ids = new Map<string, number>();

  get(path: string): number | undefined {
    return this.#ids.get(path);
  }

  set(path: string, id: number): void {
    this.#ids.set(path, id);
  }

  /** All resolved ids. */
  get ids(): readonly number[] {
    return [...this.#ids.values()];
  }

  find(agent: string, owner?: string): number | undefined {
    const parent = this.get(pathOf(root, agent));
    return owner === undefined || parent === undefined ? parent : this.get(pathOf(parent, owner));
  }
}

/** The id of an agent or an owner. Readers do not cache the id, which could be invalid after a failover. */
export async function findScope(sql: Sql, agent: string, owner?: string): Promise<number | undefined> {
  if (owner !== undefined) return (await findPlace(sql, { agent, owner }, ""))?.owner;
  const [row] = await sql("SELECT id FROM parley.scopes WHERE parent = $1 AND name = $2", root, indexName(agent));
  return row && count(row);
}

/** SQL of the ids of the agents named in `$1`, or of all agents if `$1` is null. */
export const namedAgents: string = `SELECT id FROM parley.scopes
  WHERE parent = ${root} AND ($1::text[] IS NULL OR name = ANY($1::text[]))`;

/** The contexts with this name, across the owners of an agent. */
export async function findContexts(sql: Sql, agent: number, contextId: string): Promise<readonly number[]> {
  const rows = await sql(
    "SELECT c.id FROM parley.scopes o JOIN parley.contexts c ON c.owner = o.id AND c.name = $1 WHERE o.parent = $2",
    indexName(contextId),
    agent,
  );
  return rows.map(count);
}

/** An owner, and one of its contexts. */
export interface OwnerPlace {
  readonly owner: number;
  readonly context?: number;
}

/** The ids of an owner and of a context, in one statement. */
export async function findPlace(sql: Sql, { agent, owner }: Owner, contextId: string): Promise<OwnerPlace | undefined> {
  const [row] = await sql(
    `SELECT o.id, c.id FROM parley.scopes a JOIN parley.scopes o ON o.parent = a.id AND o.name = $2
       LEFT JOIN parley.contexts c ON c.owner = o.id AND c.name = $3 WHERE a.parent = ${root} AND a.name = $1`,
    ...[agent, owner, contextId].map(indexName),
  );
  if (row === undefined) return undefined;
  const context = optional(row, 1);
  return { owner: count(row), ...(typeof context === "number" && { context }) };
}

/** The columns of counts. */
const tallies = columns(states.map((_, index) => `n${index} bigint`).join(", "));
const sums = tallies.map(([name]) => `coalesce(sum(${name}), 0)::bigint`).join(", ");

/** The number of tasks per state, in the order of `states`. */
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

/** Rows of `counts` per scope. To avoid lock waits, a connection chooses its row by its process id. */
const shards = 16;

const contextColumns = [
  ...columns("id bigint, owner bigint, name text, long_name text, tasks bigint, touched bigint"),
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
  // Does not create contexts of a deleted owner. `forgetOwner` waits for contexts that are being created.
  "EXISTS (SELECT 1 FROM parley.scopes s WHERE s.id = v.owner)",
);
const countColumns = [...columns("scope bigint"), ...tallies];
const tallyNames = tallies.map(([name]) => name).join(", ");
const upsertCounts = `INSERT INTO parley.counts (scope, shard, ${tallyNames})
  SELECT scope, pg_backend_pid() % ${shards}, ${tallyNames} FROM ${rowsOf(countColumns)} ORDER BY scope
  ON CONFLICT (scope, shard) DO UPDATE SET ${added("counts")}`;

/** Collects a transaction's changes to the counts of scopes, because the items of a batch share few scopes. */
export class ScopeChanges {
  readonly #tallies = new Map<number, number[]>();
  readonly #contexts = new Map<number, ContextChange>();

  /** Creates the context if it is missing. */
  touch(context: number, owner: number, name: string, time: number): void {
    const change = this.#context(context, owner, name);
    change.touched = Math.max(change.touched, time);
  }

  /** Adds a task to the counts of its scopes, removes it, or moves it to another state. */
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

  /** Resolves to `false` if another transaction has created one of the contexts. */
  async writeContexts(sql: Sql): Promise<boolean> {
    const rows = Array.from(this.#contexts, ([id, { owner, name, tasks, touched, tally }]): Value[] => {
      return [id, owner, ...bothNames(name), tasks, touched, ...tally];
    });
    const written = await write(sql, upsertContexts, rows, contextColumns.length);
    if (written.length < rows.length) throw new ScopeGone("An owner was deleted meanwhile");
    return written.every((row) => this.#contexts.has(int(row, 2)));
  }

  /** Call this last, because other transactions wait for these rows. */
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
