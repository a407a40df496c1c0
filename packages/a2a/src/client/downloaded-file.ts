import { isLoopback, type Bytes } from "../base/index.ts";
import {
  continues,
  decoded,
  fetched,
  fileName,
  jsonFile,
  ReadableFile,
  streamOf,
  TextPieces,
} from "../files/content.ts";
import { A2AError, type Artifact, type Part } from "../model/index.ts";
import type { ByteStream, FileContent, FileFetch } from "../protocol/index.ts";
import type { FetchLike } from "../transport/client/binding.ts";

/* Presents the parts of artifacts as files that are read sequentially. */

interface DownloadedFiles {
  readonly maxBytes?: number;
  readonly fetch?: FileFetch;
  readonly extensionOf?: (mediaType: string) => string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** One change of an artifact's files. A part either starts a file or continues the previous file. */
export type Step = { readonly begins: Part; readonly name: string } | { readonly more: Part };

/** The files of parts, in order. */
export class Splitter {
  /** The name of files without a name. */
  readonly #fallbackName: string;
  #before: Part | undefined;

  constructor({ name, artifactId }: Pick<Artifact, "name" | "artifactId">) {
    this.#fallbackName = name || artifactId;
  }

  *push(parts: readonly Part[]): Generator<Step, void, void> {
    for (const part of parts) {
      if (this.#before === undefined || !continues(this.#before, part))
        yield { begins: part, name: this.#fallbackName };
      yield { more: part };
      // Keeps only the members that distinguish files, not the bytes.
      this.#before = {
        ...part,
        ...(part.raw !== undefined && { raw: "" }),
        ...(part.text !== undefined && { text: "" }),
      } as Part;
    }
  }
}

export async function* stepsOf(artifact: Artifact): AsyncGenerator<Step, void, void> {
  yield* new Splitter(artifact).push(artifact.parts);
}

/** The files of a download. When the caller requests the next file, unread bytes of the previous file are skipped. */
export async function* filesOf(
  steps: AsyncGenerator<Step, void, void>,
  options: DownloadedFiles,
): AsyncGenerator<FileContent, void, void> {
  let budget = options.maxBytes ?? Infinity;
  const take = (bytes: Bytes): Bytes => {
    budget -= bytes.byteLength;
    if (budget >= 0) return bytes;
    throw new A2AError("InvalidResponse", `The download is larger than maxBytes, ${options.maxBytes}`);
  };
  try {
    let step = await nextOf(steps);
    while (step !== undefined && "begins" in step) {
      const file: DownloadedFile = new DownloadedFile(step.begins, step.name, steps, options, take);
      yield file;
      step = await file.end();
    }
  } finally {
    await steps.return();
  }
}

async function nextOf(steps: AsyncGenerator<Step, void, void>): Promise<Step | undefined> {
  const next = await steps.next();
  return next.done === true ? undefined : next.value;
}

/** A file whose bytes are the next steps of a download. */
class DownloadedFile extends ReadableFile {
  readonly name: string;
  readonly mediaType: string | undefined;
  readonly size: undefined;
  readonly url: string | undefined;
  readonly #steps: AsyncGenerator<Step, void, void>;
  readonly #options: DownloadedFiles;
  readonly #count: (bytes: Bytes) => Bytes;
  #begun = false;
  #over = false;
  #next: Step | undefined;

  constructor(
    part: Part,
    fallbackName: string,
    steps: AsyncGenerator<Step, void, void>,
    options: DownloadedFiles,
    count: (bytes: Bytes) => Bytes,
  ) {
    super();
    this.name = fileName(part, fallbackName, options.extensionOf);
    this.mediaType = part.mediaType;
    this.url = part.url;
    this.#steps = steps;
    this.#options = options;
    this.#count = count;
  }

  stream(): ByteStream {
    return streamOf(() => this.#bytes());
  }

  /** Skips the unread bytes of the file. Returns the step after the file. */
  async end(): Promise<Step | undefined> {
    while (!this.#over) await this.#step();
    return this.#next;
  }

  async *#bytes(): AsyncGenerator<Bytes, void, void> {
    if (this.#begun || this.#over) throw new A2AError("UnsupportedOperation", "A file of a download is read once");
    this.#begun = true;
    const texts = new TextPieces();
    const { fetch, signal } = this.#options;
    for (let part = await this.#step(); part !== undefined; part = await this.#step()) {
      const pieces =
        part.raw !== undefined
          ? decoded(part.raw)
          : part.text !== undefined
            ? texts.push(part.text)
            : part.url !== undefined
              ? fetched(part.url, this.name, fetch, signal)
              : [jsonFile(part.data)];
      for await (const piece of pieces) yield this.#count(piece);
    }
    const rest = texts.end();
    if (rest.byteLength > 0) yield this.#count(rest);
  }

  /** The next part of the file; `undefined` after the last part. */
  async #step(): Promise<Part | undefined> {
    if (this.#over) return undefined;
    const next = await nextOf(this.#steps);
    if (next !== undefined && "more" in next) return next.more;
    this.#over = true;
    this.#next = next;
    return undefined;
  }
}

/**
 * Makes `Client.fileFetch()`. `own` returns the agent's URLs that the user named. Links to these origins are
 * fetched, because calls reach these origins anyway.
 */
export function fileFetching(
  fetch: FetchLike,
  own: () => readonly (string | undefined)[],
): (other?: FileFetch) => FileFetch {
  return (other) => (url, init) => {
    if (own().some((each) => each !== undefined && isSameOrigin(each, url))) {
      const { signal = new AbortController().signal } = init;
      // Sent without credentials, because the link itself grants access. Redirects are not followed, because they could lead anywhere.
      return fetch(url, { method: "GET", headers: {}, signal, redirect: "manual" });
    }
    if (other !== undefined) return other(url, init);
    const why = "The file is not at the agent's own origin: pass a fetch that may read it, such as guardedFetch()";
    throw new A2AError("UnsupportedOperation", `${why}; its URL is ${url}`, { metadata: { url } });
  };
}

/** Whether both URLs have the same origin. Treats all loopback names as equal, because a card may have `localhost` for the user's `127.0.0.1`. */
function isSameOrigin(one: string, other: string): boolean {
  if (!URL.canParse(one) || !URL.canParse(other)) return false;
  const [left, right] = [new URL(one), new URL(other)];
  if (!/^https?:$/.test(left.protocol) || left.protocol !== right.protocol || left.port !== right.port) return false;
  return left.hostname === right.hostname || (isLoopback(left.hostname) && isLoopback(right.hostname));
}
