import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  bodyTooLarge,
  type BodyPlace,
  type BodyReader,
  type ByteFlow,
  type ByteReader,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import { BodyPieces } from "@parley/a2a/internal/transport/server/body-pieces";
import type { RequestLimits } from "@parley/a2a/internal/transport/server/binding";
import { byteAt, compressed, exceedsLimit, FrameReader, lengthAt, type Frame } from "../frames.ts";
import { StatusError } from "../status.ts";
import { encodings, type Framing } from "./framing.ts";

/** A request whose body can be read in pieces. */
export type ReadableRequest = UniversalRequest & Required<Pick<UniversalRequest, "read">>;

/** Maximum queued messages of a call. If a client sends more, the server ends the call. */
const longestQueue = 64;

export interface CallReaderOptions {
  readonly framing: Framing;
  /** Limits of one message, and of the messages of all calls together. */
  readonly limits: RequestLimits;
  /** Timeout for receiving one message, in milliseconds. */
  readonly requestTimeout: number;
  /** Whether a message may exceed `limits.bodyBytes`, because the server stores large files separately. */
  readonly takesFiles?: boolean | undefined;
}

/** A message that is too large for memory. */
export interface LargeMessage {
  readonly flags: number;
  /** Its length in bytes. */
  readonly length: number;
  /** Its bytes, and all bytes after it. */
  readonly source: BodyPieces;
}

/** Length of the head of a message: flags and length. */
const headLength = 5;

/** Queues the messages of a call, within limits, until they are read. */
export class CallReader implements ByteReader, BodyReader {
  readonly #request: ReadableRequest;
  readonly #options: CallReaderOptions;
  readonly #frames: FrameReader;
  #flow: ByteFlow | undefined;
  readonly #queue: Frame[] = [];
  /** Bytes of the messages in the queue. */
  #queued = 0;
  /** Limit of the compressed messages after decompression, in bytes. */
  #decompressed = 0;
  /** Memory reserved for the request. */
  readonly #place: BodyPlace | undefined;
  /** Whether the call waits for memory. */
  #waits = false;
  /** Whether the client has sent everything. */
  #complete = false;
  /** Why reading failed. */
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  /** The beginning of the first message until its length is known; `undefined` after that. */
  #first: Uint8Array | undefined;
  #large: LargeMessage | undefined;
  /** Runs while a message is incomplete. */
  #messageTimer: NodeJS.Timeout | undefined;

  constructor(request: ReadableRequest, options: CallReaderOptions) {
    const { bodyBytes, unfinished } = options.limits;
    this.#request = request;
    this.#options = options;
    this.#frames = new FrameReader(bodyBytes, tooLarge);
    this.#place = unfinished?.enter(this, request.connection);
    if (options.takesFiles === true) this.#first = new Uint8Array(0);
  }

  start(): void {
    this.#flow = this.#request.read(this.#options.framing.reader(this));
    this.#flow.resume();
  }

