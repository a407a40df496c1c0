import { A2AError } from "../model/index.ts";
import type { Store } from "../store/index.ts";
import type { BlobRooms, BlobSettings } from "./lazy.ts";
import { blobFeature, blobId, placeOf } from "./ref.ts";
import type { BlobStore } from "./port.ts";

/** Entries of a page when unused blobs are searched for. */
const pageSize = 500;
/** What begins the keys of marks. No key of a file begins with it. */
const marks = "~~database/";
/** The key that the id of the database is stored under. It never expires. */
const database = { agent: "~~files", owner: "~~files" };
/** By so much the clock may go wrong between two searches without being set, in milliseconds. */
const drift = 60_000;

/**
 * Deletes the blobs that no task has. What it deletes is gone for good, so it does nothing where it cannot know: in a store of files that
 * another database has marked, and after the clock was set.
 */
export class Collector {
  readonly #settings: BlobSettings;
  readonly #rooms: BlobRooms;
  /** Wall time without the monotonic time. */
  #offset: number;
  /** Nothing is deleted before; monotonic time. */
  #notBefore = -Infinity;

  constructor(settings: BlobSettings, rooms: BlobRooms) {
    this.#settings = settings;
    this.#rooms = rooms;
    this.#offset = rooms.clock.now() - rooms.clock.elapsed();
  }

  /** Deletes those that are old enough. `stopped`: whether to end. Returns how many there were. */
  async collect(stopped: () => boolean): Promise<number> {
    const { logger } = this.#rooms;
    const { store } = this.#settings;
    if (this.#clockWasSet() || !(await this.#isOwn(store))) return 0;
    const before = this.#rooms.clock.now() - this.#settings.keepUnused;
    let deleted = 0;
    let failure: { readonly thrown: unknown } | undefined;
    for (let after: string | undefined, more = true; more && !stopped();) {
      const { blobs, next } = await store.list({ prefix: "", limit: pageSize, ...(after !== undefined && { after }) });
      try {
        const unused = await this.#unused(blobs.filter(({ time }) => time < before).map(({ key }) => key));
        await store.delete(unused);
        deleted += unused.length;
      } catch (thrown) {
        // The pages after it do not wait for it.
        failure ??= { thrown };
      }
      after = next;
      more = next !== undefined;
    }
    if (deleted > 0) logger.info("Files that no task has were deleted", { files: deleted });
    if (failure !== undefined) throw failure.thrown;
    return deleted;
  }

  /** A clock that was set makes files look old that are about to be named by a record. */
  #clockWasSet(): boolean {
    const { clock, logger } = this.#rooms;
    const offset = clock.now() - clock.elapsed();
    const by = offset - this.#offset;
    this.#offset = offset;
    if (Math.abs(by) > drift) {
      this.#notBefore = clock.elapsed() + this.#settings.keepUnused;
      logger.warn("The clock was set: unused files are deleted later", { by, later: this.#settings.keepUnused });
    }
    return clock.elapsed() < this.#notBefore;
  }

  /** Whether the store of files belongs to this database, which marks one that nobody has marked. */
  async #isOwn(store: BlobStore): Promise<boolean> {
    const { logger, tasks, clock } = this.#rooms;
    const own = marks + (await idOf(tasks, clock.now()));
    const keys = async (): Promise<readonly string[]> =>
      (await store.list({ prefix: marks, limit: 2 })).blobs.map(({ key }) => key);
    if ((await keys()).length === 0) await store.put(own, nothing());
    // Another one may have marked it at the same time: then neither deletes anything.
    const found = await keys();
    if (found.length === 1 && found[0] === own) return true;
    logger.error("The files belong to another database, so those that this one does not know are not deleted", {
      mark: found.find((key) => key !== own),
      own,
    });
    return false;
  }

  /** Those of the keys that no row of their task names. What is no key of a server is left alone. */
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
        const rows = await this.#rooms.tasks.features({ agent }, taskId, blobFeature);
        used = new Set(rows.map(({ key: id }) => id));
        task = name;
      }
      if (!used.has(place.id)) unused.push(key);
    }
    return unused;
  }
}

async function* nothing(): AsyncGenerator<never, void, void> {}

/** The id of a database. Whoever asks first makes it. */
async function idOf(store: Store, now: number): Promise<string> {
  const known = await store.once(database, "id", now);
  if (known !== undefined) return known.hash;
  const once = { effect: "once", key: "id", hash: blobId(), now, until: Number.MAX_SAFE_INTEGER } as const;
  const [outcome] = await store.append([{ context: { ...database, contextId: "database" }, effects: [once] }]);
  if (outcome?.ok === true) return once.hash;
  const first = outcome?.once ?? (await store.once(database, "id", now));
  if (first === undefined) throw new A2AError("Unavailable", "The database has no id for its files");
  return first.hash;
}
