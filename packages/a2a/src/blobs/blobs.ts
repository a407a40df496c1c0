import type { Bytes } from "../base/index.ts";
import { decoded, sizeOfBase64 } from "../files/content.ts";
import { A2AError, toBase64, type Part } from "../model/index.ts";
import type { UniversalRequest, UniversalResponse } from "../protocol/index.ts";
import { createSeal, type Seal } from "../seal/index.ts";
import type { TaskKey } from "../store/index.ts";
import { deleteBlobsOf } from "./delete.ts";
import { ByteHash } from "./hash.ts";
import type { BlobRooms, BlobSettings } from "./lazy.ts";
import { aboutOf, answerLink, linkTo } from "./links.ts";
import {
  blobFeature,
  blobId,
  keysOfRow,
  placeOf,
  prefixOf,
  refOf,
  refUrl,
  type BlobAbout,
  type BlobOwner,
  type BlobRef,
} from "./ref.ts";

/** What the files of a task may still take. */
export interface BlobRoom {
  bytes: number;
}

/** Times to wait before a part that is in memory is stored again. Milliseconds. */
const retries = [100, 1000];
/** Entries of a page when unused blobs are searched for. */
const pageSize = 500;

/** Files outside of the database: stores them, links to them, reads them, and deletes those that no task has. */
export class Blobs {
  readonly settings: BlobSettings;
  readonly #rooms: BlobRooms;
  readonly #seal: Seal;

  constructor(settings: BlobSettings, rooms: BlobRooms) {
    this.settings = settings;
    this.#rooms = rooms;
    this.#seal = createSeal(settings.keyring);
  }

  /** What a task may still store, by its rows. */
  async roomOf(task: TaskKey): Promise<BlobRoom> {
    const rows = await this.#rooms.tasks.features(task, task.taskId, blobFeature);
    const taken = rows.reduce((sum, { value }) => sum + (JSON.parse(value) as { readonly bytes: number }).bytes, 0);
    return { bytes: this.settings.taskBytes - taken };
  }

  /** The parts, with those that are large files outside. Resolves when they are durable. */
  async storeParts(task: TaskKey, parts: readonly Part[], room: BlobRoom): Promise<readonly Part[]> {
    const stored: Part[] = [];
    for (const part of parts) {
      if (typeof part.raw !== "string" || sizeOfBase64(part.raw) <= this.settings.inlineBytes) {
        stored.push(part);
        continue;
      }
      const { raw: _, ...rest } = part;
      stored.push({ ...rest, url: await this.#storeBase64(task, part, room) });
    }
    return stored;
  }

  async #storeBase64(task: TaskKey, part: Part & { readonly raw: string }, room: BlobRoom): Promise<string> {
    for (let tries = 0; ; tries += 1) {
      try {
        return (await this.store(task, asAsync(decoded(part.raw)), part, room)).url;
      } catch (error) {
        const wait = retries[tries];
        if (wait === undefined || !(error instanceof A2AError) || error.code !== "Unavailable") throw error;
        await new Promise<void>((resolve) => this.#rooms.clock.after(wait, resolve));
      }
    }
  }

  /** Stores a file of a task. Resolves to the URL of its part, once it is durable. */
  async store(
    task: TaskKey,
    bytes: AsyncIterable<Uint8Array>,
    about: BlobAbout,
    room: BlobRoom,
  ): Promise<{ readonly url: string; readonly size: number }> {
    const { store, fileBytes, taskBytes } = this.settings;
    const hash = new ByteHash();
    async function* counted(): AsyncGenerator<Bytes, void, void> {
      for await (const piece of bytes) {
        hash.add(piece as Bytes);
        if (hash.size > fileBytes) throw tooLarge("blobs.fileBytes", fileBytes);
        if (hash.size > room.bytes) throw tooLarge("blobs.taskBytes", taskBytes);
        yield piece as Bytes;
      }
    }
    const key = (await prefixOf(task.agent, task.owner, task.taskId)) + blobId();
    await store.put(key, counted());
    const { size } = hash;
    room.bytes -= size;
    return { url: refUrl({ hash: hash.digest(), size, key, about: aboutOf(about) }), size };
  }

  /** The reference of a URL, where the owner may read it. Anyone can write such a URL. */
  async owned(url: string, { agent, owner }: BlobOwner): Promise<BlobRef | undefined> {
    const ref = refOf(url);
    return ref?.key.startsWith(await prefixOf(agent, owner)) === true ? ref : undefined;
  }

  /** A link for a reference. */
  async link({ key, about }: BlobRef): Promise<string> {
    const { store, links, linkTime, url } = this.settings;
    if (links === "store" && store.link !== undefined) {
      return store.link(key, { ...about, expires: Math.ceil(linkTime / 1000) });
    }
    return linkTo(url, this.#seal, { ...about, key, expires: Math.floor(this.#rooms.clock.now() + linkTime) });
  }

  /** The bytes of a file, as they are read. */
  async *read({ key }: BlobRef): AsyncGenerator<Bytes, void, void> {
    const found = await this.settings.store.get(key);
    if (found === undefined) throw new A2AError("Unavailable", "A file of the task is missing in the blob store");
    yield* found.body;
  }

  /** The bytes of a file as base64, in pieces. */
  async *base64(ref: BlobRef): AsyncGenerator<string, void, void> {
    let left: Bytes = new Uint8Array(0);
    for await (const piece of this.read(ref)) {
      const bytes = left.length === 0 ? piece : joined(left, piece);
      const whole = bytes.length - (bytes.length % 3);
      if (whole > 0) yield toBase64(bytes.subarray(0, whole));
      left = bytes.slice(whole);
    }
    if (left.length > 0) yield toBase64(left);
  }

  /** Answers a request for the file of a link to this server. */
  answer(request: UniversalRequest): Promise<UniversalResponse> {
    return answerLink(request, { store: this.settings.store, seal: this.#seal, now: this.#rooms.clock.now() });
  }

  /** Deletes all files of an owner, also those that no task has. */
  async deleteOf(owner: BlobOwner): Promise<void> {
    await deleteBlobsOf(this.settings.store, owner);
  }

  /** Deletes the files that no task has, and that are old enough. `stopped`: whether to end. */
  async collect(stopped: () => boolean): Promise<number> {
    const { store, keepUnused } = this.settings;
    let deleted = 0;
    for (let after: string | undefined, more = true; more && !stopped();) {
      const { blobs, next } = await store.list({ prefix: "", limit: pageSize, ...(after !== undefined && { after }) });
      const before = this.#rooms.clock.now() - keepUnused;
      const old = blobs.filter(({ time }) => time < before).map(({ key }) => key);
      const unused = await this.#unused(old);
      await store.delete(unused);
      deleted += unused.length;
      after = next;
      more = next !== undefined;
    }
    return deleted;
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
        used = new Set(rows.flatMap(({ value }) => keysOfRow(value)));
        task = name;
      }
      if (!used.has(key)) unused.push(key);
    }
    return unused;
  }
}

function tooLarge(limit: string, bytes: number): A2AError {
  return new A2AError("InvalidAgentResponse", `A file does not fit: ${limit} is ${bytes}`);
}

function joined(one: Bytes, other: Bytes): Bytes {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

async function* asAsync(pieces: Iterable<Bytes>): AsyncGenerator<Bytes, void, void> {
  for (const piece of pieces) yield await Promise.resolve(piece);
}
