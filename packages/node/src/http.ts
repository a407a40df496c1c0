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
  return (incoming, response) => {
    void answer(handle, new NodeRequest(incoming, response), incoming, response, options);
  };
}

/** How long the rest of a refused request is still read and thrown away, in milliseconds. */
const lingerTime = 2_000;

/** The longest unread request body that is worth reading to keep a connection. */
const worthDraining = 64 * 1024;

/** Has `request` answered by `handle`, and writes the answer. Resolves when it was handed to the socket; never rejects. */
export async function answer(
  handle: UniversalHandler,
  request: UniversalRequest,
  incoming: IncomingMessage,
  response: ServerResponse,
  options: HttpOptions,
): Promise<void> {
  const { logger = silentLogger, stallTimeout = 30_000 } = options;
  try {
    const { status, headers, body } = await handle(request);
    if (typeof body === "function") {
      await stream(incoming, response, status, headers, body, stallTimeout);
    } else {
      send(incoming, response, status, headers, body);
      // What the kernel did not take at once hangs on a reader who may never read it.
      if (response.writableLength > 0) closeWhenStalled(response, stallTimeout);
    }
  } catch (cause) {
    logger.error("A request could not be answered", { method: request.method, url: request.url, cause });
    if (response.headersSent) response.destroy();
    else send(incoming, response, 500, { "content-type": "application/json" }, internalError);
  }
}

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
  const complete = noBody ? headers : { ...headers, "content-length": Buffer.byteLength(body ?? "") };
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

async function stream(
  incoming: IncomingMessage,
  response: ServerResponse,
  status: number,
  headers: UniversalResponse["headers"],
  body: BodyWriter,
  stallTimeout: number,
): Promise<void> {
  response.writeHead(status, headers);
  closeWhenStalled(response, stallTimeout);
  const sink = new ResponseSink(incoming, response);
  const written = body(sink);
  // After the writer's first words, so that they share a packet with the headers.
  response.flushHeaders();
  await written;
  response.end();
}
