import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { gunzipSync, inflateSync } from "node:zlib";
import type { Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/model";
import { abortError } from "@parley/a2a/internal/transport/client/signals";
import { compressed, exceedsLimit, type Frame, FrameReader } from "../frames.ts";
import type { Incoming } from "./service.ts";

export interface ChannelOptions {
  /** Options of `node:tls` for a connection: certificates to trust, and a client certificate. */
  readonly tls?: SecureClientSessionOptions;
  /**
   * Milliseconds of silence after which the server of an open call gets a ping; `false` sends none. Default: a little more
   * than 5 minutes, because many servers refuse more frequent pings. A connection without calls is closed after the same
   * time, and does not keep the process running.
   */
  readonly keepAlive?: number | false;
  /** Timeout for the answer to a ping, in milliseconds. Default: 20 s. */
  readonly keepAliveTimeout?: number;
}

const sessionOptions = {
  settings: { enablePush: false, initialWindowSize: 1 << 20 },
  // In MiB. Unsent data counts, too. Node's default is smaller than the messages that servers accept.
  maxSessionMemory: 256,
};

/** Flow-control window of a connection, in bytes. */
const connectionWindow = 4 << 20;

interface Opened {
  readonly stream: ClientHttp2Stream;
  readonly link: Link;
}

interface Link {
  readonly session: ClientHttp2Session;
  /** Callbacks for the server's settings, which prove that it speaks HTTP/2; `undefined` after that. */
  waiting: Set<() => void> | undefined;
  /** The last stream that the server processes, after a GOAWAY. */
  lastStream: number;
  open: number;
}

/** Keeps one connection to an address. Connects on the first call, and again after a connection was lost. */
export class Channel {
  readonly #origin: string;
  readonly #options: ChannelOptions;
  #link: Link | undefined;

  constructor(origin: string, options: ChannelOptions) {
    this.#origin = origin;
    this.#options = options;
  }

  open(headers: OutgoingHttpHeaders): Opened {
    if (this.#link?.session.closed === true || this.#link?.session.destroyed === true) this.#link = undefined;
    const link = (this.#link ??= this.#connect());
    const { session } = link;
    const stream = session.request(headers, { endStream: false });
    if (link.open++ === 0) session.ref();
    stream.on("close", () => {
      if (--link.open === 0) session.unref();
    });
    return { stream, link };
  }

  /** Closes the connection once its calls have ended. */
  close(): void {
    this.#link?.session.close();
    this.#link = undefined;
  }

  #connect(): Link {
    const session = connect(this.#origin, { ...this.#options.tls, ...sessionOptions });
    const link: Link = { session, waiting: new Set(), lastStream: Infinity, open: 0 };
    const leave = (): void => {
      if (this.#link === link) this.#link = undefined;
    };
    session.on("connect", () => session.setLocalWindowSize(connectionWindow));
    session.once("remoteSettings", () => {
      const { waiting = [] } = link;
      link.waiting = undefined;
      for (const run of waiting) run();
    });
    session.on("goaway", (_code: number, lastStream: number) => {
      link.lastStream = Math.min(link.lastStream, lastStream);
      leave();
    });
    // Calls learn of the error from their streams. Without a listener it would end the process.
    session.on("error", leave);
    session.on("close", leave);
    session.on("timeout", () => this.#check(link, leave));
    session.setTimeout(this.#period);
    session.unref();
    return link;
  }

  get #period(): number {
    const { keepAlive = usualPeriod } = this.#options;
    return keepAlive === false ? usualPeriod : keepAlive;
  }

  /** After silence: closes a connection without calls, and pings any other. */
  #check({ session, open }: Link, leave: () => void): void {
    if (open === 0) {
      leave();
      session.close();
    } else if (this.#options.keepAlive !== false) {
      const giveUp = (): void => session.destroy(new Error("The server stopped answering pings"));
      const late = setTimeout(giveUp, this.#options.keepAliveTimeout ?? 20_000);
      session.ping(() => {
        clearTimeout(late);
        // The answer to a ping does not reset the timeout.
        session.setTimeout(this.#period);
      });
    }
  }
}

/** Servers of other libraries reject more frequent pings. */
const usualPeriod = 310_000;

interface CallOptions {
  /** Name of the server in errors. */
  readonly url: string;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Timeout for the connection, and for the headers of the answer, in milliseconds. */
  readonly connectTimeout: number | false;
  readonly headTimeout: number | false;
  /** Maximum size of a message after decompression, in bytes. */
  readonly maxMessageBytes: number;
}

/** Maximum queue of messages and bytes. Beyond it, the client pauses the server. */
const maxWaiting = 256;
const maxWaitingBytes = 1 << 20;

/** A call with one request. The answer is read as fast as `next` is called. */
class Call implements Incoming {
  /** The headers of the answer, once they have arrived. Without a message they hold the trailers too. */
  headers: IncomingHttpHeaders | undefined;
  trailers: IncomingHttpHeaders | undefined;
  /** Why the call ended without a status. */
  failure: A2AError | undefined;
  readonly #stream: ClientHttp2Stream;
  readonly #link: Link;
  readonly #options: CallOptions;
  readonly #reader: FrameReader;
  #frames: Frame[] = [];
  /** Bytes received since the queue was empty, including an incomplete frame. */
  #waiting = 0;
  #over = false;
  #wake: (() => void) | undefined;
  #disarm: (() => void) | undefined;

  constructor(channel: Channel, headers: OutgoingHttpHeaders, body: Uint8Array, options: CallOptions) {
    this.#options = options;
    this.#reader = new FrameReader(options.maxMessageBytes);
    const { stream, link } = channel.open(headers);
    this.#stream = stream;
    this.#link = link;
    stream.on("response", (head: IncomingHttpHeaders) => {
      this.headers = head;
      this.#limit(false, "");
      if (speaksGrpc(head)) this.#notify();
      else this.#leave();
    });
    stream.on("trailers", (trailers: IncomingHttpHeaders) => (this.trailers = trailers));
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.on("error", (cause: Error) => this.#broken(cause));
    stream.on("close", () => this.#end());
    this.#listenToSignal();
    this.#await();
    stream.end(body);
  }

  /** Whether the server has certainly not processed the call, so that the client may retry it on another connection. */
  get refused(): boolean {
    const { id, rstCode } = this.#stream;
    const beyond = id !== undefined && id > this.#link.lastStream;
    return this.headers === undefined && (rstCode === constants.NGHTTP2_REFUSED_STREAM || beyond);
  }

  /** Waits for the headers of the answer, or for the end of the call. */
  async begun(): Promise<void> {
    while (this.headers === undefined && !this.#over) await this.#change();
  }

  /** Waits for a message or the end. Returns whether there is a message. */
  async hasMessage(): Promise<boolean> {
    while (this.#frames.length === 0 && !this.#over) await this.#change();
    return this.#frames.length > 0;
  }

  /** The received messages, decompressed; `undefined` after the end: see `failure`, `trailers` and `headers`. */
  async next(): Promise<readonly Uint8Array[] | undefined> {
    if (!(await this.hasMessage())) return undefined;
    const messages: Uint8Array[] = [];
    // Compressed messages grow, so decompress no more than the queue may hold.
    let bytes = 0;
    for (const frame of this.#frames) {
      const message = this.#decompress(frame);
      messages.push(message);
      bytes += message.length;
      if (bytes > maxWaitingBytes) break;
    }
    this.#frames = this.#frames.slice(messages.length);
    if (this.#frames.length === 0) {
      this.#waiting = 0;
      this.#stream.resume();
    }
    return messages;
  }

  /** Cancels the call. May be called at any time. */
  cancel(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #take(chunk: Buffer): void {
    if (this.#over) return;
    try {
      this.#waiting += chunk.length;
      for (const frame of this.#reader.push(chunk)) this.#frames.push(frame);
    } catch {
      this.#fail(this.#tooLarge());
      return;
    }
    const full = this.#frames.length > maxWaiting || this.#waiting > maxWaitingBytes;
    if (full && this.#frames.length > 0) this.#stream.pause();
    this.#notify();
  }

  #decompress({ flags, payload }: Frame): Uint8Array {
    if ((flags & compressed) === 0) return payload;
    const encoding = this.headers?.["grpc-encoding"];
    const decompress = encoding === "gzip" ? gunzipSync : encoding === "deflate" ? inflateSync : undefined;
    try {
      if (decompress !== undefined) return decompress(payload, { maxOutputLength: this.#options.maxMessageBytes });
    } catch (cause) {
      if (exceedsLimit(cause)) throw this.#tooLarge();
      throw this.#invalid("a message that cannot be decompressed", cause);
    }
    throw this.#invalid(`a message compressed as ${JSON.stringify(encoding ?? "")}`);
  }

  /** Limits the wait for a connection, and then the wait for an answer. */
  #await(): void {
    const { connectTimeout, headTimeout, url } = this.#options;
    const { waiting } = this.#link;
    if (waiting === undefined) {
      this.#limit(headTimeout, `No answer from ${url}`);
      return;
    }
    this.#limit(connectTimeout, `No connection to ${url}`);
    waiting.add(() => {
      if (this.headers === undefined && !this.#over) this.#limit(headTimeout, `No answer from ${url}`);
    });
  }

  #limit(milliseconds: number | false, what: string): void {
    this.#disarm?.();
    this.#disarm = undefined;
    if (milliseconds === false) return;
    this.#disarm = this.#options.clock.after(milliseconds, () =>
      this.#fail(new A2AError("Timeout", `${what} within ${milliseconds} ms`)),
    );
  }

  #listenToSignal(): void {
    const { signal } = this.#options;
    if (signal === undefined) return;
    const abort = (): void => this.#fail(abortError(signal));
    signal.addEventListener("abort", abort, { once: true });
    this.#stream.on("close", () => signal.removeEventListener("abort", abort));
  }

  #broken(cause: Error): void {
    const { url } = this.#options;
    const why = cause.cause instanceof Error ? cause.cause.message : cause.message;
    this.failure ??=
      this.#link.waiting === undefined
        ? new A2AError("ConnectionLost", `The answer of ${url} broke off: ${why}`, { cause })
        : new A2AError("ConnectionFailed", `No connection to ${url}: ${why}`, { cause });
  }

  #fail(error: A2AError): void {
    this.failure ??= error;
    this.#leave();
  }

  /** Cancels the call and ignores the rest of its answer. */
  #leave(): void {
    this.#frames = [];
    this.#over = true;
    this.cancel();
    this.#end();
  }

  #end(): void {
    if (this.#reader.partial && this.trailers !== undefined) this.failure ??= this.#invalid("an incomplete message");
    this.#limit(false, "");
    this.#over = true;
    this.#notify();
  }

  #tooLarge(): A2AError {
    const { url, maxMessageBytes } = this.#options;
    return new A2AError("InvalidResponse", `A message of ${url} is longer than the limit of ${maxMessageBytes} bytes`);
  }

  #invalid(what: string, cause?: unknown): A2AError {
    return new A2AError("InvalidResponse", `${this.#options.url} sent ${what}`, { cause });
  }

  #change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

/** Whether the answer is gRPC. A server without gRPC may answer with a page. */
function speaksGrpc(headers: IncomingHttpHeaders): boolean {
  return Number(headers[":status"]) === 200 && headers["content-type"]?.startsWith("application/grpc") === true;
}

/** Maximum attempts at a call that the server refuses without processing it. */
const tries = 3;

/** Sends a call and waits until its answer begins or it ends. Retries a call that the server refused without processing it. */
export async function begin(
  channel: Channel,
  headers: OutgoingHttpHeaders,
  body: Uint8Array,
  options: CallOptions,
): Promise<Call> {
  for (let attempt = 1; ; attempt++) {
    if (options.signal?.aborted === true) throw abortError(options.signal);
    let call: Call;
    try {
      call = new Call(channel, headers, body, options);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new A2AError("ConnectionFailed", `${options.url} cannot be called: ${why}`, { cause });
    }
    await call.begun();
    if (!call.refused || attempt === tries) return call;
  }
}
