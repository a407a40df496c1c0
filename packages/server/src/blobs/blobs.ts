import type { Bytes, Clock } from "@parley/a2a/internal/base/index";
import { decoded, sizeOfBase64 } from "@parley/a2a/internal/files/content";
import { A2AError, type Part } from "@parley/a2a/internal/model/index";
import type {
  ByteBudget,
  IncomingFile,
  UniversalRequest,
  UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import { createSeal, type Seal } from "../seal/index.ts";
import type { FeatureEffect, TaskKey } from "../store/index.ts";
import { Collector, deleteBlobsOf, deleteIncomingBlobs } from "./deletion.ts";
import { ByteHash } from "@parley/a2a/internal/base/bytes";
import type { BlobDeps, BlobSettings } from "./port.ts";
import { aboutOf, answerLink, linkTo } from "./links.ts";
import {
  type BlobAbout,
  blobFeature,
  blobId,
  type BlobOwner,
  BlobReader,
  type BlobRef,
  blobRowJson,
  idOf,
  prefixOf,
  refOf,
  refUrl,
  rowOf,
  fileAt,
} from "./ref.ts";
import { moveBlob } from "./receive.ts";
import { pause } from "@parley/a2a/internal/base/async";

/** The files of a task, and how many more bytes it may store. */
export interface BlobQuota {
  /** Remaining bytes. */
  bytes: number;
  /** Who sends the files, for errors. */
  readonly sender: "client" | "agent";
  /** Ids of the blobs whose row is already stored, or will be stored with the record that refers to the blob. */
  readonly ids: Set<string>;
  /** Rows of blobs that no record refers to yet, by key. */
  readonly rows: Map<string, FeatureEffect>;
  /** Files of a lost run, which the next run stores again. */
  readonly earlier: Pick<BlobRef, "key" | "hash" | "size">[];
  /** URLs of copies of files of other tasks, by key. */
  readonly copies: Map<string, string>;
  /** Called periodically while a file waits to be stored. */
  onWait?: () => void;
}

/** A file that is being stored. */
interface UnfinishedFile extends BlobOwner {
  /** Whether all files of the owner were deleted meanwhile. */
  isErased: boolean;
}

/** Delays before retrying to store a part from memory, in milliseconds. */
const retries = [100, 1000];

/** Stores files outside of the database, links to them, reads them, and deletes unused ones. */
export class Blobs extends BlobReader {
  readonly settings: BlobSettings;
  readonly #deps: BlobDeps;
  readonly #seal: Seal;
  readonly #collector: Collector;
  readonly #uploads: Uploads;
  readonly #unfinished = new Set<UnfinishedFile>();

  constructor(settings: BlobSettings, deps: BlobDeps) {
    super(settings.store);
    this.settings = settings;
    this.#deps = deps;
    this.#seal = createSeal(settings.keyring);
    this.#collector = new Collector(settings, deps);
    this.#uploads = new Uploads(settings.uploadBytes, settings.store.uploadBytes ?? 1 << 20, deps.clock);
  }

  /** The files of a task, according to its rows. `resumes`: a resumed run may store the files of the lost run again. */
  async quotaOf(task: TaskKey, sender: BlobQuota["sender"], resumes = false): Promise<BlobQuota> {
    const rows = await this.#deps.tasks.features(task, task.taskId, blobFeature);
    const prefix = await prefixOf(task.agent, task.owner, task.taskId);
    const blobs = rows.map(({ key, value }) => {
      const { bytes, hash } = blobRowJson.read(value);
      return { key: prefix + key, hash, size: bytes };
    });
    const taken = blobs.reduce((sum, { size }) => sum + size, 0);
    const ids = new Set(rows.map(({ key }) => key));
    return {
      bytes: this.settings.taskBytes - taken,
      sender,
      ids,
      rows: new Map(),
      earlier: resumes ? blobs : [],
      copies: new Map(),
    };
  }

  /**
   * The URL of a part that an agent forwards. Uses a file of this task directly, such as one from a stored step. Copies a file of another
   * task of the owner, because that file is deleted with its task.
   */
  async keep(task: TaskKey, url: string, about: BlobAbout, quota: BlobQuota): Promise<string> {
    const ref = refOf(url);
    if (ref === undefined || quota.ids.has(idOf(ref.key))) return url;
    if (ref.key.startsWith(await prefixOf(task.agent, task.owner, task.taskId))) {
      take(quota, ref);
      return url;
    }
    const copied = quota.copies.get(ref.key);
    if (copied !== undefined) return copied;
    if ((await this.owned(url, task)) === undefined) return url;
    let isGone = false;
    const open = (): Promise<AsyncIterable<Bytes> | undefined> => this.open(ref);
    // Opened when the copy starts, because a bucket closes responses that are not read.
    const body = async function* (): AsyncGenerator<Bytes, void, void> {
      const found = await open();
      isGone = found === undefined;
      if (found === undefined) throw new Error("The file was deleted");
      yield* found;
    };
    const copy = await this.store(task, body(), about, quota).catch((thrown: unknown) => {
      if (isGone) return { url };
      throw thrown;
    });
    quota.copies.set(ref.key, copy.url);
    return copy.url;
  }

  /** The parts, with large files moved out. Resolves when they are durable. */
  async storeParts(task: TaskKey, parts: readonly Part[], quota: BlobQuota): Promise<readonly Part[]> {
    const stored: Part[] = [];
    for (const part of parts) {
      if (typeof part.raw !== "string" || sizeOfBase64(part.raw) <= this.settings.inlineBytes) {
        stored.push(part);
        continue;
      }
      stored.push(fileAt(await this.#storeBase64(task, part, quota), part));
    }
    return stored;
  }

  async #storeBase64(task: TaskKey, part: Part & { readonly raw: string }, quota: BlobQuota): Promise<string> {
    for (let tries = 0; ; tries += 1) {
      try {
        return (await this.store(task, asAsync(decoded(part.raw)), part, quota)).url;
      } catch (error) {
        const wait = retries[tries];
        if (wait === undefined || !(error instanceof A2AError) || error.code !== "Unavailable") throw error;
        await pause(this.#deps.clock, wait);
      }
    }
  }

  /** Stores a file of a task when there is room. Resolves to the URL of its part once it is durable. */
  async store(
    task: TaskKey,
    bytes: AsyncIterable<Uint8Array>,
    about: BlobAbout,
    quota: BlobQuota,
  ): Promise<{ readonly url: string; readonly size: number }> {
    const { fileBytes, taskBytes } = this.settings;
    const hash = new ByteHash();
    const most = Math.max(quota.bytes, ...quota.earlier.map(({ size }) => size));
    const again: { key?: string } = {};
    async function* counted(): AsyncGenerator<Bytes, void, void> {
      for await (const given of bytes) {
        const piece = given as Bytes;
        hash.add(piece);
        if (hash.size > fileBytes) throw tooLarge(quota, "blobs.fileBytes", fileBytes);
        if (hash.size > most) throw tooLarge(quota, "blobs.taskBytes", taskBytes);
        yield piece;
      }
      const earlier = takeEarlier(quota, hash);
      if (earlier !== undefined) {
        again.key = earlier;
        throw new Error("The lost run has stored the same bytes");
      }
      if (hash.size > quota.bytes) throw tooLarge(quota, "blobs.taskBytes", taskBytes);
    }
    const key = (await prefixOf(task.agent, task.owner, task.taskId)) + blobId();
    await this.#uploads
      .run(task.owner, () => this.#put(task, key, counted()), quota.onWait)
      .catch((thrown: unknown) => {
        if (again.key === undefined) throw thrown;
      });
    const { size } = hash;
    const ref = { hash: hash.digest(), size, key: again.key ?? key };
    if (again.key === undefined) take(quota, ref);
    return { url: refUrl({ ...ref, about: aboutOf(about) }), size };
  }

  /** If the owner is erased during the upload, the file is deleted after it. */
  async #put({ agent, owner }: TaskKey, key: string, body: AsyncIterable<Bytes>): Promise<void> {
    const { store } = this.settings;
    const file: UnfinishedFile = { agent, owner, isErased: false };
    this.#unfinished.add(file);
    try {
      await store.put(key, body);
    } finally {
      this.#unfinished.delete(file);
      // Even after an error, because the upload may have succeeded. If the deletion fails, the collector deletes the file later.
      if (file.isErased) await store.delete([key]).catch(() => {});
    }
    if (file.isErased) throw new A2AError("Unavailable", "The owner of the file was erased");
  }

  /** Makes a file that was stored while its message was read a file of the task. */
  async adopt(task: TaskKey, file: IncomingFile, part: Part, quota: BlobQuota): Promise<Part> {
    const { taskBytes } = this.settings;
    if (file.taken) throw new A2AError("Unavailable", "The request with the file has ended");
    if (file.size > quota.bytes) {
      throw tooLarge(quota, "blobs.taskBytes", taskBytes);
    }
    file.taken = true;
    const prefix = await prefixOf(task.agent, task.owner, task.taskId);
    try {
      if (!file.key.startsWith(prefix)) file.key = await this.#move(task, file.key, prefix + idOf(file.key), quota);
    } catch (error) {
      file.taken = false;
      throw error;
    }
    take(quota, file);
    return fileAt(refUrl({ ...file, about: aboutOf(part) }), part);
  }

  /** Moves a file. Without `move`, the file is read and stored again, which takes the memory of an upload. */
  #move({ owner }: TaskKey, from: string, to: string, quota: BlobQuota): Promise<string> {
    const { store } = this.settings;
    const move = (): Promise<string> => moveBlob(store, from, to);
    return store.move === undefined ? this.#uploads.run(owner, move, quota.onWait) : move();
  }

  async link({ key, about }: BlobRef): Promise<string> {
    const { store, links, linkTime, url } = this.settings;
    // An agent's data may contain a forged reference.
    const said = aboutOf(about);
    if (links === "store" && store.link !== undefined) {
      return store.link(key, { ...said, expires: Math.ceil(linkTime / 1000) });
    }
    return linkTo(url, this.#seal, { ...said, key, expires: Math.floor(this.#deps.clock.now() + linkTime) });
  }

  /** Answers a request for a link to this server. `answers`: the memory that readers may hold. */
  answer(request: UniversalRequest, answers: ByteBudget): Promise<UniversalResponse> {
    const { store } = this.settings;
    return answerLink(request, { store, seal: this.#seal, now: this.#deps.clock.now(), answers });
  }

  /** Deletes the files without a row of the task. Call it only when no upload is running. */
  async deleteUnnamed(task: TaskKey, keys: readonly string[]): Promise<void> {
    const rows = await this.#deps.tasks.features(task, task.taskId, blobFeature);
    const named = new Set(rows.map(({ key }) => key));
    const unnamed = keys.filter((key) => !named.has(idOf(key)));
    if (unnamed.length > 0) await this.settings.store.delete(unnamed);
  }

  /** Deletes all files of an owner, including unused ones. */
  async deleteOf(owner: BlobOwner): Promise<void> {
    for (const file of this.#unfinished) file.isErased ||= file.agent === owner.agent && file.owner === owner.owner;
    await deleteBlobsOf(this.settings.store, owner);
    await deleteIncomingBlobs(this.settings.store, owner.owner);
  }

  /** Deletes unused files that are old enough. `stopped`: whether to end. */
  collect(stopped: () => boolean): Promise<number> {
    return this.#collector.collect(stopped);
  }
}

/** Notes that a blob belongs to the task. */
function take(quota: BlobQuota, ref: Pick<BlobRef, "key" | "hash" | "size">): void {
  quota.bytes -= ref.size;
  quota.ids.add(idOf(ref.key));
  quota.rows.set(ref.key, rowOf(ref));
}

/** The key of a lost run's file with the same bytes. Each key is used for one file. */
function takeEarlier(quota: BlobQuota, hash: ByteHash): string | undefined {
  const [digest, { size }] = [hash.digest(), hash];
  const at = quota.earlier.findIndex((each) => each.hash === digest && each.size === size);
  return at === -1 ? undefined : quota.earlier.splice(at, 1)[0]?.key;
}

function tooLarge({ sender }: BlobQuota, limit: string, bytes: number): A2AError {
  return sender === "client"
    ? new A2AError("RequestTooLarge", `A file of the message exceeds a limit: ${limit} is ${bytes}`)
    : new A2AError("InvalidAgentResponse", `A file exceeds a limit: ${limit} is ${bytes}`);
}

async function* asAsync(pieces: Iterable<Bytes>): AsyncGenerator<Bytes, void, void> {
  for (const piece of pieces) yield await Promise.resolve(piece);
}

/** How often a waiting file calls `onWait`, in milliseconds. */
const pulse = 10_000;

interface Waiting {
  readonly owner: string;
  readonly begin: () => void;
}

/**
 * Limits the memory of uploads. An upload beyond the limit waits without a timeout; its agent or client waits, too. No owner
 * gets more than half of the memory while others wait.
 */
export class Uploads {
  readonly #most: number;
  readonly #clock: Pick<Clock, "after">;
  readonly #owners = new Map<string, number>();
  #count = 0;
  #waiting: Waiting[] = [];

  /** `total`: the limit in bytes. `each`: the memory of one upload. One upload always fits. */
  constructor(total: number, each: number, clock: Pick<Clock, "after">) {
    this.#clock = clock;
    this.#most = Math.max(1, Math.floor(total / each));
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs an upload once there is room. `onWait`: called from time to time while it waits. */
  async run<T>(owner: string, work: () => Promise<T>, onWait: () => void = () => {}): Promise<T> {
    if (this.#waiting.length > 0 || this.#count >= this.#most) await this.#wait(owner, onWait);
    else this.#take(owner);
    try {
      return await work();
    } finally {
      this.#give(owner);
    }
  }

  async #wait(owner: string, onWait: () => void): Promise<void> {
    let stop = (): void => {};
    const beat = (): void => {
      onWait();
      stop = this.#clock.after(pulse, beat);
    };
    beat();
    await new Promise<void>((resolve) => this.#waiting.push({ owner, begin: resolve }));
    stop();
  }

  #take(owner: string): void {
    this.#count += 1;
    this.#owners.set(owner, (this.#owners.get(owner) ?? 0) + 1);
  }

  #give(owner: string): void {
    this.#count -= 1;
    const left = (this.#owners.get(owner) ?? 1) - 1;
    if (left > 0) this.#owners.set(owner, left);
    else this.#owners.delete(owner);
    const own = (each: Waiting): number => this.#owners.get(each.owner) ?? 0;
    // The longest wait first, except for owners that already have half of the memory.
    const next = this.#waiting.find((each) => own(each) < this.#most / 2) ?? this.#waiting[0];
    if (next === undefined) return;
    this.#waiting = this.#waiting.filter((each) => each !== next);
    this.#take(next.owner);
    next.begin();
  }
}
