import { A2AError } from "@parley/a2a";
import type {
  BodyPlace,
  BodyReader,
  ByteFlow,
  ByteReader,
  RequestFacts,
  Sink,
  UniversalRequest,
  UniversalResponse,
} from "@parley/a2a/protocol";
import type { RequestLimits, ServerContext } from "@parley/a2a/transport";
import { compressed, FrameReader, type Frame } from "../frames.ts";
import { parseTimeout } from "../metadata.ts";
import { CallSink } from "./call-sink.ts";
import { compressFrames, messageIn } from "./compression.ts";
import { Deadline } from "./deadline.ts";
import type { Framing, Metadata } from "./framing.ts";
import { StatusError } from "./status-error.ts";

/** Requests of one call that may wait; a caller that sends more without reading is turned away. */
const longestQueue = 64;

/** A request whose body can be read in pieces. */
export type ReadableRequest = UniversalRequest & Required<Pick<UniversalRequest, "read">>;

export interface CallOptions {
  readonly framing: Framing;
  /** Of a message, and of those of all calls. */
  readonly limits: RequestLimits;
  /** How long a message that has begun may take to come in whole, in milliseconds. */
  readonly requestTimeout: number;
  /** The trailers that say what went wrong. */
  readonly explain: (thrown: unknown, call: Call) => Metadata;
}

/** A call of a method: what came with it, the messages of its caller, and the answer to it in frames. */
export class Call implements UniversalRequest, ByteReader, BodyReader {
  readonly method = "POST";
  readonly #request: ReadableRequest;
  readonly #options: CallOptions;
  readonly #frames: FrameReader;
  #flow: ByteFlow | undefined;
  readonly #queue: Frame[] = [];
  /** Bytes of the messages in it. */
  #queued = 0;
  /** Bytes that they may unfold to. */
  #unfolded = 0;
  readonly #place: BodyPlace | undefined;
  /** There is no room yet for what comes. */
  #waits = false;
  /** All that the caller sends is there. */
  #complete = false;
  /** Why nothing more can be read. */
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  /** Runs while a message is on its way. */
  #messageTimer: NodeJS.Timeout | undefined;
  #deadline: Deadline | undefined;

  constructor(request: ReadableRequest, options: CallOptions) {
    const { bodyBytes, unfinished } = options.limits;
    this.#request = request;
    this.#options = options;
    this.#frames = new FrameReader(bodyBytes);
    this.#place = unfinished?.enter(this, request.connection);
  }

  // What the request says.

  get url(): string {
    return this.#request.url;
  }

  header(name: string): string | undefined {
    return this.#request.header(name);
  }

  get facts(): RequestFacts | undefined {
    return this.#request.facts;
  }

  /** A call has messages in place of a text. */
  text(): Promise<string> {
    return Promise.reject(new A2AError("InvalidRequest", "A gRPC request has no text"));
  }

