import type { Owner, ReadItem } from "@parley/server/internal/store/index";
import type { ReadAppend } from "../shared/batch.ts";
import type { Row, Value } from "./driver.ts";
import { FeatureRows, Keys, type WantedFeature, type WantedKey } from "./effects.ts";
import { nextNumber } from "./retention.ts";
import {
  columns,
  indexName,
  int,
  ownColumns,
  ownTables,
  ownWidth,
  rowsOf,
  taskRow,
  text,
  together,
  write,
  type Sql,
} from "./schema.ts";
import { ScopeGone, type ScopeIds, type ScopeNames } from "./scopes.ts";
import type { LockedTask } from "./task-writer.ts";

const wantedTasks = columns("agent bigint, id text, owner bigint");
/**
 * Locks tasks in the order of their numbers, so that transactions never deadlock. Without an owner, finds the tasks of all owners,
 * since ids are unique per agent.
 */
const lockTasks = `SELECT ${ownColumns}, t.has_features, t.touched
  FROM ${rowsOf(wantedTasks)} JOIN ${ownTables} ON t.agent = v.agent AND t.id = v.id AND (v.owner IS NULL OR t.owner = v.owner)
  ORDER BY t.number FOR NO KEY UPDATE OF t`;

const wantedContexts = columns("owner bigint, name text");
const selectContexts = `SELECT c.owner, c.name, c.id FROM ${rowsOf(wantedContexts)}
  JOIN parley.contexts c ON c.owner = v.owner AND c.name = v.name`;

/**
 * Data that every append reads: whether search is on (waits for a transaction that switches search); a number from `places`, which
 * lets nodes detect writes; how many of the scopes exist; blocks of `said` for new messages; and how many of the owners that get
 * new tasks or contexts exist. The statement locks these owners against deletion.
 */
const selectShared = `SELECT is_on, nextval('parley.places'),
  (SELECT count(*)::int FROM parley.scopes WHERE id = ANY($1::bigint[])),
  ARRAY(SELECT nextval('parley.said') FROM generate_series(1, $2)),
  (SELECT count(*)::int FROM (SELECT 1 FROM parley.scopes WHERE id = ANY($3::bigint[]) FOR KEY SHARE) growing) FROM parley.search`;
const selectNumbers = `SELECT ${nextNumber} FROM generate_series(1, $1)`;

/** Places of a conversation per number of the sequence. */
const placesPerBlock = 2 ** 10;

/** Data that a transaction reads before it decides. */
export interface Known {
  readonly names: ScopeNames;
  /** Tasks that exist, by `taskPath`. */
  readonly tasks: Map<string, LockedTask>;
  /** Contexts that exist, by `contextPath`. */
  readonly contexts: Map<string, number>;
  readonly keys: Keys;
  readonly features: FeatureRows;
  /** Whether texts are indexed. */
  readonly indexes: boolean;
  /** A number that is not used by any task or context. */
  number(): number;
  /** The next place in every conversation. */
  place(): number;
}

export function taskPath(agent: number, taskId: string): string {
  return `${agent}/${taskId}`;
}

export function contextPath(owner: number, contextId: string): string {
  return `${owner}/${indexName(contextId)}`;
}

/** Ids of the agents and owners of items. Call this before the transaction, because it creates missing agents and owners. */
export function resolveNames(sql: Sql, scopes: ScopeIds, items: readonly ReadAppend[]): Promise<ScopeNames> {
  const wanted = items.map((each) => {
    if (!("item" in each)) return { agent: each.context.agent, owner: each.context.owner, make: true };
    const { task, create } = each.item;
    return { agent: task.agent, owner: task.owner, make: create !== undefined };
  });
  return scopes.resolve(sql, wanted);
}

