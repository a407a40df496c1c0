import { mkdir, open, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path";
import type { Artifact, Part, StreamResponse, Task } from "@parley/a2a/internal/model/index";
import { A2AError, download, hasCode, type FileContent, type FileFetch } from "@parley/a2a/internal/client/index";
import { line } from "@parley/a2a/internal/base/display";
import { codeOf, CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";
import { extensionOf } from "./message.ts";
import { byteSize, maxLength } from "./output/text.ts";

/** Options for saving artifacts. */
export interface SaveOptions {
  /** A folder, or a file. Absent: nothing is saved. */
  readonly out?: string;
  /** Whether existing files are replaced. */
  readonly overwrite?: boolean;
  /** Downloads files that the agent links to. Absent: none. */
  readonly fetch?: FileFetch | undefined;
}

/** The destination of files: a folder, and a file name if the user chose it. */
interface Place {
  readonly folder: string;
  readonly name: string | undefined;
}

/** A path is a file if it exists as one, or has an extension. */
async function placeOf(io: Io, { out, overwrite = false }: SaveOptions & { readonly out: string }): Promise<Place> {
  const path = resolve(io.cwd, out);
  const found = await stat(path).catch(() => undefined);
  const isFolder = found?.isDirectory() ?? (/[/\\]$/.test(out) || extname(path) === "");
  if (isFolder) return { folder: path, name: undefined };
  // Checked before the message is sent: an answer that cannot be saved may be lost.
  if (found !== undefined && !overwrite)
    throw new UsageError(`${line(out)} already exists: pass another --out, or --overwrite`);
  return { folder: dirname(path), name: basename(path) };
}

/** Size of the content. A task may contain its text in fewer parts than its events did. */
function lengthOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { text }) => sum + (text?.length ?? 1), 0);
}

/** Saves the files of artifacts while they grow. A file is named `*.part` until it is complete. */
export class Saver {
  readonly #io: Io;
  readonly #place: Place;
  readonly #overwrite: boolean;
  readonly #reading: { readonly extensionOf: typeof extensionOf; readonly fetch?: FileFetch };
  readonly #note: (text: string) => void;
  readonly #growing = new Map<string, Growing>();
  /** Lengths of the artifacts so far. `artifact`: the content of a known one. */
  readonly #had = new Map<string, { readonly length: number; readonly artifact?: Artifact }>();
  /** Names that this run has written. */
  readonly #written = new Set<string>();
  #saved = 0;

  private constructor(io: Io, place: Place, { overwrite = false, fetch }: SaveOptions, note: (text: string) => void) {
    this.#io = io;
    this.#place = place;
    this.#overwrite = overwrite;
    this.#reading = { extensionOf, ...(fetch && { fetch }) };
    this.#note = note;
  }

  /**
   * @param note - Receives a line per file.
   * @throws UsageError if the file exists.
   */
  static async for(io: Io, options: SaveOptions, note: (text: string) => void): Promise<Saver | undefined> {
    const { out } = options;
    return out === undefined ? undefined : new Saver(io, await placeOf(io, { ...options, out }), options, note);
  }

  /** Records the artifacts of a known task: they are saved only if they grow. */
  know(task: Task): void {
    for (const artifact of task.artifacts ?? []) {
      this.#had.set(artifact.artifactId, { length: lengthOf(artifact.parts), artifact });
    }
  }

