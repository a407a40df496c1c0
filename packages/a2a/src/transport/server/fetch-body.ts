import { deferred } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import type { BodyReader, ByteFlow, ByteReader } from "../../protocol/index.ts";

/* The body of a request of the Fetch API. */

/** Reads the pieces of a body, as fast as the budget allows. */
export class BodySource implements BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #room = deferred<void>();
  #refusal: A2AError | undefined;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** The next piece, `undefined` after the last one. */
  async read(): Promise<Uint8Array | undefined> {
    const { done, value } = await this.#reader.read().catch((cause: unknown) => {
      throw new A2AError("InvalidRequest", "The request body broke off", { cause });
    });
    if (this.#refusal !== undefined) throw this.#refusal;
    return done ? undefined : value;
  }

  async room(): Promise<void> {
    await this.#room.promise;
    this.#room = deferred();
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  resume(): void {
    this.#room.resolve();
  }

  refuse(error: A2AError): void {
    this.#refusal = error;
    this.#room.resolve();
    // Ends a pending read of a slow sender.
    this.close();
  }

  /** Discards the rest of the body. An error of that has no consequence. */
  close(): void {
    this.#reader.cancel().catch(() => undefined);
  }
}

/** Passes the pieces of a body on, while they are wanted. */
export class PieceFlow implements ByteFlow {
  readonly #source: BodySource | undefined;
  readonly #reader: ByteReader;
  #wanted = false;
  #reading = false;
  #over = false;

  constructor(source: BodySource | undefined, reader: ByteReader) {
    this.#source = source;
    this.#reader = reader;
  }

  pause(): void {
    this.#wanted = false;
  }

  resume(): void {
    this.#wanted = true;
    if (!this.#reading && !this.#over) void this.#read();
  }

  /** A runtime would go on receiving what nobody reads. */
  close(): void {
    this.#over = true;
    this.#source?.close();
  }

  async #read(): Promise<void> {
    this.#reading = true;
    try {
      while (this.#wanted) {
        const piece = await this.#source?.read();
        this.#over = piece === undefined;
        if (piece !== undefined) this.#reader.chunk(piece);
        else {
          this.#reader.end();
          return;
        }
      }
    } catch {
      this.#over = true;
      this.#reader.gone();
    } finally {
      this.#reading = false;
    }
  }
}
