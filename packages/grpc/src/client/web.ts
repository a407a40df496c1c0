/**
 * gRPC-Web for clients in a browser.
 * @packageDocumentation
 */

import { A2AError } from "@parley/a2a/model";
import { sendRequest, type ClientResponse } from "@parley/a2a/internal/transport/client/request";
import type { ClientBinding, ClientHost } from "@parley/a2a/internal/transport/client/binding";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { codecV11, wires } from "@parley/a2a/internal/wires";
import { compressed, FrameReader, frameOf, trailers as trailersFlag, type Frame } from "../frames.ts";
import { formatTimeout } from "../metadata.ts";
import type { AnswerHeaders } from "./headers.ts";
import { bindingOver, type Incoming, type Transport } from "./service.ts";

/**
 * The gRPC-Web binding of a client, over `fetch`: for browsers and other runtimes without HTTP/2. It calls the GRPC
 * interfaces of a card, where the server or its proxy must speak gRPC-Web; servers of Parley do.
 *
 * @param codecs - The versions to speak. Default: all.
 */
export function grpcWebBinding(codecs: readonly Codec[] = [...Object.values(wires), codecV11]): ClientBinding {
  return bindingOver(codecs, (origin, _, host) => overFetch(origin, host));
}

const mediaType = "application/grpc-web+proto";

function overFetch(origin: string, host: ClientHost): Transport {
  return async ({ path, metadata, message, context, headTimeout }) => {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(metadata)) headers[name] = [value].flat().join(",");
    headers["content-type"] = mediaType;
    headers["accept"] = mediaType;
    headers["x-grpc-web"] = "1";
    if (headTimeout !== false) headers["grpc-timeout"] = formatTimeout(headTimeout);
    const request = { method: "POST", url: origin + path, headers, body: frameOf(message), timeout: headTimeout };
    const answer = await sendRequest(host, request, context);
    return new WebAnswer(answer, origin + path, host.limits.maxResponseBytes);
  };
}

/** Headers that errors and extensions are read from. */
const known = [
  "content-type",
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
  "www-authenticate",
  "retry-after",
  "dpop-nonce",
  "a2a-extensions",
  "x-a2a-extensions",
];

/** The frames of an answer. The last frame has the trailers. */
class WebAnswer implements Incoming {
  readonly headers: AnswerHeaders;
  trailers: AnswerHeaders | undefined;
  failure: A2AError | undefined;
  readonly #response: ClientResponse;
  readonly #url: string;
  readonly #chunks: AsyncGenerator<Uint8Array, void, void>;
  readonly #reader: FrameReader;
  readonly #limit: number;
  #messages: Uint8Array[] = [];
  #over = false;

  constructor(answer: ClientResponse, url: string, limit: number) {
    const headers: Record<string, string> = { ":status": String(answer.status) };
    for (const name of known) {
      const value = answer.header(name);
      if (value !== undefined) headers[name] = value;
    }
    this.headers = headers;
    this.#response = answer;
    this.#url = url;
    this.#chunks = answer.bytes();
    this.#reader = new FrameReader(limit);
    this.#limit = limit;
    if (answer.status !== 200 || !answer.mediaType.startsWith("application/grpc-web")) this.cancel();
  }

  async hasMessage(): Promise<boolean> {
    while (this.#messages.length === 0 && !this.#over) await this.#more();
    return this.#messages.length > 0;
  }

  async next(): Promise<readonly Uint8Array[] | undefined> {
    if (!(await this.hasMessage())) return undefined;
    const messages = this.#messages;
    this.#messages = [];
    return messages;
  }

  cancel(): void {
    this.#over = true;
    this.#response.close();
  }

  async #more(): Promise<void> {
    try {
      const { done, value } = await this.#chunks.next();
      if (done === true) {
        this.#over = true;
        if (this.#reader.partial) this.failure = this.#invalid("an incomplete message");
      } else {
        for (const frame of this.#reader.push(value)) this.#take(frame);
      }
    } catch (thrown) {
      if (!(thrown instanceof A2AError)) throw thrown;
      this.failure =
        thrown.code === "RequestTooLarge"
          ? this.#invalid(`a message that is longer than the limit of ${this.#limit} bytes`)
          : thrown;
      this.cancel();
    }
  }

  #take({ flags, payload }: Frame): void {
    if ((flags & compressed) !== 0) throw this.#invalid("a compressed message, which was not asked for");
    if ((flags & trailersFlag) !== 0) this.trailers = readLines(payload);
    else this.#messages.push(payload);
  }

  #invalid(what: string): A2AError {
    return new A2AError("InvalidResponse", `${this.#url} sent ${what}`);
  }
}

function readLines(payload: Uint8Array): AnswerHeaders {
  const headers: Record<string, string> = {};
  for (const line of new TextDecoder().decode(payload).split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}
