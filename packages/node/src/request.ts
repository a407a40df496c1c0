import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { A2AError } from "@parley/a2a";
import type { UniversalRequest } from "@parley/a2a/protocol";
import { onGone } from "./gone.ts";

/** A `node:http` request as the bindings see it. Everything is looked up when it is asked for: most calls need little of it. */
export class NodeRequest implements UniversalRequest {
  readonly method: string;
  readonly url: string;
  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  #continue: boolean;
  #signal: AbortSignal | undefined;

  /** `url` where a framework has taken a prefix away; `awaitsContinue` where the client asked first whether to send its body. */
  constructor(
    incoming: IncomingMessage,
    response: ServerResponse,
    url: string | undefined = incoming.url,
    awaitsContinue = false,
  ) {
    this.method = incoming.method ?? "GET";
    this.url = originForm(url ?? "/");
    this.#incoming = incoming;
    this.#response = response;
    this.#continue = awaitsContinue;
  }

  header(name: string): string | undefined {
    const value = this.#incoming.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  get remoteAddress(): string {
    return this.#incoming.socket.remoteAddress ?? "";
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      onGone(this.#incoming, this.#response, () => controller.abort());
      this.#signal = controller.signal;
    }
    return this.#signal;
  }

  text(limit: number): Promise<string> {
    // Node holds the bytes that came meanwhile, so nothing is read, and nothing asked for, of a body that is announced as too large.
    if (Number(this.#incoming.headers["content-length"]) > limit) return Promise.reject(tooLarge(limit));
    if (this.#continue) {
      this.#continue = false;
      this.#response.writeContinue();
    }
    // Where a parser has been before, an empty body may have come to its end, and tells so to nobody any more.
    return this.#incoming.readableEnded ? Promise.resolve("") : readText(this.#incoming, limit);
  }
}

function tooLarge(limit: number): A2AError {
  return new A2AError("RequestTooLarge", `Request body larger than ${limit} bytes`);
}

/** What is let go of once a body is read: its request, and who listens to it, live as long as the answer to it. */
interface Reading {
  readonly resolve: (text: string) => void;
  readonly reject: (error: A2AError) => void;
  readonly chunks: Buffer[];
  size: number;
}

function readText(incoming: IncomingMessage, limit: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let reading: Reading | undefined = { resolve, reject, chunks: [], size: 0 };
    const onData = (chunk: Buffer): void => {
      if (reading === undefined) return;
      reading.size += chunk.length;
      if (reading.size <= limit) reading.chunks.push(chunk);
      else {
        incoming.off("data", onData).pause();
        reading.reject(tooLarge(limit));
        reading = undefined;
      }
    };
    const onEnd = (): void => {
      if (reading !== undefined) finish(reading);
      reading = undefined;
    };
    const onBroken = (): void => {
      if (!incoming.readableEnded) reading?.reject(new A2AError("InvalidRequest", "Request body broke off"));
      reading = undefined;
    };
    incoming.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
  });
}

function finish({ resolve, reject, chunks, size }: Reading): void {
  const [first] = chunks;
  const bytes = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, size);
  if (isUtf8(bytes)) resolve(withoutMark(bytes.toString("utf8")));
  else reject(new A2AError("ParseError", "Request body is not UTF-8"));
}

/** A byte order mark is no part of the text (RFC 8259 §8.1); `fetch` hosts drop it too. */
function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Proxies may send the whole URL in the request line (RFC 9112 §3.2.2), and `OPTIONS *` has no path. */
function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  if (!URL.canParse(url)) return "/";
  const { pathname, search } = new URL(url);
  return pathname.startsWith("/") ? pathname + search : "/";
}
