import type { Readable } from "node:stream";
import { A2AError, type Handler } from "@parley/a2a";
import type { Exchange } from "./exchange.ts";

/** What a mount needs of a handler that `createHandler` made. */
export type MountedHandler = Pick<Handler, "handle" | "answers">;

/** The same exchange, where a framework's parser may have read the body before, and left it as `body`. */
export function withParsedBody(exchange: Exchange, incoming: Readable, body: unknown): Exchange {
  if (!incoming.readableDidRead) return exchange;
  exchange.text = async (limit) => {
    const text = textOf(body);
    if (Buffer.byteLength(text) > limit) throw new A2AError("RequestTooLarge");
    return text;
  };
  return exchange;
}

function textOf(body: unknown): string {
  if (typeof body === "string") return body;
  if (Buffer.isBuffer(body)) return body.toString("utf8");
  if (body === undefined) throw new Error("The request body was read before, and not kept: mount the agents first");
  try {
    return JSON.stringify(body);
  } catch (cause) {
    // Parsers take any depth, but what is nested by the thousands cannot be written again.
    throw new A2AError("InvalidRequest", "The request body is nested too deeply", { cause });
  }
}