  chunk(bytes: Uint8Array): void {
    if (this.#failure !== undefined) return;
    if (this.#large !== undefined) this.#large.source.chunk(bytes);
    else if (this.#first === undefined) this.#push(bytes);
    else this.#begin(this.#first.length === 0 ? bytes : Buffer.concat([this.#first, bytes]));
  }

  /** Reads the length of the first message. */
  #begin(bytes: Uint8Array): void {
    if (bytes.length < headLength) {
      this.#first = Uint8Array.from(bytes);
      return;
    }
    this.#first = undefined;
    const length = lengthAt(bytes, 1);
    if (length <= this.#options.limits.bodyBytes || this.#flow === undefined) {
      this.#push(bytes);
      return;
    }
    const source = new BodyPieces().from(this.#flow);
    source.place = this.#place;
    this.#flow.pause();
    this.#large = { flags: byteAt(bytes, 0), length, source };
    source.unread(bytes.subarray(headLength));
    this.#limitMessage(true);
    this.#wakeUp();
  }

  #push(bytes: Uint8Array): void {
    const before = this.#queue.length;
    try {
      for (const frame of this.#frames.push(bytes)) this.#enqueue(frame, bytes);
      if (this.#queue.length > longestQueue || this.#queued > this.#options.limits.bodyBytes) {
        throw new StatusError("RESOURCE_EXHAUSTED", "Too many messages at once");
      }
      this.#place?.came(bytes.length);
      this.#hold();
    } catch (error) {
      this.refuse(error as Error);
      return;
    }
    this.#limitMessage(this.#frames.partial);
    if (this.#queue.length > before) this.#wakeUp();
  }

  /** Queues a message: a copy if it is a small part of a larger buffer. */
  #enqueue(frame: Frame, chunk: Uint8Array): void {
    const { flags, payload } = frame;
    this.#queued += payload.length;
    if (flags === compressed) this.#decompressed = this.#options.limits.bodyBytes;
    const isSmallPart = payload.buffer === chunk.buffer && payload.buffer.byteLength > 4 * payload.length;
    this.#queue.push(isSmallPart ? { flags, payload: Buffer.from(payload) } : frame);
  }

  /** Reserves memory for received bytes, or pauses the client. */
  #hold(): void {
    const { held, expected } = this.#frames;
    const max = this.#queued + expected + this.#decompressed;
    if (this.#place?.hold(this.#queued + held, max) !== false) return;
    this.#waits = true;
    this.#flow?.pause();
  }

  /** Called when memory for a waiting message is available. */
  resume(): void {
    this.#waits = false;
    if (this.#large !== undefined) this.#large.source.resume();
    else this.#flow?.resume();
    this.#wakeUp();
  }

  /** Stops reading, and drops received messages. */
  refuse(error: Error): void {
    this.#failure ??= error;
    this.#queue.length = 0;
    this.#large?.source.refuse(error);
    this.release();
    this.#wakeUp();
  }

  /** Releases the memory reserved for the request. */
  release(): void {
    this.#limitMessage(false);
    this.#place?.leave();
  }

  /** An incomplete message holds memory, so the client must complete it in time. */
  #limitMessage(partial: boolean): void {
    if (partial) this.#messageTimer ??= setTimeout(() => this.#giveUp(), this.#options.requestTimeout);
    else if (this.#messageTimer !== undefined) {
      clearTimeout(this.#messageTimer);
      this.#messageTimer = undefined;
    }
  }

  #giveUp(): void {
    this.refuse(new A2AError("InvalidRequest", "The request takes too long"));
  }

  end(): void {
    this.#complete = true;
    this.#limitMessage(false);
    this.#large?.source.end();
    if (this.#frames.partial || (this.#first?.length ?? 0) > 0)
      this.#failure ??= new A2AError("ParseError", "The last message is incomplete");
    this.#wakeUp();
  }

  gone(): void {
    this.refuse(new StatusError("CANCELLED", "The client canceled the call"));
  }

  /**
   * The single message of a method without a client stream.
   *
   * @param read - Reads a message that is too large for memory, and returns it without its large files.
   */
  async only(read?: (large: LargeMessage) => Promise<Uint8Array>): Promise<Uint8Array> {
    while (
      (!this.#complete || this.#waits) &&
      this.#failure === undefined &&
      this.#large === undefined &&
      this.#queue.length < 2
    )
      await this.#more();
    if (this.#large !== undefined && read !== undefined && this.#failure === undefined)
      return this.#onlyLarge(this.#large, read);
    const [frame, another] = this.#queue.splice(0);
    if (this.#failure !== undefined) throw this.#failure;
    if (frame === undefined) throw new A2AError("InvalidRequest", "The request has no message");
    if (another !== undefined) throw moreThanOne();
    const message = this.#read(frame);
    const bytes = message instanceof Promise ? await message : message;
    this.release();
    return bytes;
  }

  async #onlyLarge(large: LargeMessage, read: (large: LargeMessage) => Promise<Uint8Array>): Promise<Uint8Array> {
    try {
      const bytes = await read(large);
      if ((await large.source.next()) !== undefined) throw moreThanOne();
      this.release();
      return bytes;
    } catch (error) {
      this.refuse(error as Error);
      throw error;
    }
  }

  /** The next message of a stream; `undefined` after the last one. */
  async next(): Promise<Uint8Array | undefined> {
    while (this.#queue.length === 0 && !this.#complete && this.#failure === undefined) await this.#more();
    if (this.#failure !== undefined) throw this.#failure;
    const frame = this.#queue.shift();
    if (frame === undefined) return undefined;
    this.#queued -= frame.payload.length;
    return this.#read(frame);
  }

  #read(frame: Frame): Uint8Array | Promise<Uint8Array> {
    return messageIn(frame, this.#request.header("grpc-encoding"), this.#options.limits.bodyBytes);
  }

  #more(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

function moreThanOne(): A2AError {
  return new A2AError("InvalidRequest", "The request has more than one message");
}

const decompress = promisify(gunzip);

const tooLarge = (limit: number): A2AError => bodyTooLarge("Message", limit);

/**
 * The message in a frame. For a compressed message it is a promise, because another thread decompresses it.
 *
 * @throws A2AError `RequestTooLarge` if it exceeds `limit` bytes after decompression.
 */
function messageIn(
  { flags, payload }: Frame,
  encoding: string | undefined,
  limit: number,
): Uint8Array | Promise<Uint8Array> {
  if (flags === 0) return payload;
  if (flags !== compressed) throw new A2AError("InvalidRequest", "A frame has unknown flags");
  if (encoding === "gzip") return decompressed(payload, limit);
  if (encoding === undefined || encoding === "identity") {
    throw new StatusError("INTERNAL", "A message is compressed, but grpc-encoding is missing");
  }
  throw new StatusError("UNIMPLEMENTED", `Messages compressed by ${encoding} cannot be read here`, {
    "grpc-accept-encoding": encodings,
  });
}

async function decompressed(payload: Uint8Array, limit: number): Promise<Uint8Array> {
  try {
    return await decompress(payload, { maxOutputLength: limit });
  } catch (cause) {
    if (exceedsLimit(cause)) throw tooLarge(limit);
    throw new A2AError("ParseError", "A compressed message is not valid gzip", { cause });
  }
}