/** Locks the tasks of the items and reads the rows that they name, in one round trip. */
export async function readKnown(
  sql: Sql,
  names: ScopeNames,
  items: readonly ReadAppend[],
  onPlaces?: (places: number) => void,
): Promise<Known> {
  const wanted = new Wanted(names, items);
  const keys = new Keys();
  const features = new FeatureRows();
  const count = wanted.tasks.length + wanted.contexts.length;
  const [locked, shared, contexts, numbers] = await together([
    write(sql, lockTasks, wanted.tasks, wantedTasks.length),
    sql(selectShared, names.ids, Math.ceil(wanted.places / placesPerBlock), [...wanted.growing]),
    write(sql, selectContexts, wanted.contexts, wantedContexts.length),
    wanted.contexts.length === 0 ? Promise.resolve([]) : sql(selectNumbers, count),
    keys.read(sql, wanted.keys),
    features.read(sql, wanted.features),
  ]);
  onPlaces?.(int(shared[0], 1));
  if (int(shared[0], 2) < names.ids.length || int(shared[0], 4) < wanted.growing.size) {
    throw new ScopeGone("An agent or an owner is gone");
  }
  const blocks = (shared[0]?.[3] ?? []) as readonly number[];
  let [numberAt, placeAt] = [0, 0];
  return {
    names,
    tasks: new Map(locked.map((row) => taskOf(row, wanted))),
    contexts: new Map(contexts.map((row) => [`${int(row, 0)}/${text(row, 1)}`, int(row, 2)] as const)),
    keys,
    features,
    indexes: int(shared[0], 0) === 1,
    number: () => int(numbers[numberAt++], 0),
    place() {
      const block = blocks[Math.floor(placeAt / placesPerBlock)];
      if (block === undefined) throw new RangeError("There are more messages than places");
      return block * placesPerBlock + (placeAt++ % placesPerBlock);
    },
  };
}

function taskOf(row: Row, { owners }: Wanted): readonly [string, LockedTask] {
  const [agentId, ownerId] = [int(row, 1), int(row, 2)];
  // The owner of a foreign task stays unknown, because its head is never returned.
  const owner = owners.get(ownerId) ?? { agent: "", owner: "" };
  const { head, statusSeq, hasMetadata, ...place } = taskRow(row, owner);
  const hasFeatures = int(row, ownWidth) === 1;
  const task: LockedTask = {
    row: place,
    stored: head,
    storedStatus: statusSeq,
    head,
    statusSeq,
    hasMetadata,
    hasFeatures,
    storedFeatures: hasFeatures,
    touched: int(row, ownWidth + 1),
  };
  return [taskPath(agentId, head.task.taskId), task];
}

/** The tasks, contexts, keys and rows that the items name, deduplicated. */
class Wanted {
  readonly owners = new Map<number, Owner>();
  /** The owners that may get a new task or context. */
  readonly growing = new Set<number>();
  readonly #tasks = new Map<string, Value[]>();
  readonly #contexts = new Map<string, Value[]>();
  readonly keys: WantedKey[] = [];
  readonly features: WantedFeature[] = [];
  /** Maximum number of messages that are added. */
  places = 0;

  constructor(names: ScopeNames, items: readonly ReadAppend[]) {
    for (const each of items) {
      const key = "item" in each ? each.item.task : each.context;
      const agent = names.find(key.agent);
      const owner = names.find(key.agent, key.owner);
      // An unknown scope has no data.
      if (agent === undefined || owner === undefined) continue;
      this.owners.set(owner, { agent: key.agent, owner: key.owner });
      for (const effect of ("item" in each ? each.item.effects : each.effects) ?? []) {
        if (effect.effect === "once") this.keys.push({ owner, key: effect.key, now: effect.now });
        else if (effect.effect === "contextMessage") this.places += 1;
      }
      if ("item" in each) this.#addTask(each, agent, owner);
      else this.#addContext(owner, each.context.contextId);
    }
  }

  get tasks(): readonly Value[][] {
    return [...this.#tasks.values()];
  }

  get contexts(): readonly Value[][] {
    return [...this.#contexts.values()];
  }

  #addTask({ item, records, features }: ReadItem, agent: number, owner: number): void {
    for (const { inHistory } of records) if (inHistory) this.places += 1;
    const { taskId } = item.task;
    const id = indexName(taskId);
    if (item.create === undefined) this.#tasks.set(`${agent}/${owner}/${taskId}`, [agent, id, owner]);
    else {
      this.#tasks.set(`${agent}//${taskId}`, [agent, id, null]);
      this.#addContext(owner, item.create.contextId);
    }
    for (const effect of features)
      if (effect.op !== "wake") this.features.push([agent, taskId, effect.feature, effect.key]);
  }

  #addContext(owner: number, name: string): void {
    this.growing.add(owner);
    this.#contexts.set(contextPath(owner, name), [owner, indexName(name)]);
  }
}
