import { A2AError } from "@parley/a2a/internal/model/index";
import type { Store } from "../store/index.ts";
import type { BlobStore } from "./port.ts";
import { blobId } from "./ref.ts";

/* Whose a store of files is: it has the id of its database as the name of a mark. */

/** What begins the keys of marks. No key of a file begins with it. */
const marks = "~~database/";
/** The key that the id of the database is stored under. It never expires. */
const database = { agent: "~~files", owner: "~~files" };

/** The mark of a store of files, and that of a database. One that nobody has marked gets it. */
export async function marked(
  files: BlobStore,
  store: Store,
  now: number,
): Promise<{ readonly own: string; readonly mark: string | undefined }> {
  const own = marks + (await idOf(store, now));
  if ((await marksOf(files)).length === 0) await files.put(own, nothing());
  // Another one may have marked it at the same time: then it is nobody's.
  const found = await marksOf(files);
  return { own, mark: found.find((key) => key !== own) ?? found[0] };
}

/**
 * Whether a store of files is that of a database: `false` where another one has marked it. `undefined`: no server has marked it so far,
 * which one does when it first looks for unused files. Nothing is changed.
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
