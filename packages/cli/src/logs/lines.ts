import { open, stat, type FileHandle } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { fileReason } from "../files.ts";
import type { Io } from "../io.ts";

/* Sources of log lines: standard input, and files that may grow. */

/** Maximum number of bytes to keep of a line. */
export const maxLineBytes: number = 1 << 20;

/** A line without its line end. */
export interface Line {
  readonly text: string;
  /** Number of omitted bytes. */
  readonly leftOut: number;
}

/** Splits bytes into lines. It holds at most one line, up to the limit. */
class Splitter {
  #held = Buffer.alloc(4096);
  #length = 0;
  #leftOut = 0;

  /** The lines that end in these bytes. Read all of them before the next bytes. */
  *push(bytes: Uint8Array): Generator<Line> {
    let from = 0;
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, from)) {
      this.#hold(bytes.subarray(from, at));
      from = at + 1;
      yield this.#take();
    }
    this.#hold(bytes.subarray(from));
  }

  /** The last line, if it has no line break. */
  *end(): Generator<Line> {
    if (this.#length > 0 || this.#leftOut > 0) yield this.#take();
  }

  #hold(piece: Uint8Array): void {
    const kept = piece.subarray(0, maxLineBytes - this.#length);
    const length = this.#length + kept.length;
    if (length > this.#held.length) {
      const larger = Buffer.alloc(Math.min(maxLineBytes, Math.max(length, 2 * this.#held.length)));
      this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    this.#held.set(kept, this.#length);
    this.#length = length;
    this.#leftOut += piece.length - kept.length;
  }

  #take(): Line {
    const text = this.#held.toString("utf8", 0, this.#length);
    const line = { text: text.endsWith("\r") ? text.slice(0, -1) : text, leftOut: this.#leftOut };
    this.#length = this.#leftOut = 0;
    return line;
  }
}

/** A source of lines. */
export interface Source {
  /** The next line; `undefined` if none is available yet. */
  next(): Promise<Line | undefined>;
  close(): Promise<void>;
}

/** Lines of standard input, until it ends. */
export function streamSource(stdin: Io["stdin"]): Source {
  async function* read(): AsyncGenerator<Line, undefined> {
    const splitter = new Splitter();
    for await (const piece of stdin) yield* splitter.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    yield* splitter.end();
    return undefined;
  }
  const lines = read();
  return {
    next: async () => (await lines.next()).value,
    close: async () => {},
  };
}

/** Lines of a file. Throws UsageError if it cannot be read. With `follow`, it continues in the file that replaces it. */
export async function fileSource(file: string, { cwd }: Pick<Io, "cwd">, follow: boolean): Promise<Source> {
  const unreadable = (cause: unknown): never => {
    throw new UsageError(`cannot read ${file}: ${fileReason(cause)}`, { cause });
  };
  const path = resolve(cwd, file);
  const handle = await open(path).catch(unreadable);
  const source = new FileSource(path, handle, follow);
  return { next: () => source.next().catch(unreadable), close: () => source.close() };
}

class FileSource implements Source {
  readonly #path: string;
  readonly #follow: boolean;
  readonly #buffer = Buffer.alloc(1 << 16);
  #handle: FileHandle;
  #splitter = new Splitter();
  #lines: Iterator<Line, unknown>;
  /** Bytes of the file that were read. */
  #position = 0;
  /** Whether the path now names another file. The rest of this file is read first. */
  #isReplaced = false;

  constructor(path: string, handle: FileHandle, follow: boolean) {
    this.#path = path;
    this.#handle = handle;
    this.#follow = follow;
    this.#lines = this.#splitter.end();
  }

  async next(): Promise<Line | undefined> {
    for (;;) {
      const { value, done } = this.#lines.next();
      if (done !== true) return value;
      const { bytesRead } = await this.#handle.read(this.#buffer, 0, this.#buffer.length, null);
      this.#position += bytesRead;
      if (bytesRead > 0) {
        this.#lines = this.#splitter.push(this.#buffer.subarray(0, bytesRead));
      } else if (this.#isReplaced) {
        if (!(await this.#reopen())) return undefined;
      } else if (!this.#follow) {
        this.#lines = this.#splitter.end();
        const last = this.#lines.next();
        return last.done === true ? undefined : last.value;
      } else if (await this.#wasReplaced()) {
        // Lines may have been written to it after the read.
        this.#isReplaced = true;
      } else {
        return undefined;
      }
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** Whether the path names another file, or this one was truncated. A path without a file counts as unchanged: it will get one later. */
  async #wasReplaced(): Promise<boolean> {
    const [own, now] = await Promise.all([this.#handle.stat(), stat(this.#path).catch(() => undefined)]);
    if (now === undefined || !own.isFile()) return false;
    return now.ino !== own.ino || now.dev !== own.dev || now.size < this.#position;
  }

  async #reopen(): Promise<boolean> {
    const handle = await open(this.#path).catch(() => undefined);
    if (handle === undefined) return false;
    await this.#handle.close();
    this.#handle = handle;
    this.#position = 0;
    this.#isReplaced = false;
    const last = this.#splitter.end();
    this.#splitter = new Splitter();
    this.#lines = last;
    return true;
  }
}
