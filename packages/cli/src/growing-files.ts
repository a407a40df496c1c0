import { mkdir, open, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { StreamResponse } from "@parley/a2a/internal/model/index";

/* Files that are written while their artifacts grow. */

/** A file that is being written. */
export class PartFile {
  readonly path: string;
  readonly #folder: string;
  #handle: FileHandle | undefined;

  constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, `.parley-${crypto.randomUUID()}.part`);
  }

  /** Writes all bytes. Returns how many there were. */
  async write(bytes: AsyncIterable<Uint8Array>): Promise<number> {
    await mkdir(this.#folder, { recursive: true });
    this.#handle = await open(this.path, "wx");
    let size = 0;
    for await (const piece of bytes) {
      // `write` may write a part only, such as before the disk is full.
      await this.#handle.writeFile(piece);
      size += piece.byteLength;
    }
    await this.#handle.close();
    this.#handle = undefined;
    return size;
  }

  async remove(): Promise<void> {
    await this.#handle?.close().catch(() => {});
    // Where its folder is no folder there is nothing to remove.
    await rm(this.path, { force: true }).catch(() => {});
  }
}

/** The events of one artifact, for a reader that takes one after the other. */
export class Growing {
  /** What the reader has failed with. */
  error: unknown;
  /** How much content the artifact has by now. */
  length = 0;
  readonly #done: Promise<void>;
  #event: StreamResponse | undefined;
  #over: "ended" | "discarded" | undefined;
  /** The reader has had the whole artifact. */
  #closed = false;
  #given = (): void => {};
  #taken = (): void => {};

  constructor(read: (events: AsyncIterable<StreamResponse>) => Promise<void>) {
    this.#done = read(this.#events()).catch((error: unknown) => {
      this.error = error;
      this.#taken();
    });
  }

  /** Resolves when the reader asks for more, or has failed. */
  async push(event: StreamResponse): Promise<void> {
    if (this.error !== undefined || this.#closed) return;
    const taken = new Promise<void>((resolve) => (this.#taken = resolve));
    this.#event = event;
    this.#given();
    await taken;
    // The reader has ended or failed: how is known when it is done.
    if (this.#closed) await this.#done;
  }

  async end(): Promise<void> {
    await this.#stop("ended");
    if (this.error !== undefined) throw toError(this.error);
  }

  async discard(): Promise<void> {
    await this.#stop("discarded");
  }

  async #stop(how: "ended" | "discarded"): Promise<void> {
    this.#over = how;
    this.#given();
    await this.#done;
  }

  async *#events(): AsyncGenerator<StreamResponse, void, void> {
    try {
      yield* this.#pushed();
    } finally {
      this.#closed = true;
      this.#taken();
    }
  }

  async *#pushed(): AsyncGenerator<StreamResponse, void, void> {
    for (;;) {
      if (this.#event === undefined && this.#over === undefined)
        await new Promise<void>((resolve) => (this.#given = resolve));
      const event = this.#event;
      this.#event = undefined;
      if (event !== undefined) {
        yield event;
        this.#taken();
      } else if (this.#over === "discarded") throw new Discarded();
      else return;
    }
  }
}

class Discarded extends Error {}

/** What was thrown, as an error. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
}
