import { A2AError } from "@parley/a2a/internal/model/index";
import type { Store } from "../store/index.ts";
import type { BlobDeps, BlobSettings, BlobStore } from "./port.ts";
import { blobFeature, blobId, placeOf, prefixOf, unknownAgent } from "./ref.ts";

/** Selects the blobs to delete. */
export interface BlobScope {
  /** The id that the tasks of the agent are stored under: `ServedAgent.id`. */
  readonly agent: string;
  /** The owner. Absent: all owners. */
  readonly owner?: string;
  /** The task. Absent: all tasks of the owner. */
  readonly taskId?: string;
}

/**
 * Deletes the blobs of an agent, of an owner, or of a task, and returns their number. A server deletes the blobs of deleted tasks within 25 hours.
 * Use this function to delete them now.
 *
 * @example
 * ```ts
 * async function forget(store: BlobStore, owner: string) {
 *   return await deleteBlobsOf(store, { agent: "/", owner });
 * }
 * ```
 */
export async function deleteBlobsOf(store: BlobStore, { agent, owner, taskId }: BlobScope): Promise<number> {
  const prefix = await prefixOf(agent, owner, taskId);
  let deleted = 0;
  let last: string | undefined;
  for (;;) {
    // From the start each time, because the previous page has been deleted.
    const { blobs, next } = await store.list({ prefix, limit: 1000 });
    const first = blobs[0]?.key;
    // Otherwise this would loop forever if a bucket does not delete.
    if (next !== undefined && (first === undefined || first === last)) {
      throw new A2AError("Unavailable", "The blob store still lists deleted files");
    }
    last = first;
    await store.delete(blobs.map(({ key }) => key));
    deleted += blobs.length;
    if (next === undefined) return deleted;
  }
}

/** Deletes files of an owner's messages that are still being received, or whose server crashed meanwhile. Returns their number. */
export function deleteIncomingBlobs(store: BlobStore, owner: string): Promise<number> {
  return deleteBlobsOf(store, { agent: unknownAgent, owner });
}

/* Marks a blob store as belonging to a database: the name of the mark contains the id of the database. */

/** The prefix of the keys of marks. No key of a file has it. */
const marks = "~~database/";
/** The owner of the idempotency key with the id of the database. The key never expires. */
const database = { agent: "~~files", owner: "~~files" };

/** The marks of a blob store and of a database. Marks an unmarked store. */
export async function marked(
  files: BlobStore,
  store: Store,
  now: number,
): Promise<{ readonly own: string; readonly mark: string | undefined }> {
  const own = marks + (await idOf(store, now));
  if ((await marksOf(files)).length === 0) await files.put(own, nothing());
  // If another database marks the blob store at the same time, the blob store belongs to neither.
  const found = await marksOf(files);
  return { own, mark: found.find((key) => key !== own) ?? found[0] };
}

/**
 * Whether a blob store belongs to a database: `false` if another database has marked it. `undefined` if it has no mark: a server sets the
 * mark when it first searches for unused files. Changes nothing.
 *
 * @example
 * ```ts
 * async function check(files: BlobStore, store: Store) {
 *   if ((await blobsBelongTo(files, store)) === false) throw new Error("These are the files of another database");
 * }
 * ```
 */
export async function blobsBelongTo(files: BlobStore, store: Store): Promise<boolean | undefined> {
  const found = await marksOf(files);
  if (found.length === 0) return undefined;
  const own = await store.once(database, "id", Math.floor(store.clock?.now() ?? Date.now()));
  return own !== undefined && found.every((key) => key === marks + own.hash);
}

async function marksOf(files: BlobStore): Promise<readonly string[]> {
  return (await files.list({ prefix: marks, limit: 2 })).blobs.map(({ key }) => key);
}

async function* nothing(): AsyncGenerator<never, void, void> {}

