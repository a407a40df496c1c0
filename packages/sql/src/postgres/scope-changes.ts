import type { TaskState } from "@parley/a2a/internal/model/index";
import type { TaskHead } from "@parley/server/internal/store/index";
import type { Value } from "./driver.ts";
import { bothNames, insertInto, int, rowsOf, stateNumber, states, write, type Column, type TaskRow } from "./rows.ts";
import type { Sql } from "./schema.ts";
import { ScopeGone, tallies } from "./scopes.ts";

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
  // Those of an owner that was deleted are not created. `forgetOwner` waits for those that are being created.
  "EXISTS (SELECT 1 FROM parley.scopes s WHERE s.id = v.owner)",
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
      return [id, owner, ...bothNames(name), tasks, touched, ...tally];
    });
    const written = await write(sql, upsertContexts, rows, contextColumns.length);
    if (written.length < rows.length) throw new ScopeGone("An owner was deleted meanwhile");
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
