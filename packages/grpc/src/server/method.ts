import type { UniversalResponse } from "@parley/a2a/protocol";
import { beginFrame, endFrame } from "../frames.ts";
import { write } from "../protobuf/encode.ts";
import type { MessageType } from "../protobuf/types.ts";
import { Writer } from "../protobuf/writer.ts";
import type { Call } from "./call.ts";

/** Answers the calls of one method; rejects with what went wrong. */
export type Method = (call: Call) => Promise<UniversalResponse>;

export const ok: Readonly<Record<string, string>> = { "grpc-status": "0" };

/** Writes messages as frames, in a buffer that serves for all of them. */
export class FrameWriter {
  readonly #writer = new Writer(4096);

  /** Values as frames, one behind the other. */
  write(type: MessageType, values: readonly unknown[]): Uint8Array {
    const writer = this.#writer;
    writer.reset();
    for (const value of values) {
      const begun = beginFrame(writer);
      write(writer, type, value);
      endFrame(writer, begun);
    }
    // Node has a pool for small ones, and none for a Uint8Array of its own.
    const frames = Buffer.from(writer.written());
    // What a large one has made of the buffer is let go of.
    writer.reset();
    return frames;
  }
}
