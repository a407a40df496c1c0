import type { Bytes } from "@parley/a2a/internal/base/index";
import { A2AError, toBase64 } from "@parley/a2a/internal/model/index";
import type { BlobStore } from "./port.ts";
import { prefixOf, refOf, type BlobOwner, type BlobRef } from "./ref.ts";

/** Reads the files that references name. */
export class BlobReader {
  readonly #store: BlobStore;

  constructor(store: BlobStore) {
    this.#store = store;
  }

  /** The reference of a URL, where the owner may read it. Anyone can write such a URL. */
  async owned(url: string, { agent, owner }: BlobOwner): Promise<BlobRef | undefined> {
    const ref = refOf(url);
    return ref?.key.startsWith(await prefixOf(agent, owner)) === true ? ref : undefined;
  }

  /** The bytes of a file, as they are read. */
  async *read(ref: BlobRef): AsyncGenerator<Bytes, void, void> {
    const body = await this.open(ref);
    if (body === undefined) throw new A2AError("Unavailable", "A file of the task is missing in the blob store");
    yield* body;
  }

  /** The same, once it is known that the file is there. `undefined`: it is not. */
  async open({ key }: BlobRef): Promise<AsyncIterable<Bytes> | undefined> {
    return (await this.#store.get(key))?.body;
  }

  /** A file of an owner as base64. `undefined`: it has more than `most` characters, is not there, or is somebody else's. */
  async base64Of(url: string, owner: BlobOwner, most: number): Promise<string | undefined> {
    const ref = await this.owned(url, owner);
    const found = ref && 4 * Math.ceil(ref.size / 3) <= most ? await this.#store.get(ref.key) : undefined;
    if (found === undefined) return undefined;
    let text = "";
    // What a reference says of its size is anyone's text.
    if (4 * Math.ceil(found.size / 3) > most) await found.body[Symbol.asyncIterator]().return?.();
    else for await (const piece of this.base64(found.body)) text += piece;
    return text === "" ? undefined : text;
  }

  /** Bytes as base64, in pieces. */
  async *base64(bytes: AsyncIterable<Bytes>): AsyncGenerator<string, void, void> {
    let left: Bytes = new Uint8Array(0);
    for await (const piece of bytes) {
      const all = left.length === 0 ? piece : joined(left, piece);
      const whole = all.length - (all.length % 3);
      if (whole > 0) yield toBase64(all.subarray(0, whole));
      left = all.slice(whole);
    }
    if (left.length > 0) yield toBase64(left);
  }
}

function joined(one: Bytes, other: Bytes): Bytes {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
