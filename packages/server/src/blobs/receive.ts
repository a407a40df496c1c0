import type { Bytes, Clock } from "@parley/a2a/internal/base/index";
import { ByteHash } from "@parley/a2a/internal/base/bytes";
import { A2AError, toBase64, type Part, type SendMessageRequest } from "@parley/a2a/internal/model/index";
import type { ByteBudget, IncomingFile, IncomingFiles, WatchedSender } from "@parley/a2a/internal/protocol/index";
import { aboutOf } from "./links.ts";
import type { BlobSettings, BlobStore } from "./port.ts";
import { blobId, prefixOf, refUrl, unknownAgent, fileAt } from "./ref.ts";

/** Where the files of an incoming message are stored. */
export interface ReceivingPlace {
  /** The agent that gets the message. `undefined`: the message names it. */
  readonly agent: string | undefined;
  readonly owner: string;
  /** Whose memory budget the message uses: its owner's, or that of an anonymous caller's address. */
  readonly payer: string;
  /** The id for the task of a message without `taskId`. */
  readonly taskId: string;
  /** The announced size of the body in bytes. */
  readonly bytes: number | undefined;
  readonly signal: () => AbortSignal;
}

/** Random bytes that represent a file in its message. They cannot be guessed. */
const placeholderBytes = 24;
/** Reservation steps for a body of unknown size. */
const step = 16 << 20;

/** Time between two checks of a sender, in milliseconds. */
const interval = 1000;
/** A sender that is slow for this many intervals is rejected if others need its memory. */
const slowIntervals = 3;
/** A sender is slow below this many bytes per second, or if it needs more than this many seconds to fill its memory. */
const slowBytes = 8 << 10;
const slowSeconds = 1024;

/** The large files of one message, while it is received. */
export class Receiving implements IncomingFiles {
  readonly files: Map<string, IncomingFile> = new Map();
  readonly #settings: BlobSettings;
  readonly #budget: ByteBudget;
  readonly #place: ReceivingPlace;
  /** Files by the base64 of their placeholder. */
  readonly #byPlaceholder = new Map<string, IncomingFile>();
  #came = 0;
  #taken = 0;
  #closed = false;
  readonly #clock: Clock;
  /** Bytes since the last check. */
  #lately = 0;
  #slowFor = 0;
  #stopWatch: (() => void) | undefined;

  constructor(settings: BlobSettings, budget: ByteBudget, place: ReceivingPlace, clock: Clock) {
    this.#clock = clock;
    this.#settings = settings;
    this.#budget = budget;
    this.#place = place;
  }

  /** Reserves memory for the message. */
  async begin(): Promise<this> {
    const { messageBytes } = this.#settings;
    const { bytes = 0 } = this.#place;
    if (bytes > messageBytes) throw messageTooLarge(messageBytes);
    await this.#take(bytes === 0 ? Math.min(step, messageBytes) : bytes);
    return this;
  }

  came(bytes: number): Promise<void> | void {
    const { messageBytes } = this.#settings;
    this.#came += bytes;
    this.#lately += bytes;
    if (this.#came > messageBytes) throw messageTooLarge(messageBytes);
    if (this.#came > this.#taken) return this.#take(step);
  }

  watch(sender: WatchedSender): void {
    this.#stopWatch = this.#clock.after(interval, () => {
      const least = Math.max(slowBytes, this.#taken / slowSeconds);
      this.#slowFor = sender.isAwaited && this.#lately < least ? this.#slowFor + 1 : 0;
      this.#lately = 0;
      if (this.#slowFor < slowIntervals || this.#budget.waiting === 0) return this.watch(sender);
      const what = "The request arrives too slowly for a busy server";
      sender.refuse(new A2AError("Unavailable", what, { retryAfter: 5 }));
    });
  }

  async #take(bytes: number): Promise<void> {
    const { payer, signal } = this.#place;
    await this.#budget.take(payer, bytes, signal);
    this.#taken += bytes;
    // The request may have ended while it waited.
    if (this.#closed) this.#give();
  }

  #give(): void {
    const bytes = this.#taken;
    this.#taken = 0;
    if (bytes > 0) this.#budget.give(this.#place.payer, bytes);
  }

  async store(bytes: AsyncIterable<Bytes>): Promise<Bytes> {
    const { store, fileBytes } = this.#settings;
    const { agent = unknownAgent, owner, taskId } = this.#place;
    const hash = new ByteHash();
    async function* counted(): AsyncGenerator<Bytes, void, void> {
      for await (const piece of bytes) {
        hash.add(piece);
        if (hash.size > fileBytes) {
          throw new A2AError("RequestTooLarge", `A file of the message is larger than ${fileBytes} bytes`);
        }
        yield piece;
      }
    }
    const key = (await prefixOf(agent, owner, taskId)) + blobId();
    await store.put(key, counted());
    const placeholder = crypto.getRandomValues(new Uint8Array(placeholderBytes));
    const file = { key, hash: hash.digest(), size: hash.size, taskId, taken: false };
    this.#byPlaceholder.set(toBase64(placeholder), file);
    if (this.#closed) void this.#delete();
    return placeholder;
  }

  get isEmpty(): boolean {
    return this.#byPlaceholder.size === 0;
  }

  resolve(request: SendMessageRequest): SendMessageRequest {
    if (this.#byPlaceholder.size === 0) return request;
    const parts = request.message.parts.map((part): Part => {
      const file = part.raw === undefined ? undefined : this.#byPlaceholder.get(part.raw);
      if (file === undefined) return part;
      const url = refUrl({ hash: file.hash, size: file.size, key: file.key, about: aboutOf(part) });
      this.files.set(url, file);
      return fileAt(url, part);
    });
    return { ...request, message: { ...request.message, parts } };
  }

  received(): void {
    this.#stopWatch?.();
    this.#give();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.received();
    await this.#delete();
  }

  /** Deletes the files that the message does not keep. If this fails, the collector deletes them a day later. */
  async #delete(): Promise<void> {
    const left = [...this.#byPlaceholder.values()].filter(({ taken }) => !taken);
    const keys = left.map(({ key }) => key);
    // From now on, they cannot be adopted.
    for (const file of left) file.taken = true;
    if (keys.length > 0) await this.#settings.store.delete(keys).catch(() => {});
  }
}

function messageTooLarge(messageBytes: number): A2AError {
  return new A2AError("RequestTooLarge", `Request body larger than ${messageBytes} bytes (blobs.messageBytes)`);
}

export async function moveBlob(store: BlobStore, from: string, to: string): Promise<string> {
  if (store.move !== undefined) {
    await store.move(from, to);
    return to;
  }
  const found = await store.get(from);
  if (found === undefined) throw new A2AError("Unavailable", "A file of the message is missing from the blob store");
  await store.put(to, found.body);
  // If this fails, the collector deletes it later.
  await store.delete([from]).catch(() => {});
  return to;
}