  /** Aborted when the caller is gone, or its deadline has passed. */
  get signal(): AbortSignal {
    return this.#deadline === undefined
      ? this.#request.signal
      : AbortSignal.any([this.#request.signal, this.#deadline.signal]);
  }

  /**
   * Begins to read. A call that the caller has given a deadline is answered then, at the latest.
   *
   * @throws StatusError for a deadline that is none.
   */
  start(): void {
    this.#flow = this.#request.read(this.#options.framing.reader(this));
    this.#flow.resume();
    const timeout = parseTimeout(this.header("grpc-timeout"));
    if (timeout === undefined) return;
    if (Number.isNaN(timeout)) throw new StatusError("INVALID_ARGUMENT", "grpc-timeout is no time");
    this.#deadline = new Deadline(timeout, (error) => this.refuse(error));
  }

  // What arrives.

  chunk(bytes: Uint8Array): void {
    if (this.#failure !== undefined) return;
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
    this.#await(this.#frames.partial);
    if (this.#queue.length > before) this.#wakeUp();
  }

  /** A message that waits must not hold on to a much larger buffer that it came in. */
  #enqueue(at: number, chunk: Uint8Array): void {
    const { flags, payload } = this.#queue[at] as Frame;
    this.#queued += payload.length;
    if (flags === compressed) this.#unfolded = this.#options.limits.bodyBytes;
    if (payload.buffer !== chunk.buffer || payload.buffer.byteLength <= 4 * payload.length) return;
    this.#queue[at] = { flags, payload: Buffer.from(payload) };
  }

  #hold(): void {
    const { held, expected } = this.#frames;
    const most = this.#queued + expected + this.#unfolded;
    if (this.#place?.hold(this.#queued + held, most) !== false) return;
    this.#waits = true;
    this.#flow?.pause();
  }

  /** There is room for a message that had to wait. */
  resume(): void {
    this.#waits = false;
    this.#flow?.resume();
    this.#wakeUp();
  }

  /** Reads no more: what has come is of no interest. */
  refuse(error: Error): void {
    this.#failure ??= error;
    this.#queue.length = 0;
    this.#letGo();
    this.#wakeUp();
  }

  #letGo(): void {
    this.#await(false);
    this.#place?.leave();
  }

  /** What has come of a message is held in memory, so the rest must not take for ever. */
  #await(partial: boolean): void {
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
    this.#await(false);
    if (this.#frames.partial) this.#failure ??= new A2AError("ParseError", "The last message breaks off");
    this.#wakeUp();
  }

  gone(): void {
    this.refuse(new StatusError("CANCELLED", "The caller is gone"));
  }

  /** The one message that a method without a stream of them takes. */
  async only(): Promise<Uint8Array> {
    while ((!this.#complete || this.#waits) && this.#failure === undefined && this.#queue.length < 2)
      await this.#more();
    const [frame, another] = this.#queue.splice(0);
    if (this.#failure !== undefined) throw this.#failure;
    if (frame === undefined) throw new A2AError("InvalidRequest", "The request has no message");
    if (another !== undefined) throw new A2AError("InvalidRequest", "The request has more than one message");
    const message = this.#read(frame);
    const bytes = message instanceof Promise ? await message : message;
    this.#letGo();
    return bytes;
  }

  /** The next message of a stream of them, `undefined` after the last one. */
  async next(): Promise<Uint8Array | undefined> {
    while (this.#queue.length === 0 && !this.#complete && this.#failure === undefined) await this.#more();
    if (this.#failure !== undefined) throw this.#failure;
    const frame = this.#queue.shift();
    if (frame === undefined) return undefined;
    this.#queued -= frame.payload.length;
    return this.#read(frame);
  }

  #read(frame: Frame): Uint8Array | Promise<Uint8Array> {
    return messageIn(frame, this.header("grpc-encoding"), this.#options.limits.bodyBytes);
  }

  #more(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  // What goes back.

  /** `answer`, or what the caller is told at its deadline where that comes first. */
  inTime(answer: Promise<UniversalResponse>): Promise<UniversalResponse> {
    if (this.#deadline === undefined) return answer;
    return Promise.race([answer, this.#deadline.passed.then((error) => this.fail(error))]);
  }

  /** Whether answers are compressed: to those who do so themselves. */
  get #compresses(): boolean {
    return this.header("grpc-encoding") === "gzip" && (this.header("grpc-accept-encoding")?.includes("gzip") ?? false);
  }

  /** An answer of one message: at once, unless it has to be compressed. `room`: what is reserved for it. */
  reply(
    frame: Uint8Array,
    trailers: Metadata,
    metadata?: Metadata,
    room?: ServerContext,
  ): UniversalResponse | Promise<UniversalResponse> {
    if (!this.#compresses) return this.#whole(frame, trailers, metadata, room);
    return compressFrames(frame).then((bytes) =>
      this.#whole(bytes, trailers, { ...metadata, "grpc-encoding": "gzip" }, room),
    );
  }

  #whole(
    bytes: Uint8Array,
    trailers: Metadata,
    metadata: Metadata | undefined,
    room: ServerContext | undefined,
  ): UniversalResponse {
    const { framing } = this.#options;
    if (room !== undefined && room.reserved > 0 && this.#deadline?.error === undefined) {
      // What it was made from is gone, and it may be less than was thought.
      room.shrink(bytes.length);
      return framing.stream(
        (sink) => this.#ended(writeLarge(this.#sinkOf(sink, false), bytes, room), trailers),
        metadata,
      );
    }
    room?.end();
    this.#close();
    return framing.whole(bytes, trailers, metadata);
  }

  /**
   * An answer in frames that come by and by. `write` rejects with what went wrong, and ends early where the sink is closed:
   * nobody reads any more, or the deadline has passed.
   */
  stream(write: (sink: CallSink) => Promise<void>, trailers: Metadata, metadata?: Metadata): UniversalResponse {
    const compresses = this.#compresses;
    return this.#options.framing.stream(
      (sink) => this.#ended(write(this.#sinkOf(sink, compresses)), trailers),
      compresses ? { ...metadata, "grpc-encoding": "gzip" } : metadata,
    );
  }

  #sinkOf(sink: Sink, compresses: boolean): CallSink {
    return new CallSink(sink, this.#deadline, compresses);
  }

  /** The trailers of a stream, once it is written. */
  #ended(written: Promise<void>, trailers: Metadata): Promise<Metadata> {
    return written.then(
      () => {
        const error = this.#deadline?.error;
        this.#close();
        return error === undefined ? trailers : this.#trailersOf(error);
      },
      (thrown: unknown) => {
        this.#close();
        return this.#trailersOf(this.#deadline?.error ?? thrown);
      },
    );
  }

  /** An answer that says what went wrong. */
  fail(thrown: unknown): UniversalResponse {
    this.#close();
    return this.#options.framing.withoutMessage(this.#trailersOf(thrown));
  }

  #trailersOf(thrown: unknown): Metadata {
    return this.#options.explain(thrown, this);
  }

  /** Nothing is waited for any more. */
  #close(): void {
    this.#deadline?.clear();
    this.#letGo();
  }
}

/** Bytes of one write: what a host holds of a large answer beside its frame. Divisible by three, so that base64 goes on without padding. */
const pieceLength = 3 * 21_845;

/** Writes a large answer in pieces that wait until there is room for them, and gives back what is reserved for it. */
async function writeLarge(sink: CallSink, bytes: Uint8Array, room: ServerContext): Promise<void> {
  try {
    for (let at = 0; at < bytes.length && !sink.closed; at += pieceLength) {
      const written = sink.write(bytes.subarray(at, at + pieceLength));
      if (written !== undefined) await room.awaitReader(written);
    }
  } finally {
    room.end();
  }
}
