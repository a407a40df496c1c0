import {
  A2AError,
  contentAfter,
  contentLength,
  hasCode,
  invalidParams,
  isInterrupted,
  isTerminal,
  type Artifact,
  type Part,
  type StreamResponse,
  type Task,
  type TaskState,
} from "../model/index.ts";
import type { FileContent, FileFetch } from "../protocol/index.ts";
import { filesOf, Splitter, stepsOf, type Step } from "./downloaded-file.ts";
import type { CallOptions, SubscribeOptions } from "./requests.ts";
import type { EventStream } from "./stream.ts";

/** The content to download: a received artifact, or one or all artifacts of a task or of a stream. */
export type Downloadable =
  | Artifact
  | {
      /** The task. */
      readonly taskId: string;
      /** The artifact. If absent, all artifacts of the task are read, one after the other. */
      readonly artifactId?: string;
    }
  | {
      /** All events of a task, such as `client.sendStreamingMessage("Report")`. */
      readonly events: AsyncIterable<StreamResponse>;
      /** The artifact. If absent, all artifacts are read. They must not grow concurrently, because events can only be read once. */
      readonly artifactId?: string;
    };

/** Options of a download. */
export interface DownloadOptions extends Omit<CallOptions, "timeout"> {
  /** Maximum total size of all files, in bytes. Beyond this size, the download fails with `InvalidResponse`. Default: no limit. */
  readonly maxBytes?: number;
  /**
   * Reads files whose URL has another origin than the agent. The address is untrusted, so pass `guardedFetch()` of `@parley/a2a/protocol`,
   * which rejects addresses of internal networks. Default: such files are listed, but reading them throws.
   */
  readonly fetch?: FileFetch;
  /** The extension of a media type, without its dot, for files that have no name. Default: `txt`, `json` and `bin`, and `md`. */
  readonly extensionOf?: (mediaType: string) => string | undefined;
}

/** The members of a client that `download()` needs. A `Client` has them. */
export interface DownloadClient {
  /** Follows a task. */
  subscribeToTask(taskId: string, options?: SubscribeOptions): EventStream;
  /** Waits for a task of an agent that does not stream. */
  waitFor(taskId: string, options?: CallOptions): Promise<Task>;
  /** A fetch for files at the agent's own origin. `other` reads all other files. */
  fileFetch?(other?: FileFetch): FileFetch | undefined;
}

/**
 * The files of an artifact, or of all artifacts of a task. Chunks are joined, so a file is a stream of bytes as they arrive, even
 * while the task still runs, and is never in memory as a whole. Broken connections are reopened, and no byte is lost or repeated.
 * Read a file before you request the next, because unread bytes are skipped. Text is one file, and each data part is a JSON file.
 *
 * @throws A2AError while it is read: `InvalidParams` if the task has no such artifact, `InvalidResponse` if the task fails before
 * the file is complete, the agent replaces bytes that were read, or `maxBytes` is exceeded; `TaskNotFound`, and the errors of any call.
 *
 * @example
 * ```ts
 * for await (const file of download(client, { taskId: "task-1" })) {
 *   for await (const bytes of file.stream()) console.log(file.name, bytes.length);
 * }
 * ```
 */
export async function* download(
  client: DownloadClient,
  what: Downloadable,
  given: DownloadOptions = {},
): AsyncGenerator<FileContent, void, void> {
  const fetch = client.fileFetch ? client.fileFetch(given.fetch) : given.fetch;
  const options: DownloadOptions = { ...given, ...(fetch && { fetch }) };
  if ("parts" in what) {
    yield* filesOf(stepsOf(what), options);
    return;
  }
  const { artifactId } = what;
  const had = new Set<string>();
  // Artifacts may grow concurrently, so each pass over the task's events reads those that do not overlap.
  for (let more = true; more;) {
    const events = "events" in what ? what.events : eventsOf(client, what.taskId, options);
    const pass = new Pass(events, artifactId, had);
    yield* filesOf(pass.steps(), options);
    more = pass.hasMore;
    if (more && "events" in what)
      throw new A2AError("UnsupportedOperation", "Several artifacts grow at the same time: pass the id of one");
  }
  if (artifactId !== undefined && !had.has(artifactId))
    throw invalidParams([{ field: "artifactId", description: "names no artifact of this task" }]);
}

/**
 * The events of a task, from the first event if the server can replay, because a task event would contain whole files. If the agent does
 * not stream, yields the task once it is terminal or waits for its user.
 */
async function* eventsOf(
  client: DownloadClient,
  taskId: string,
  { maxBytes: _, fetch: __, extensionOf: ___, ...call }: DownloadOptions,
): AsyncGenerator<StreamResponse, void, void> {
  const events = client.subscribeToTask(taskId, { ...call, timeout: false, after: 0 });
  if (await isStreamed(events)) yield* events;
  else yield { task: await client.waitFor(taskId, { ...call, timeout: false }) };
}

