import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { A2AError } from "@parley/a2a";

export function tooLarge(limit: number): A2AError {
  return new A2AError("RequestTooLarge", `Request body larger than ${limit} bytes`);
}

export function brokeOff(): A2AError {
  return new A2AError("InvalidRequest", "Request body broke off");
}

/** What is let go of once a body is read: its request, and who listens to it, live as long as the answer to it. */
interface Reading {
  readonly resolve: (text: string) => void;
  readonly reject: (error: A2AError) => void;
  readonly chunks: Buffer[];
  size: number;
}

/** Reads a body as text; stops, and leaves the rest where it is, as soon as more than `limit` bytes came. */
export function readText(incoming: Readable, limit: number): Promise<string> {
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
      if (!incoming.readableEnded) reading?.reject(brokeOff());
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
