import type { Sink } from "@parley/a2a/protocol";
import { compressFrames } from "./compression.ts";
import type { Deadline } from "./deadline.ts";

/** Where the frames of a call go until its caller leaves or its deadline passes. */
export class CallSink {
  readonly #sink: Sink;
  readonly #deadline: Deadline | undefined;
  readonly #compresses: boolean;

  constructor(sink: Sink, deadline: Deadline | undefined, compresses: boolean) {
    this.#sink = sink;
    this.#deadline = deadline;
    this.#compresses = compresses;
  }

  /** Whether what is written goes nowhere. */
  get closed(): boolean {
    return this.#sink.closed || this.#deadline?.error !== undefined;
  }

  /** Calls `run` when it closes; at once when it has. It may be called twice. */
  onClose(run: () => void): void {
    this.#sink.onClose(run);
    void this.#deadline?.passed.then(run);
  }

  /** Sends frames; a promise where they are compressed, or where the caller has to catch up before it is sent more. */
  write(frames: Uint8Array): Promise<void> | undefined {
    if (this.#compresses) return this.#writeCompressed(frames);
    return this.closed || this.#sink.write(frames) ? undefined : this.#ready();
  }

  async #writeCompressed(frames: Uint8Array): Promise<void> {
    const bytes = await compressFrames(frames);
    if (!this.closed && !this.#sink.write(bytes)) await this.#ready();
  }

  #ready(): Promise<void> {
    const ready = this.#sink.ready();
    return this.#deadline === undefined ? ready : Promise.race([ready, this.#deadline.passed.then(() => undefined)]);
  }
}
