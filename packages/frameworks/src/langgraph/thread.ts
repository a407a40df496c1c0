import type { JsonObject, JsonValue } from "@parley/a2a/model";

/* The state of a thread: its newest checkpoints, their pending writes, and the calls of unfinished nodes. */

/** A value in the format of LangGraph's serializer. */
export type Typed = readonly [type: string, value: JsonValue];

/** Writes and reads values. */
export interface Codec {
  typed(value: unknown): Promise<Typed>;
  read(typed: Typed): Promise<unknown>;
}

/** A pending write. */
export type Write = readonly [taskId: string, index: number, channel: string, value: Typed, path: string];

interface Checkpoint {
  readonly id: string;
  readonly parent?: string;
  readonly checkpoint: Typed;
  readonly metadata: Typed;
  readonly writes: readonly Write[];
}

/** A stored thread. */
export interface StoredThread {
  readonly checkpoints: Readonly<Record<string, readonly Checkpoint[]>>;
  readonly calls: Readonly<Record<string, Typed>>;
}

/** Indices of special writes, which replace earlier writes (LangGraph's `WRITES_IDX_MAP`). */
const special: ReadonlyMap<string, number> = new Map(
  ["__error__", "__scheduled__", "__interrupt__", "__resume__"].map((channel, at) => [channel, -1 - at]),
);

/** The index of a write within a group of writes. */
export function indexOf(channel: string, at: number): number {
  return special.get(channel) ?? at;
}

export class Thread {
  /** Results of calls, by call name. */
  readonly calls: Map<string, Typed>;
  readonly #checkpoints: Map<string, readonly Checkpoint[]>;

  constructor(stored: StoredThread | undefined) {
    this.calls = new Map(Object.entries(stored?.calls ?? {}));
    this.#checkpoints = new Map(Object.entries(stored?.checkpoints ?? {}));
  }

  /** A checkpoint of a graph (`""`) or subgraph. Default: the newest checkpoint. */
  find(namespace: string, id?: string): Checkpoint | undefined {
    const all = this.#checkpoints.get(namespace) ?? [];
    return id === undefined ? all.at(-1) : all.find((each) => each.id === id);
  }

  /** All checkpoints, newest first. */
  *all(): Generator<readonly [namespace: string, checkpoint: Checkpoint]> {
    for (const [namespace, checkpoints] of this.#checkpoints)
      for (const checkpoint of checkpoints.toReversed()) yield [namespace, checkpoint];
  }

  /**
   * Adds a checkpoint, and drops earlier ones unless `needsParents`. With `ends`, the nodes before the checkpoint have ended, so their calls and
   * subgraphs are no longer needed.
   */
  put(namespace: string, checkpoint: Checkpoint, needsParents: boolean, ends: boolean): void {
    const before = needsParents ? (this.#checkpoints.get(namespace) ?? []) : [];
    this.#checkpoints.set(namespace, [...before, checkpoint]);
    if (!ends || namespace !== "") return;
    this.calls.clear();
    // The namespace of a subgraph with its own memory has no task id.
    for (const name of this.#checkpoints.keys()) if (name.includes(":")) this.#checkpoints.delete(name);
  }

  /** Adds pending writes to a checkpoint. Ignores writes to a dropped checkpoint. */
  write(namespace: string, id: string, added: readonly Write[]): void {
    const all = this.#checkpoints.get(namespace) ?? [];
    const keyOf = ([taskId, index]: Write): string => `${taskId} ${index}`;
    this.#checkpoints.set(
      namespace,
      all.map((each) => {
        if (each.id !== id) return each;
        const writes = new Map(each.writes.map((write) => [keyOf(write), write]));
        for (const write of added) if (write[1] < 0 || !writes.has(keyOf(write))) writes.set(keyOf(write), write);
        return { ...each, writes: [...writes.values()].sort(compare) };
      }),
    );
  }

  /** Interrupts of unfinished nodes. */
  interrupts(): readonly Typed[] {
    const writes = this.find("")?.writes ?? [];
    const ended = new Set(writes.flatMap(([taskId, index]) => (index < 0 ? [] : [taskId])));
    return writes.flatMap(([taskId, , channel, value]) =>
      channel === "__interrupt__" && !ended.has(taskId) ? [value] : [],
    );
  }

  toJson(): JsonObject {
    const checkpoints = Object.fromEntries([...this.#checkpoints].map(([name, all]) => [name, all.map(jsonOf)]));
    return { checkpoints, calls: Object.fromEntries(this.calls) };
  }
}

function jsonOf({ id, parent, checkpoint, metadata, writes }: Checkpoint): JsonObject {
  return { id, ...(parent !== undefined && { parent }), checkpoint, metadata, writes };
}

/** Sorts writes as LangGraph applies them: by path, task and index. */
function compare([task, index, , , path]: Write, [otherTask, otherIndex, , , otherPath]: Write): number {
  if (path !== otherPath) return path < otherPath ? -1 : 1;
  if (task !== otherTask) return task < otherTask ? -1 : 1;
  return index - otherIndex;
}
