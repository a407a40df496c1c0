import { A2AError } from "@parley/a2a/internal/model/index";
import type { BlobRooms, BlobSettings } from "./lazy.ts";
import { marked } from "./mark.ts";
import { blobFeature, placeOf } from "./ref.ts";
import type { BlobStore } from "./port.ts";

/** Entries of a page when unused blobs are searched for. */
const pageSize = 500;
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
    // Read before anything is waited for: the clock may be set at any time after it was looked at.
    const before = this.#rooms.clock.now() - this.#settings.keepUnused;
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
        // The pages after it do not wait for it.
        failure ??= { thrown };
      }
      if (next !== undefined && seen.has(next)) {
        throw new A2AError("Unavailable", "The blob store lists the same page again and again");
      }
      if (next !== undefined) seen.add(next);
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

  async #isOwn(store: BlobStore): Promise<boolean> {
    const { logger, tasks, clock } = this.#rooms;
    const { own, mark } = await marked(store, tasks, clock.now());
    if (mark === own) return true;
    logger.error("The files belong to another database, so those that this one does not know are not deleted", {
      mark,
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