  /** Processes an event. Resolves once its bytes are written. */
  async take(event: StreamResponse): Promise<void> {
    const { task, statusUpdate, artifactUpdate } = event;
    for (const { artifactId, parts } of task?.artifacts ?? []) {
      if (this.#growing.has(artifactId) || this.#had.get(artifactId)?.length !== lengthOf(parts)) {
        await this.#push(artifactId, event, { length: lengthOf(parts) });
      }
    }
    // The task's state determines whether open files are complete.
    if (statusUpdate !== undefined) for (const growing of this.#growing.values()) await growing.push(event);
    if (artifactUpdate === undefined) return;
    const { artifact, append = false, lastChunk = false } = artifactUpdate;
    const { artifactId, parts } = artifact;
    if (append && !this.#growing.has(artifactId)) {
      const before = this.#had.get(artifactId);
      if (before?.artifact !== undefined) {
        const whole = {
          artifactUpdate: { ...artifactUpdate, artifact: before.artifact, append: false, lastChunk: false },
        };
        await this.#push(artifactId, whole, { length: before.length });
      }
    }
    await this.#push(artifactId, event, append ? { more: lengthOf(parts) } : { length: lengthOf(parts) });
    if (lastChunk) await this.#finish(artifactId);
  }

  async #push(artifactId: string, event: StreamResponse, count: { length: number } | { more: number }): Promise<void> {
    const found = this.#growing.get(artifactId);
    const growing = found ?? this.#begin(artifactId);
    growing.length = "more" in count ? growing.length + count.more : count.length;
    await growing.push(event);
    if (growing.error === undefined) return;
    this.#growing.delete(artifactId);
    if ("more" in count || found === undefined) throw toError(growing.error);
    // The agent replaced the content. The event has the whole artifact.
    await this.#push(artifactId, event, count);
  }

  #begin(artifactId: string): Growing {
    const growing = new Growing((events) =>
      this.#writeAll({ artifactId }, download(noClient, { events, artifactId }, this.#reading)),
    );
    this.#growing.set(artifactId, growing);
    return growing;
  }

  async #finish(artifactId: string): Promise<void> {
    const growing = this.#growing.get(artifactId);
    if (growing === undefined) return;
    this.#growing.delete(artifactId);
    this.#had.set(artifactId, { length: growing.length });
    await growing.end();
  }

  async save(artifact: Artifact): Promise<void> {
    await this.#writeAll(artifact, download(noClient, artifact, this.#reading));
  }

  /** Called after the last event. Saves complete files, and reports the others. */
  async end(): Promise<void> {
    for (const artifactId of Array.from(this.#growing.keys())) {
      try {
        await this.#finish(artifactId);
      } catch (error) {
        if (!hasCode(error, "InvalidResponse")) throw error;
        this.#note(`not saved: ${line(error.message)}`);
      }
    }
    const { folder, name } = this.#place;
    if (this.#saved === 0 && name !== undefined)
      this.#note(`the agent sent no file, so nothing was saved as ${this.#shown(join(folder, name))}`);
  }

  /** Called if the events broke off. Removes incomplete files. */
  async discard(): Promise<void> {
    for (const growing of this.#growing.values()) await growing.discard();
    this.#growing.clear();
  }

  async #writeAll(artifact: Pick<Artifact, "artifactId" | "name">, files: AsyncIterable<FileContent>): Promise<void> {
    for await (const file of files) {
      try {
        await this.#writeFile(file, artifact);
      } catch (error) {
        // A broken link must not prevent the other files from being saved.
        if (file.url === undefined || !(error instanceof A2AError)) throw error;
        this.#note(`not saved: ${line(file.name)} is at ${line(file.url, 4096)}: ${line(error.message)}`);
      }
    }
  }

  async #writeFile(file: FileContent, artifact: Pick<Artifact, "artifactId" | "name">): Promise<void> {
    const { folder } = this.#place;
    const name = this.#place.name ?? file.name;
    const part = new PartFile(folder);
    try {
      const size = await part.write(file.stream());
      const path = await this.#settle(part, name);
      this.#saved += 1;
      const what =
        file.mediaType === undefined ? byteSize(size) : `${line(file.mediaType, maxLength.name)}, ${byteSize(size)}`;
      this.#note(`saved ${this.#shown(path)} (${what})`);
    } catch (error) {
      await part.remove();
      if (!(error instanceof Error && "code" in error && "syscall" in error)) throw error;
      const named = line(artifact.name ?? artifact.artifactId, maxLength.name);
      throw new CommandError(`cannot save ${named} in ${folder}: ${fileReason(error)}`, { cause: error });
    }
  }

  /** Renames a file to its final name, with a number if the name is taken. Does not follow links. */
  async #settle(part: PartFile, name: string): Promise<string> {
    const { folder } = this.#place;
    const extension = extname(name);
    const stem = name.slice(0, name.length - extension.length);
    for (let count = 1; ; count += 1) {
      const own = count === 1 ? name : `${stem}-${count}${extension}`;
      const path = join(folder, own);
      const replaces = this.#overwrite && !this.#written.has(own);
      if (!replaces && !(await reserve(path))) continue;
      await rename(part.path, path);
      this.#written.add(own);
      return path;
    }
  }

  /** The path, relative to the working folder if it is inside. */
  #shown(path: string): string {
    const short = relative(this.#io.cwd, path);
    return short === "" || short.startsWith(`..${sep}`) ? path : short;
  }
}

