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
import { compressed, FrameReader, lengthAt, type Frame } from "../frames.ts";
import { StatusError } from "../status.ts";
import { encodings, type Framing } from "./framing.ts";

/** A request whose body can be read in pieces. */
export type ReadableRequest = UniversalRequest & Required<Pick<UniversalRequest, "read">>;

/** Most messages of one call that may wait to be read. A client that sends more is refused. */
const longestQueue = 64;

export interface CallReaderOptions {
  readonly framing: Framing;
  /** Of one message, and of the messages of all calls together. */
  readonly limits: RequestLimits;
  /** How long the client may take to send a message that it has begun, in milliseconds. */
  readonly requestTimeout: number;
  /** Whether a message may be larger than `limits.bodyBytes`, because large files are taken out of it. */
  readonly takesFiles?: boolean | undefined;
}

/** A message that is too large to be in memory. */
export interface LargeMessage {
  readonly flags: number;
  /** Its length in bytes. */
  readonly length: number;
  /** Its bytes, and what comes after it. */
  readonly source: BodyPieces;
}

/** Bytes before a message: its flags and its length. */
const headLength = 5;

/** The messages of a client in one call. They wait here, within limits, until they are read. */
export class CallReader implements ByteReader, BodyReader {
  readonly #request: ReadableRequest;
  readonly #options: CallReaderOptions;
  readonly #frames: FrameReader;
  #flow: ByteFlow | undefined;
  readonly #queue: Frame[] = [];
  /** Bytes of the messages in the queue. */
  #queued = 0;
  /** Bytes that the compressed ones may take when they are decompressed. */
  #decompressed = 0;
  /** Memory that is reserved for the request. */
  readonly #place: BodyPlace | undefined;
  /** Whether the call waits for memory. */
  #waits = false;
  /** Whether the client has sent everything. */
  #complete = false;
  /** Why nothing more can be read. */
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  /** The beginning of the first message, until its length is known. `undefined`: it is known, or of no interest. */
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

  /** Looks at the length of the first message. */
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
    this.#large = { flags: bytes[0] as number, length, source };
    source.unread(bytes.subarray(headLength));
    this.#limitMessage(true);
    this.#wakeUp();
  }

  #push(bytes: Uint8Array): void {
    const before = this.#queue.length;
    try {
      this.#frames.push(bytes, this.#queue);
      for (let at = before; at < this.#queue.length; at++) this.#enqueue(at, bytes);
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

  /** Counts a message. A message that waits must not keep a much larger buffer in memory, so it is copied out of one. */
  #enqueue(at: number, chunk: Uint8Array): void {
    const { flags, payload } = this.#queue[at] as Frame;
    this.#queued += payload.length;
    if (flags === compressed) this.#decompressed = this.#options.limits.bodyBytes;
    if (payload.buffer !== chunk.buffer || payload.buffer.byteLength <= 4 * payload.length) return;
    this.#queue[at] = { flags, payload: Buffer.from(payload) };
  }

  /** Reserves memory for what has arrived. Pauses the client where there is none. */
  #hold(): void {
    const { held, expected } = this.#frames;
    const most = this.#queued + expected + this.#decompressed;
    if (this.#place?.hold(this.#queued + held, most) !== false) return;
    this.#waits = true;
    this.#flow?.pause();
  }

  /** Called when there is memory for a message that had to wait. */
  resume(): void {
    this.#waits = false;
    if (this.#large !== undefined) this.#large.source.resume();
    else this.#flow?.resume();
    this.#wakeUp();
  }

  /** Reads no more, and drops what has arrived. */
  refuse(error: Error): void {
    this.#failure ??= error;
    this.#queue.length = 0;
    this.#large?.source.refuse(error);
    this.release();
    this.#wakeUp();
  }

  /** Gives back what is reserved for the request. */
  release(): void {
    this.#limitMessage(false);
    this.#place?.leave();
  }

  /** The first part of a message is held in memory, so the client may not take for ever to send the rest. */
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
    this.refuse(new StatusError("CANCELLED", "The client has closed the call"));
  }

  /**
   * The one message of a method that takes no stream.
   *
   * @param read - Reads a message that is too large to be in memory, and returns it without its large files.
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
 * The message in a frame. Only a compressed message takes a promise, since another thread decompresses it.
 *
 * @throws A2AError `RequestTooLarge` for a message of more than `limit` bytes once decompressed.
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
    throw new StatusError("INTERNAL", "A message is compressed and grpc-encoding does not say how");
  }
  throw new StatusError("UNIMPLEMENTED", `Messages compressed by ${encoding} cannot be read here`, {
    "grpc-accept-encoding": encodings,
  });
}

async function decompressed(payload: Uint8Array, limit: number): Promise<Uint8Array> {
  try {
    return await decompress(payload, { maxOutputLength: limit });
  } catch (cause) {
    if ((cause as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") {
      throw tooLarge(limit);
    }
    throw new A2AError("ParseError", "A compressed message is not valid gzip", { cause });
  }
}
