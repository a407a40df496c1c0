import type { Bytes } from "@parley/a2a/internal/base/index";
import type { BlobStore } from "@parley/server/internal/blobs/port";
import { declareCases, type Expect, type Runner } from "./runner.ts";

/** A blob store under test. */
export interface BlobStoreContractOptions {
  /** Opens a store. Other cases may use the same folder or bucket concurrently. */
  readonly open: () => BlobStore | Promise<BlobStore>;
}

interface Given {
  readonly store: BlobStore;
  readonly expect: Expect;
  /** A name that is unique to the case: the first segment of its keys. */
  readonly own: string;
}

const mebi = 1 << 20;

/**
 * Tests every rule of the `BlobStore` port.
 *
 * ```ts
 * import { describe, it } from "node:test";
 * import { blobStoreContract } from "@parley/testing";
 *
 * blobStoreContract({ describe, it }, { open: () => myBlobs() });
 * ```
 */
export function blobStoreContract(runner: Runner, options: BlobStoreContractOptions): void {
  declareCases(runner, "a blob store", cases, async (expect) => ({
    given: { store: await options.open(), expect, own: `case-${crypto.randomUUID()}` },
    close: async () => {},
  }));
}

const cases: Readonly<Record<string, (given: Given) => Promise<void>>> = {
  "returns the bytes that were put, in chunks of any size": async ({ store, expect, own }) => {
    for (const sizes of [[0], [1], [3, 0, 5], [mebi, 7], Array.from({ length: 300 }, () => 11)]) {
      const key = `${own}/${sizes.length}-${sizes[0]}`;
      const wanted = joined(sizes.map((size, at) => filled(size, at)));
      await store.put(key, piecesOf(sizes));
      const found = await store.get(key);
      expect(found?.size).toEqual(wanted.length);
      expect(same(await bytesOf(store, key), wanted)).toEqual(true);
    }
  },

  "stores blobs larger than one part of an upload, and keeps at most one part in memory": async ({
    store,
    expect,
    own,
  }) => {
    const size = 40;
    let most = 0;
    let given = 0;
    async function* body(): AsyncGenerator<Bytes, void, void> {
      for (let at = 0; at < size; at += 1) {
        given += 1;
        yield filled(mebi, at);
        await Promise.resolve();
      }
    }
    await store.put(`${own}/large`, body());
    expect(given).toEqual(size);
    let at = 0;
    const found = await store.get(`${own}/large`);
    expect(found?.size).toEqual(size * mebi);
    for await (const piece of found?.body ?? nothing) {
      most = Math.max(most, piece.length);
      if (piece[0] !== ((at % mebi) + Math.floor(at / mebi)) % 251) throw new Error(`Byte ${at} is ${piece[0]}`);
      at += piece.length;
    }
    expect(at).toEqual(size * mebi);
    expect(most <= 8 * mebi).toEqual(true);
  },

  "stores nothing if the body throws, and rejects with its error": async ({ store, expect, own }) => {
    const failure = new Error("the source broke");
    for (const pieces of [0, 1, 12]) {
      async function* broken(): AsyncGenerator<Bytes, void, void> {
        for (let at = 0; at < pieces; at += 1) yield filled(mebi, at);
        throw await Promise.resolve(failure);
      }
      const thrown = await store.put(`${own}/broken-${pieces}`, broken()).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(thrown === failure).toEqual(true);
      expect(await store.get(`${own}/broken-${pieces}`)).toEqual(undefined);
    }
    expect((await store.list({ prefix: `${own}/`, limit: 10 })).blobs).toEqual([]);
  },

  "moves a blob to another key, if it supports that": async ({ store, expect, own }) => {
    if (store.move === undefined) return;
    await store.put(`${own}/before/a`, piecesOf([10]));
    await store.move(`${own}/before/a`, `${own}/after/b`);
    expect(await store.get(`${own}/before/a`)).toEqual(undefined);
    expect(same(await bytesOf(store, `${own}/after/b`), joined([filled(10, 0)]))).toEqual(true);
    const failed = await store.move(`${own}/none`, `${own}/after/c`).then(
      () => false,
      () => true,
    );
    expect(failed).toEqual(true);
    expect(await store.get(`${own}/after/c`)).toEqual(undefined);
  },

  "reads ranges": async ({ store, expect, own }) => {
    await store.put(`${own}/ten`, piecesOf([10]));
    const range = async (start: number, end?: number): Promise<string> => {
      const found = await store.get(`${own}/ten`, end === undefined ? { start } : { start, end });
      const bytes = joined(await all(found?.body ?? nothing));
      return `${found?.size}: ${bytes.join(",")}`;
    };
    expect(await range(0, 0)).toEqual("10: 0");
    expect(await range(3, 5)).toEqual("10: 3,4,5");
    expect(await range(8)).toEqual("10: 8,9");
    expect(await range(8, 99)).toEqual("10: 8,9");
    expect(await range(10)).toEqual("10: ");
    expect(await range(0)).toEqual("10: 0,1,2,3,4,5,6,7,8,9");
  },

  "finds no unknown keys, and no keys that point outside the store": async ({ store, expect, own }) => {
    await store.put(`${own}/a/b`, piecesOf([1]));
    for (const key of [`${own}/a`, `${own}/a/b/c`, `${own}/A/b`, `${own}/none`]) {
      expect(await store.get(key)).toEqual(undefined);
    }
    for (const key of [
      "",
      "/etc/passwd",
      `${own}/../x`,
      `${own}//x`,
      ".",
      `${own}/a b`,
      `${own}/\u0000`,
      "x".repeat(900),
    ]) {
      const refused = await Promise.resolve()
        .then(() => store.get(key))
        .then(
          () => false,
          (error: unknown) => error instanceof TypeError,
        );
      expect(refused).toEqual(true);
    }
  },

  "releases a body that is not read to its end": async ({ store, expect, own }) => {
    await store.put(`${own}/left`, piecesOf([4 * mebi]));
    for (let times = 0; times < 20; times += 1) {
      const found = await store.get(`${own}/left`);
      const body = found?.body[Symbol.asyncIterator]();
      if (times % 2 === 0) await body?.next();
      await body?.return?.();
    }
    expect((await bytesOf(store, `${own}/left`)).length).toEqual(4 * mebi);
  },

  "deletes blobs, and ignores blobs that are already deleted": async ({ store, expect, own }) => {
    await store.put(`${own}/x/1`, piecesOf([1]));
    await store.put(`${own}/x/2`, piecesOf([2]));
    await store.delete([]);
    await store.delete([`${own}/x/1`, `${own}/x/none`, `${own}/none/at/all`]);
    expect(await store.get(`${own}/x/1`)).toEqual(undefined);
    expect((await store.get(`${own}/x/2`))?.size).toEqual(2);
    await store.delete([`${own}/x/2`, `${own}/x/2`]);
    await store.put(`${own}/x/2`, piecesOf([3]));
    expect((await store.get(`${own}/x/2`))?.size).toEqual(3);
  },

  "lists each blob once, in pages and by prefix": async ({ store, expect, own }) => {
    const keys = ["a/1", "a/2", "a-b/1", "a_b/1/2", "b/1", "~c/1"].map((key) => `${own}/${key}`);
    const since = Date.now() - 120_000;
    for (const [at, key] of keys.entries()) await store.put(key, piecesOf([at]));
    for (const limit of [1, 2, 100]) {
      const found: string[] = [];
      for (let after: string | undefined, more = true; more;) {
        const page = await store.list({ prefix: `${own}/`, limit, ...(after !== undefined && { after }) });
        expect(page.blobs.length <= limit).toEqual(true);
        for (const { key, size, time } of page.blobs) {
          found.push(key);
          expect(size).toEqual(keys.indexOf(key));
          expect(time > since && time < Date.now() + 120_000).toEqual(true);
        }
        after = page.next;
        more = after !== undefined;
      }
      expect(found.sort()).toEqual([...keys].sort());
    }
    const below = await store.list({ prefix: `${own}/a/`, limit: 10 });
    expect(below.blobs.map(({ key }) => key).sort()).toEqual(keys.slice(0, 2));
    expect(await store.list({ prefix: `${own}/none/`, limit: 10 })).toEqual({ blobs: [] });
  },

  "makes links that work without credentials, if it supports links": async ({ store, expect, own }) => {
    if (store.link === undefined) return;
    await store.put(`${own}/shown`, piecesOf([100]));
    const about = { expires: 60, filename: "ä b.txt", mediaType: "text/plain" };
    const response = await fetch(await store.link(`${own}/shown`, about));
    expect(response.status).toEqual(200);
    expect(response.headers.get("content-type")?.startsWith("text/plain")).toEqual(true);
    expect(response.headers.get("content-disposition")).toEqual("attachment; filename*=UTF-8''%C3%A4%20b.txt");
    expect((await response.arrayBuffer()).byteLength).toEqual(100);
    const url = new URL(await store.link(`${own}/shown`, { expires: 60 }));
    url.pathname = url.pathname.replace("shown", "other");
    await store.put(`${own}/other`, piecesOf([100]));
    const other = await fetch(url);
    await other.body?.cancel();
    expect(other.status).toEqual(403);
  },
};

/** Bytes that encode their position: `at`, and the number of the piece. */
function filled(size: number, number: number): Bytes {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 1) bytes[at] = (at + number) % 251;
  return bytes;
}

async function* piecesOf(sizes: readonly number[]): AsyncGenerator<Bytes, void, void> {
  for (const [at, size] of sizes.entries()) yield await Promise.resolve(filled(size, at));
}

const nothing: AsyncIterable<Bytes> = piecesOf([]);

async function all(body: AsyncIterable<Bytes>): Promise<Bytes[]> {
  const pieces: Bytes[] = [];
  for await (const piece of body) pieces.push(piece);
  return pieces;
}

async function bytesOf(store: BlobStore, key: string): Promise<Bytes> {
  return joined(await all((await store.get(key))?.body ?? nothing));
}

function joined(pieces: readonly Bytes[]): Bytes {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

function same(one: Bytes, other: Bytes): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
