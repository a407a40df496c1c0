import { A2AError } from "@parley/a2a";
import type { BodyPlace, BodyReader, UniversalRequest } from "@parley/a2a/protocol";
import type { RequestLimits } from "@parley/a2a/transport";
import { compressed, FrameReader, type Frame } from "../frames.ts";
import { parseTimeout } from "../metadata.ts";
import { compressFrames, messageIn } from "./compression.ts";
import { StatusError } from "./status-error.ts";
import type { Metadata, Receiver, Wire } from "./wire.ts";

/** Requests of one call that may wait; a caller that sends more without reading is turned away. */
const longestQueue = 64;

/**
 * A call of a method: what came with it, the messages of its caller, and the way back. It ends once, whoever ends it
 * first: the method, the deadline, the caller who leaves.
 */
export class Call implements UniversalRequest, Receiver, BodyReader {
  readonly method = "POST";
  readonly #wire: Wire;
  readonly #limit: number;
  readonly #requestTimeout: number;
  readonly #frames: FrameReader;
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
  #over = false;
  #controller: AbortController | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** Runs while a message is on its way. */
  #messageTimer: NodeJS.Timeout | undefined;
  #leaving: (() => void) | undefined;

  /** `limits`: of a message, and of those of all calls; `requestTimeout`: for one to come in whole, in milliseconds. */
  constructor(wire: Wire, { bodyBytes, unfinished }: RequestLimits, requestTimeout: number) {
    this.#wire = wire;
    this.#limit = bodyBytes;
    this.#requestTimeout = requestTimeout;
    this.#frames = new FrameReader(bodyBytes);
    this.#place = unfinished?.enter(this, wire.connection);
  }

  // What the request says.

  get url(): string {
    return this.#wire.path;
  }

  header(name: string): string | undefined {
    return this.#wire.header(name);
  }

  get remoteAddress(): string {
    return this.#wire.remoteAddress;
  }

  /** A call has messages in place of a text. */
  text(): Promise<string> {
    return Promise.reject(new A2AError("InvalidRequest", "A gRPC request has no text"));
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#failure instanceof StatusError) this.#controller.abort();
    return this.#controller.signal;
  }

  /**
   * Begins to listen. `late` is called when the caller's deadline passes, and has to end the call.
   *
   * @throws StatusError for a deadline that is none.
   */
  start(late: (error: StatusError) => void): void {
    this.#wire.listen(this);
    const timeout = parseTimeout(this.#wire.header("grpc-timeout"));
    if (timeout === undefined) return;
    if (Number.isNaN(timeout)) throw new StatusError("INVALID_ARGUMENT", "grpc-timeout is no time");
    this.#deadline = setTimeout(() => {
      const error = new StatusError("DEADLINE_EXCEEDED", "The deadline has passed");
      late(error);
      this.#stop(error);
    }, timeout);
  }

  // What arrives.

  chunk(bytes: Uint8Array): void {
    if (this.#over || this.#failure !== undefined) return;
    const before = this.#queue.length;
    try {
      this.#frames.push(bytes, this.#queue);
      for (let at = before; at < this.#queue.length; at++) this.#enqueue(at, bytes);
      if (this.#queue.length > longestQueue || this.#queued > this.#limit) {
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
    if (flags === compressed) this.#unfolded = this.#limit;
    if (payload.buffer !== chunk.buffer || payload.buffer.byteLength <= 4 * payload.length) return;
    this.#queue[at] = { flags, payload: Buffer.from(payload) };
  }

  #hold(): void {
    const { held, expected } = this.#frames;
    const most = this.#queued + expected + this.#unfolded;
    if (this.#place?.hold(this.#queued + held, most) !== false) return;
    this.#waits = true;
    this.#wire.pause();
  }

  /** There is room for a message that had to wait. */
  resume(): void {
    this.#waits = false;
    this.#wire.resume();
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
    if (partial) this.#messageTimer ??= setTimeout(() => this.#giveUp(), this.#requestTimeout);
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
    if (!this.#over) this.#stop(new StatusError("CANCELLED", "The caller is gone"));
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
    return messageIn(frame, this.#wire.header("grpc-encoding"), this.#limit);
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

  /** Whether the call has ended: what is written goes nowhere. */
  get over(): boolean {
    return this.#over;
  }

  /** Calls `run` when the caller leaves or its deadline passes; at once when that has happened. */
  onStop(run: () => void): void {
    if (this.#failure instanceof StatusError) run();
    else this.#leaving = run;
  }

  /** Whether answers are compressed: to those who do so themselves. */
  get compresses(): boolean {
    return this.header("grpc-encoding") === "gzip" && (this.header("grpc-accept-encoding")?.includes("gzip") ?? false);
  }

  /** Sends the head of an answer that goes well so far. */
  open(metadata?: Metadata): void {
    if (!this.#over) this.#wire.open(this.compresses ? { ...metadata, "grpc-encoding": "gzip" } : metadata);
  }

  /** Sends frames; resolves when there is room for more, or nobody left to read them. */
  async write(frames: Uint8Array): Promise<void> {
    const bytes = this.compresses ? await compressFrames(frames) : frames;
    if (!this.#over && !this.#wire.write(bytes)) await this.#wire.ready();
  }

  /** Answers with one message: at once, unless it has to be compressed. */
  reply(frame: Uint8Array, trailers: Metadata, metadata?: Metadata): Promise<void> | undefined {
    if (this.compresses) return this.#replyCompressed(frame, trailers, metadata);
    this.close(trailers, frame, metadata);
    return undefined;
  }

  /** Resolves when the answer has left, or nobody is there to take it. */
  sent(): Promise<void> {
    return this.#wire.sent();
  }

  async #replyCompressed(frame: Uint8Array, trailers: Metadata, metadata?: Metadata): Promise<void> {
    const bytes = await compressFrames(frame);
    this.close(trailers, bytes, { ...metadata, "grpc-encoding": "gzip" });
  }

  /** Ends the call: with trailers alone, or after frames, which a head goes before where none was sent. */
  close(trailers: Metadata, frames?: Uint8Array, metadata?: Metadata): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#letGo();
    this.#wire.close(trailers, frames, metadata);
  }

  #stop(error: StatusError): void {
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#letGo();
    this.#failure = error;
    this.#controller?.abort();
    const leaving = this.#leaving;
    this.#leaving = undefined;
    leaving?.();
    this.#wakeUp();
  }
}
