import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  BodyBytes,
  type BodyBudget,
  type BodyReader,
  type ByteFlow,
  type ByteReader,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";

/** The error if the client disconnects before its request body is complete. */
export function brokeOff(): A2AError {
  return new A2AError("InvalidRequest", "Request body broke off");
}

/** A request body while it is received, for both versions of HTTP. Nothing is read before the first `resume()`. */
export class IncomingBody implements ByteFlow {
  readonly #stream: Readable;
  readonly #reader: ByteReader;
  #before: (() => void) | undefined;
  #begun = false;

  /** `before` is called before the first byte is read. */
  constructor(stream: Readable & { readonly aborted?: boolean }, reader: ByteReader, before?: () => void) {
    this.#stream = stream;
    this.#reader = reader;
    this.#before = before;
    const broken = (): void => {
      if (!stream.readableEnded) reader.gone();
    };
    // A stream of HTTP/2 that the client aborts also emits `end`.
    stream.on("end", () => (stream.aborted === true ? reader.gone() : reader.end()));
    stream.on("error", broken).on("close", broken);
    // An empty body may have ended before it is read, and then emits no further event.
    if (stream.readableEnded) reader.end();
    else if (stream.destroyed) reader.gone();
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    if (this.#begun) {
      this.#stream.resume();
      return;
    }
    this.#begun = true;
    this.#before?.();
    this.#before = undefined;
    this.#stream.on("data", (chunk: Buffer) => this.#reader.chunk(chunk));
  }
}

/** Limits of a body, and its headers. */
interface Announcement {
  readonly limit: number;
  readonly budget: BodyBudget | undefined;
  /** Its `content-length`. */
  readonly length: string | undefined;
}

/** Reads a body as text. Stops reading after more than `limit` bytes. */
export function readText(
  request: Pick<UniversalRequest, "connection"> & { read(reader: ByteReader): ByteFlow },
  announcement: Announcement,
): Promise<string> {
  return new Promise((resolve, reject) => new TextReader(request, announcement, resolve, reject).begin());
}

/** Reads a body. Drops its references at the end, because the request and its listeners live as long as the answer. */
class TextReader implements ByteReader, BodyReader {
  readonly #flow: ByteFlow;
  #body: BodyBytes | undefined;
  #resolve: ((text: string) => void) | undefined;
  #reject: ((error: unknown) => void) | undefined;

  constructor(
    request: Parameters<typeof readText>[0],
    { limit, budget, length }: Announcement,
    resolve: (text: string) => void,
    reject: (error: unknown) => void,
  ) {
    this.#resolve = resolve;
    this.#reject = reject;
    const announced = length === undefined || !/^\d+$/.test(length) ? undefined : Number(length);
    this.#body = new BodyBytes(limit, announced, budget?.enter(this, request.connection));
    this.#flow = request.read(this);
  }

  begin(): void {
    try {
      if (this.#body?.begin() === true) this.#flow.resume();
    } catch (error) {
      this.#stop(error);
    }
  }

  chunk(bytes: Uint8Array): void {
    try {
      if (this.#body?.push(bytes) === false) this.#flow.pause();
    } catch (error) {
      this.refuse(error);
    }
  }

  end(): void {
    const body = this.#body;
    if (body === undefined) return;
    const { buffer, byteOffset, byteLength } = body.take();
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    if (isUtf8(bytes)) this.#resolve?.(withoutMark(bytes.toString("utf8")));
    else this.#reject?.(new A2AError("ParseError", "Request body is not UTF-8"));
    this.#letGo();
  }

  gone(): void {
    this.#stop(brokeOff());
  }

  resume(): void {
    this.#flow.resume();
  }

  refuse(error: unknown): void {
    this.#flow.pause();
    this.#stop(error);
  }

  #stop(error: unknown): void {
    this.#body?.leave();
    this.#reject?.(error);
    this.#letGo();
  }

  #letGo(): void {
    this.#body = this.#resolve = this.#reject = undefined;
  }
}

/** Removes a byte order mark, which is not part of the text (RFC 8259 §8.1). `TextDecoder` does the same on other hosts. */
function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