/** Creates an empty file to reserve the name. `false`: the name is taken. */
async function reserve(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx")).close();
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** `download()` of known artifacts needs no client. */
const noClient = {
  subscribeToTask(): never {
    throw new Error("There is no client");
  },
  waitFor(): never {
    throw new Error("There is no client");
  },
};

/** A file that is being written. */
export class PartFile {
  readonly path: string;
  readonly #folder: string;
  #handle: FileHandle | undefined;

  constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, `.parley-${crypto.randomUUID()}.part`);
  }

  /** Writes all bytes. Returns how many there were. */
  async write(bytes: AsyncIterable<Uint8Array>): Promise<number> {
    await mkdir(this.#folder, { recursive: true });
    this.#handle = await open(this.path, "wx");
    let size = 0;
    for await (const piece of bytes) {
      // `write` may write only a part.
      await this.#handle.writeFile(piece);
      size += piece.byteLength;
    }
    await this.#handle.close();
    this.#handle = undefined;
    return size;
  }

  async remove(): Promise<void> {
    await this.#handle?.close().catch(() => {});
    // If its folder is not a folder, there is nothing to remove.
    await rm(this.path, { force: true }).catch(() => {});
  }
}

/** The events of one artifact, for a reader that pulls them. */
export class Growing {
  /** The error of the reader. */
  error: unknown;
  /** Size of the content so far. */
  length = 0;
  readonly #done: Promise<void>;
  #event: StreamResponse | undefined;
  #over: "ended" | "discarded" | undefined;
  /** Whether the reader has ended. */
  #closed = false;
  #given = (): void => {};
  #taken = (): void => {};

  constructor(read: (events: AsyncIterable<StreamResponse>) => Promise<void>) {
    this.#done = read(this.#events()).catch((error: unknown) => {
      this.error = error;
      this.#taken();
    });
  }

  /** Resolves once the reader asks for more, or has failed. */
  async push(event: StreamResponse): Promise<void> {
    if (this.error !== undefined || this.#closed) return;
    const taken = new Promise<void>((resolve) => (this.#taken = resolve));
    this.#event = event;
    this.#given();
    await taken;
    // The reader has ended or failed.
    if (this.#closed) await this.#done;
  }

  async end(): Promise<void> {
    await this.#stop("ended");
    if (this.error !== undefined) throw toError(this.error);
  }

  async discard(): Promise<void> {
    await this.#stop("discarded");
  }

  async #stop(how: "ended" | "discarded"): Promise<void> {
    this.#over = how;
    this.#given();
    await this.#done;
  }

  async *#events(): AsyncGenerator<StreamResponse, void, void> {
    try {
      yield* this.#pushed();
    } finally {
      this.#closed = true;
      this.#taken();
    }
  }

  async *#pushed(): AsyncGenerator<StreamResponse, void, void> {
    for (;;) {
      if (this.#event === undefined && this.#over === undefined)
        await new Promise<void>((resolve) => (this.#given = resolve));
      const event = this.#event;
      this.#event = undefined;
      if (event !== undefined) {
        yield event;
        this.#taken();
      } else if (this.#over === "discarded") throw new Discarded();
      else return;
    }
  }
}

class Discarded extends Error {}

function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
}