/** The id of a database, created on first use. */
async function idOf(store: Store, now: number): Promise<string> {
  const known = await store.once(database, "id", now);
  if (known !== undefined) return known.hash;
  const once = { effect: "once", key: "id", hash: blobId(), now, until: Number.MAX_SAFE_INTEGER } as const;
  const [outcome] = await store.append([{ context: { ...database, contextId: "database" }, effects: [once] }]);
  if (outcome?.ok === true) return once.hash;
  const first = outcome?.once ?? (await store.once(database, "id", now));
  if (first === undefined) throw new A2AError("Unavailable", "The database has no id for marking its files");
  return first.hash;
}

const pageSize = 500;
/** Maximum drift of the clock between two searches, in milliseconds. More counts as a jump. */
const drift = 60_000;

/**
 * Deletes blobs without a task. Deletion is permanent, so it is skipped in two cases: if the blob store belongs to another
 * database, and after a clock jump.
 */
export class Collector {
  readonly #settings: BlobSettings;
  readonly #deps: BlobDeps;
  /** Wall time minus monotonic time. */
  #offset: number;
  /** The earliest time to delete anything; monotonic time. */
  #notBefore = -Infinity;

  constructor(settings: BlobSettings, deps: BlobDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.#offset = deps.clock.now() - deps.clock.elapsed();
  }

  /** Deletes unused blobs that are old enough. `stopped`: whether to stop. Returns the number of deleted blobs. */
  async collect(stopped: () => boolean): Promise<number> {
    const { logger } = this.#deps;
    const { store } = this.#settings;
    // Read before the first await, because the clock may be set later.
    const before = this.#deps.clock.now() - this.#settings.keepUnused;
    if (this.#clockWasSet() || !(await this.#isOwn(store))) return 0;
    let deleted = 0;
    let failure: { readonly thrown: unknown } | undefined;
    const seen = new Set<string>();
    for (let after: string | undefined, more = true; more && !stopped();) {
      const { blobs, next } = await store.list({ prefix: "", limit: pageSize, ...(after !== undefined && { after }) });
      try {
        const unused = await this.#unused(blobs.filter(({ time }) => time < before).map(({ key }) => key));
        await store.delete(unused);
        deleted += unused.length;
      } catch (thrown) {
        // Continues with the other pages.
        failure ??= { thrown };
      }
      if (next !== undefined && seen.has(next)) {
        throw new A2AError("Unavailable", "The blob store keeps listing the same page");
      }
      if (next !== undefined) seen.add(next);
      after = next;
      more = next !== undefined;
    }
    if (deleted > 0) logger.info("Deleted unused files", { files: deleted });
    if (failure !== undefined) throw failure.thrown;
    return deleted;
  }

  /** After a clock jump, new files look old although a record is about to name them. */
  #clockWasSet(): boolean {
    const { clock, logger } = this.#deps;
    const offset = clock.now() - clock.elapsed();
    const by = offset - this.#offset;
    this.#offset = offset;
    if (Math.abs(by) > drift) {
      this.#notBefore = clock.elapsed() + this.#settings.keepUnused;
      logger.warn("Wall clock jumped; unused files are deleted later", { by, later: this.#settings.keepUnused });
    }
    return clock.elapsed() < this.#notBefore;
  }

  async #isOwn(store: BlobStore): Promise<boolean> {
    const { logger, tasks, clock } = this.#deps;
    const { own, mark } = await marked(store, tasks, clock.now());
    if (mark === own) return true;
    logger.error("Files belong to another database; unused files are not deleted", {
      mark,
      own,
    });
    return false;
  }

  /** The keys that no row of their task names. Ignores keys that no server has created. */
  async #unused(keys: readonly string[]): Promise<readonly string[]> {
    const unused: string[] = [];
    let task = "";
    let used: ReadonlySet<string> = new Set();
    for (const key of keys) {
      const place = placeOf(key);
      if (place === undefined) continue;
      const { agent, taskId } = place;
      const name = key.slice(0, key.lastIndexOf("/"));
      if (name !== task) {
        const rows = await this.#deps.tasks.features({ agent }, taskId, blobFeature);
        used = new Set(rows.map(({ key: id }) => id));
        task = name;
      }
      if (!used.has(place.id)) unused.push(key);
    }
    return unused;
  }
}
