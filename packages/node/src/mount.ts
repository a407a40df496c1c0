import type { IncomingMessage, ServerResponse } from "node:http";
import { A2AError, type Handler } from "@parley/a2a";
import { NodeRequest } from "./request.ts";

/** What a mount needs of a handler that `createHandler` made. */
export type MountedHandler = Pick<Handler, "handle" | "answers">;

/** A request whose body a framework's parser may have read before. */
export class MountRequest extends NodeRequest {
  readonly #incoming: IncomingMessage;
  readonly #body: unknown;

  /** `url` with the prefix that a framework takes away, and `body` as its parser left it. */
  constructor(incoming: IncomingMessage, response: ServerResponse, url: string | undefined, body: unknown) {
    super(incoming, response, url);
    this.#incoming = incoming;
    this.#body = body;
  }

  override async text(limit: number): Promise<string> {
    if (!this.#incoming.readableDidRead) return super.text(limit);
    const text = textOf(this.#body);
    if (Buffer.byteLength(text) > limit) throw new A2AError("RequestTooLarge");
    return text;
  }
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
