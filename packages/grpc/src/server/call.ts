import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { LogFields } from "@parley/a2a/internal/base/index";
import type { RequestFacts, UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import type { ServerContext } from "@parley/a2a/internal/transport/server/context";
import { parseTimeout } from "../metadata.ts";
import { StatusError } from "../status.ts";
import { compressed, frameOf, FrameReader } from "../frames.ts";
import { CallReader, type CallReaderOptions, type LargeMessage, type ReadableRequest } from "./call-reader.ts";
import type { FrameSink, Metadata } from "./framing.ts";

interface CallOptions extends CallReaderOptions {
  /** Creates the trailers of a failed call. `fields`: log fields of its task. */
  readonly explain: (thrown: unknown, call: Call, fields: LogFields | undefined) => Metadata;
}

/** Answers the calls of one method. Rejects if a call fails. */
export type Method = (call: Call) => Promise<UniversalResponse>;

/** One call of a method: its request, messages, and answer in frames. */
export class Call implements UniversalRequest {
  readonly method = "POST";
  readonly #request: ReadableRequest;
  readonly #options: CallOptions;
  readonly #reader: CallReader;
  /** The context of the call, once its request is read. */
  context: Pick<ServerContext, "fields"> | undefined;
  #deadline: Deadline | undefined;

  constructor(request: ReadableRequest, options: CallOptions) {
    this.#request = request;
    this.#options = options;
    this.#reader = new CallReader(request, options);
  }

  get url(): string {
    return this.#request.url;
  }

  header(name: string): string | undefined {
    return this.#request.header(name);
  }

  get facts(): RequestFacts | undefined {
    return this.#request.facts;
  }

  /** Rejects: a call has messages instead of text. */
  text(): Promise<string> {
    return Promise.reject(new A2AError("InvalidRequest", "A gRPC request has no text"));
  }

  /** Aborted when the client cancels, or the deadline passes. */
  get signal(): AbortSignal {
    return this.#deadline === undefined
      ? this.#request.signal
      : AbortSignal.any([this.#request.signal, this.#deadline.signal]);
  }

  /**
   * Begins to read the request, and sets its deadline.
   *
   * @throws StatusError for an invalid `grpc-timeout`.
   */
  start(): void {
    this.#reader.start();
    const timeout = parseTimeout(this.header("grpc-timeout"));
    if (timeout === undefined) return;
    if (Number.isNaN(timeout)) throw new StatusError("INVALID_ARGUMENT", "grpc-timeout is not a valid timeout");
    this.#deadline = new Deadline(timeout, (error) => this.#reader.refuse(error));
  }

  /** The single message of a method without a client stream. `read` reads one that is too large for memory. */
  only(read?: (large: LargeMessage) => Promise<Uint8Array>): Promise<Uint8Array> {
    return this.#reader.only(read);
  }

  /** The next message of a stream; `undefined` after the last one. */
  next(): Promise<Uint8Array | undefined> {
    return this.#reader.next();
  }

  /** `answer`, or the failure of the deadline if it passes first. */
  inTime(answer: Promise<UniversalResponse>): Promise<UniversalResponse> {
    if (this.#deadline === undefined) return answer;
    return Promise.race([answer, this.#deadline.passed.then((error) => this.fail(error))]);
  }

  /** Answers are compressed for clients that compress their requests. */
  get #compresses(): boolean {
    return this.header("grpc-encoding") === "gzip" && (this.header("grpc-accept-encoding")?.includes("gzip") ?? false);
  }

  /** An answer of one message. `memory` holds the memory reserved for it. */
  reply(
    frame: Uint8Array,
    trailers: Metadata,
    metadata?: Metadata,
    memory?: ServerContext,
  ): UniversalResponse | Promise<UniversalResponse> {
    if (!this.#compresses) return this.#whole(frame, trailers, metadata, memory);
    return compressFrames(frame).then((bytes) =>
      this.#whole(bytes, trailers, { ...metadata, "grpc-encoding": "gzip" }, memory),
    );
  }

  #whole(
    bytes: Uint8Array,
    trailers: Metadata,
    metadata: Metadata | undefined,
    memory: ServerContext | undefined,
  ): UniversalResponse {
    const { framing } = this.#options;
    if (memory !== undefined && memory.reserved > 0 && this.#deadline?.error === undefined) {
      // The encoded answer replaces the source value, and may be shorter than reserved.
      memory.shrink(bytes.length);
      return framing.stream(
        (sink) => this.#ended(writeLarge(this.#writerTo(sink, false), bytes, memory), trailers),
        metadata,
      );
    }
    memory?.end();
    this.#close();
    return framing.whole(bytes, trailers, metadata);
  }

  /**
   * A stream of frames. `write` rejects if the call fails, and stops early when the writer closes: the client
   * disconnected, or the deadline passed.
   */
  stream(write: (writer: CallWriter) => Promise<void>, trailers: Metadata, metadata?: Metadata): UniversalResponse {
    const compresses = this.#compresses;
    return this.#options.framing.stream(
      (sink) => this.#ended(write(this.#writerTo(sink, compresses)), trailers),
      compresses ? { ...metadata, "grpc-encoding": "gzip" } : metadata,
    );
  }

  #writerTo(sink: FrameSink, compresses: boolean): CallWriter {
    return new CallWriter(sink, this.#deadline, compresses);
  }

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

  fail(thrown: unknown, fields?: LogFields): UniversalResponse {
    this.#close();
    return this.#options.framing.withoutMessage(this.#trailersOf(thrown, fields));
  }

  #trailersOf(thrown: unknown, fields = this.context?.fields): Metadata {
    return this.#options.explain(thrown, this, fields);
  }

  #close(): void {
    this.#deadline?.clear();
    this.#reader.release();
  }
}

/** The client's timeout of a call (`grpc-timeout`). */
class Deadline {
  /** The error, once the deadline has passed. */
  error: StatusError | undefined;
  readonly passed: Promise<StatusError>;
  readonly #timer: NodeJS.Timeout;
  #controller: AbortController | undefined;

  /** `timeout` is in milliseconds. Calls `run` when the deadline passes. */
  constructor(timeout: number, run: (error: StatusError) => void) {
    let resolve: (error: StatusError) => void;
    this.passed = new Promise((settle) => (resolve = settle));
    this.#timer = setTimeout(() => {
      this.error = new StatusError("DEADLINE_EXCEEDED", "The deadline has passed");
      run(this.error);
      resolve(this.error);
      this.#controller?.abort();
    }, timeout);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.error !== undefined) this.#controller.abort();
    return this.#controller.signal;
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/** Writes the frames of an answer until the client disconnects or the deadline passes. */
export class CallWriter {
  readonly #sink: FrameSink;
  readonly #deadline: Deadline | undefined;
  readonly #compresses: boolean;

  constructor(sink: FrameSink, deadline: Deadline | undefined, compresses: boolean) {
    this.#sink = sink;
    this.#deadline = deadline;
    this.#compresses = compresses;
  }

  /** Whether writing is pointless. */
  get closed(): boolean {
    return this.#sink.closed || this.#deadline?.error !== undefined;
  }

  /** Calls `run` when the writer closes, or immediately if it is already closed. `run` may be called twice. */
  onClose(run: () => void): void {
    this.#sink.onClose(run);
    void this.#deadline?.passed.then(run);
  }

  /** Sends frames. Returns a promise if they are compressed, or if the client must catch up first. */
  write(frames: Uint8Array): Promise<void> | undefined {
    if (this.#compresses) return this.#writeCompressed(frames);
    return this.closed || this.#sink.write(frames) ? undefined : this.#ready();
  }

  async #writeCompressed(frames: Uint8Array): Promise<void> {
    const bytes = await compressFrames(frames);
    if (!this.closed && !this.#sink.write(bytes)) await this.#ready();
  }

  #ready(): Promise<void> {
    const ready = this.#sink.ready();
    return this.#deadline === undefined ? ready : Promise.race([ready, this.#deadline.passed.then(() => undefined)]);
  }
}

/** Size of one write of a large answer. A multiple of three: base64 of a piece has no padding. */
const pieceLength = 3 * 21_845;

/** Writes a large answer in pieces as the client reads, then releases the memory in `memory`. */
async function writeLarge(writer: CallWriter, bytes: Uint8Array, memory: ServerContext): Promise<void> {
  try {
    for (let at = 0; at < bytes.length && !writer.closed; at += pieceLength) {
      const written = writer.write(bytes.subarray(at, at + pieceLength));
      if (written !== undefined) await memory.awaitReader(written);
    }
  } finally {
    memory.end();
  }
}

const compress = promisify(gzip);

/** Minimum size of a message to compress. Smaller ones would grow, or are not worth the work. */
const shortestCompressed = 1024;

/** Compresses long messages in frames. */
async function compressFrames(frames: Uint8Array): Promise<Uint8Array> {
  const plain = new FrameReader(frames.length).push(frames);
  return Buffer.concat(await Promise.all(plain.map(({ payload }) => compressedFrame(payload))));
}

async function compressedFrame(message: Uint8Array): Promise<Uint8Array> {
  return message.length < shortestCompressed ? frameOf(message) : frameOf(await compress(message), compressed);
}
