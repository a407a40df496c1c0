import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { A2AError } from "@parley/a2a";
import { BodyBytes, type BodyBudget, type BodyReader } from "@parley/a2a/protocol";

export function brokeOff(): A2AError {
  return new A2AError("InvalidRequest", "Request body broke off");
}

/** What is known of a body before it is read. */
export interface Announcement {
  /** Its `content-length`. */
  readonly length: string | undefined;
  /** What it shares its place with, where a connection carries many bodies at once. */
  readonly connection?: object;
  /** Called before the first byte is asked for. */
  readonly before?: () => void;
}

/** What is let go of once a body is read: its request, and who listens to it, live as long as the answer to it. */
interface Reading {
  readonly resolve: (text: string) => void;
  readonly reject: (error: A2AError) => void;
  readonly body: BodyBytes;
}

/** Reads a body as text; stops, and leaves the rest where it is, as soon as more than `limit` bytes came. */
export function readText(
  incoming: Readable,
  limit: number,
  budget: BodyBudget | undefined,
  { length, connection, before }: Announcement,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let begun = false;
    const stop = (error: A2AError): void => {
      reading?.body.leave();
      reading?.reject(error);
      reading = undefined;
    };
    const refuse = (error: A2AError): void => {
      incoming.off("data", onData).pause();
      stop(error);
    };
    const onData = (chunk: Buffer): void => {
      try {
        if (reading?.body.push(chunk) === false) incoming.pause();
      } catch (error) {
        refuse(error as A2AError);
      }
    };
    const onEnd = (): void => {
      if (reading !== undefined) finish(reading);
      reading = undefined;
    };
    const onBroken = (): void => {
      if (!incoming.readableEnded) stop(brokeOff());
    };
    const begin = (): void => {
      begun = true;
      before?.();
      incoming.on("data", onData);
    };
    const reader: BodyReader = {
      resume: () => {
        if (begun) incoming.resume();
        else begin();
      },
      refuse,
    };
    const announced = length === undefined || !/^\d+$/.test(length) ? undefined : Number(length);
    const body = new BodyBytes(limit, announced, budget?.enter(reader, connection));
    let reading: Reading | undefined = { resolve, reject, body };
    incoming.on("end", onEnd).on("error", onBroken).on("close", onBroken);
    try {
      if (body.begin()) begin();
    } catch (error) {
      stop(error as A2AError);
    }
  });
}

function finish({ resolve, reject, body }: Reading): void {
  const { buffer, byteOffset, byteLength } = body.take();
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  if (isUtf8(bytes)) resolve(withoutMark(bytes.toString("utf8")));
  else reject(new A2AError("ParseError", "Request body is not UTF-8"));
}

/** A byte order mark is no part of the text (RFC 8259 §8.1); `fetch` hosts drop it too. */
function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