class Pass {
  readonly #events: AsyncIterable<StreamResponse>;
  readonly #wanted: string | undefined;
  /** Artifacts that this pass or an earlier pass has read. */
  readonly #had: Set<string>;
  /** Artifacts that began while another artifact was being read. */
  readonly #overlapped = new Set<string>();
  #current: Open | undefined;

  constructor(events: AsyncIterable<StreamResponse>, wanted: string | undefined, had: Set<string>) {
    this.#events = events;
    this.#wanted = wanted;
    this.#had = had;
  }

  /** Whether another pass is needed to read the remaining artifacts. */
  get hasMore(): boolean {
    return this.#overlapped.size > 0;
  }

  async *steps(): AsyncGenerator<Step, void, void> {
    let state: TaskState | undefined;
    for await (const { task, statusUpdate, artifactUpdate } of this.#events) {
      state = task?.status.state ?? statusUpdate?.status.state ?? state;
      const over = state !== undefined && isTerminal(state);
      for (const artifact of task?.artifacts ?? []) yield* this.#take(artifact, false, over);
      if (artifactUpdate !== undefined) {
        const { artifact, append = false, lastChunk = false } = artifactUpdate;
        yield* this.#take(artifact, append, lastChunk);
      }
      if (this.#wanted !== undefined && this.#current === undefined && this.#had.has(this.#wanted)) return;
    }
    // A task that waits for its user has delivered all artifacts so far.
    const waits = state !== undefined && (state === "TASK_STATE_COMPLETED" || isInterrupted(state));
    if (this.#current !== undefined && !waits) throw incomplete(this.#current, state);
  }

  *#take(artifact: Artifact, append: boolean, last: boolean): Generator<Step, void, void> {
    const { artifactId } = artifact;
    if (this.#wanted !== undefined && this.#wanted !== artifactId) return;
    // The next pass reads artifacts that began while this pass read another artifact.
    if (this.#current === undefined && !this.#had.has(artifactId) && !this.#overlapped.has(artifactId)) {
      this.#current = new Open(artifact);
      this.#had.add(artifactId);
    }
    const current = this.#current;
    if (current?.artifactId !== artifactId) {
      if (!this.#had.has(artifactId)) this.#overlapped.add(artifactId);
      return;
    }
    yield* current.take(artifact, append);
    if (last) this.#current = undefined;
  }
}

async function isStreamed(events: EventStream): Promise<boolean> {
  try {
    await events.opened();
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "UnsupportedOperation")) return false;
    throw thrown;
  }
}

function incomplete({ artifactId }: Open, state: TaskState | undefined): A2AError {
  const why = `The task ended in ${state ?? "no state"} before artifact ${JSON.stringify(artifactId)} was complete`;
  return new A2AError("InvalidResponse", why);
}

class Open {
  readonly artifactId: string;
  readonly #splitter: Splitter;
  /** Length and hash of the content read so far, to recognize repeated content. */
  #length = 0;
  #mark = 0x811c9dc5;

  constructor(artifact: Artifact) {
    this.artifactId = artifact.artifactId;
    this.#splitter = new Splitter(artifact);
  }

  *take({ parts }: Artifact, append: boolean): Generator<Step, void, void> {
    // After a reconnection or a resumed run, an artifact is sent again from its start.
    // Texts of the artifact may then be split into different parts, because servers merge parts when a task is read.
    const rest = append ? parts : contentAfter(parts, this.#length);
    if (!append && this.#length > 0 && markOfFirst(parts, this.#length) !== this.#mark) {
      const why = `The agent has replaced artifact ${JSON.stringify(this.artifactId)} while it was read`;
      throw new A2AError("InvalidResponse", `${why}: download it again`);
    }
    for (const part of rest) {
      this.#length += contentLength([part]);
      this.#mark = markOf(part, this.#mark);
      yield* this.#splitter.push([part]);
    }
  }
}

/** The hash of the first `length` units of the content; `undefined` if there is less content. */
function markOfFirst(parts: readonly Part[], length: number): number | undefined {
  let left = length;
  let mark = 0x811c9dc5;
  for (const part of parts) {
    if (left === 0) break;
    const own = contentLength([part]);
    mark = markOf(own > left && part.text !== undefined ? { text: part.text.slice(0, left) } : part, mark);
    left -= Math.min(own, left);
  }
  return left === 0 ? mark : undefined;
}

/** FNV-1a over the content, continuing from `before`. The hash distinguishes repetitions from replacements, and is not cryptographic. */
function markOf({ text, raw, url, data }: Part, before: number): number {
  const content = text ?? raw ?? url ?? JSON.stringify(data);
  let hash = before;
  for (let at = 0; at < content.length; at += 1) hash = Math.imul(hash ^ content.charCodeAt(at), 0x01000193);
  return hash;
}
