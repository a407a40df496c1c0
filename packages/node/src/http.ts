import type { IncomingMessage, ServerResponse } from "node:http";
import { silentLogger, type Logger } from "@parley/a2a";
import type { BodyWriter, UniversalHandler, UniversalRequest, UniversalResponse } from "@parley/a2a/protocol";
import { NodeRequest } from "./request.ts";
import { closeWhenStalled, ResponseSink } from "./sink.ts";

/** How answers leave this host. */
export interface HttpOptions {
  /** Where the host says what went wrong beneath the protocol. Default: nowhere. */
  readonly logger?: Logger;
  /**
   * A socket that takes nothing for this many milliseconds while an answer waits to go out is closed (default 30 s). A
   * large write that makes some progress is given another term.
   */
  readonly stallTimeout?: number;
}

/** What `http.createServer` and its likes call for a request. */
export type NodeListener = (incoming: IncomingMessage, response: ServerResponse) => void;

/** A listener for `node:http` and `node:https` servers that answers everything through `handle`. Never throws. */
export function nodeListener(handle: UniversalHandler, options: HttpOptions = {}): NodeListener {
  const responder = new Responder(handle, options);
  return (incoming, response) => {
    void responder.answer(new NodeRequest(incoming, response), incoming, response);
  };
}

interface Answer<Body> {
  readonly request: UniversalRequest;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly status: number;
  readonly headers: UniversalResponse["headers"];
  readonly body: Body;
}

/** An answer that waits for the others of its turn of the event loop. */
type Departure = Answer<string | undefined>;

/** Has requests answered, and writes the answers. */
export class Responder {
  readonly #handle: UniversalHandler;
  readonly #logger: Logger;
  readonly #stallTimeout: number;
  readonly #isLast: () => boolean;
  #leaving: Departure[] = [];

  /** `isLast`: whether connections end with their next answer. */
  constructor(handle: UniversalHandler, options: HttpOptions, isLast: () => boolean = () => false) {
    this.#handle = handle;
    this.#logger = options.logger ?? silentLogger;
    this.#stallTimeout = options.stallTimeout ?? 30_000;
    this.#isLast = isLast;
  }

  /** Resolves when the answer is ready to leave, or a stream has begun; never rejects. */
  async answer(request: UniversalRequest, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { status, headers, body } = await this.#handle(request);
      if (typeof body === "function") this.#stream({ request, incoming, response, status, headers, body });
      else this.#leave({ request, incoming, response, status, headers, body });
    } catch (cause) {
      this.#fail(request, incoming, response, cause);
    }
  }

  /**
   * Answers of one turn of the event loop leave together, after its last request was read: the kernel wakes a peer for
   * the first of them, and finds it awake for the others. That is a third of the CPU of a small answer.
   */
  #leave(departure: Departure): void {
    this.#leaving.push(departure);
    if (this.#leaving.length > 1) return;
    setImmediate(() => {
      const leaving = this.#leaving;
      this.#leaving = [];
      for (const each of leaving) this.#send(each);
    });
  }

  #send({ request, incoming, response, status, headers, body }: Departure): void {
    try {
      const parting = this.#isLast() ? { connection: "close", ...headers } : headers;
      send(incoming, response, status, parting, body);
      // What the kernel did not take at once hangs on a reader who may never read it.
      if (response.writableLength > 0) closeWhenStalled(response, this.#stallTimeout);
    } catch (cause) {
      this.#fail(request, incoming, response, cause);
    }
  }

  /** Nothing awaits the end of a stream: a function that waits is half a kilobyte for each that stands idle. */
  #stream({ request, incoming, response, status, headers, body }: Answer<BodyWriter>): void {
    response.writeHead(status, headers);
    closeWhenStalled(response, this.#stallTimeout);
    const written = body(new ResponseSink(incoming, response));
    // After the writer's first words, so that they share a packet with the headers.
    response.flushHeaders();
    written.then(
      () => void response.end(),
      (cause: unknown) => this.#fail(request, incoming, response, cause),
    );
  }

  #fail({ method, url }: UniversalRequest, incoming: IncomingMessage, response: ServerResponse, cause: unknown): void {
    this.#logger.error("A request could not be answered", { method, url, cause });
    if (response.headersSent) response.destroy();
    else send(incoming, response, 500, { "content-type": "application/json" }, internalError);
  }
}

/** How long the rest of a refused request is still read and thrown away, in milliseconds. */
const lingerTime = 2_000;

/** The longest unread request body that is worth reading to keep a connection. */
const worthDraining = 64 * 1024;

/** Only a defect below the bindings leads here: they word their errors themselves. */
const internalError = '{"error":{"code":500,"status":"INTERNAL","message":"Internal error"}}';

function send(
  incoming: IncomingMessage,
  response: ServerResponse,
  status: number,
  headers: UniversalResponse["headers"],
  body: string | undefined,
): void {
  const noBody = status === 204 || status === 304;
  const complete = noBody ? headers : { "content-length": Buffer.byteLength(body ?? ""), ...headers };
  if (!bodyIsLeft(incoming)) {
    response.writeHead(status, complete).end(body);
    return;
  }
  response.writeHead(status, { ...complete, connection: "close" });
  response.write(body ?? "");
  linger(incoming, response);
}

/** Whether so much of the request was left unread that the connection is of no more use. */
function bodyIsLeft(incoming: IncomingMessage): boolean {
  if (incoming.complete) return false;
  const announced = incoming.headers["content-length"];
  if (announced === undefined) return incoming.headers["transfer-encoding"] !== undefined;
  return Number(announced) > worthDraining;
}

/**
 * Ends a response whose request is still on its way. Closing a socket with unread bytes in it resets the connection, and
 * the reset can overtake the answer: so the answer goes out whole, by its content-length, the rest of the request is
 * thrown away for a moment, and the close comes after (RFC 9112 §9.6).
 */
function linger(incoming: IncomingMessage, response: ServerResponse): void {
  const end = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, lingerTime);
  incoming.once("end", end).once("close", end).on("error", end).resume();
}
