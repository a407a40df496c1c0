import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  check,
  contentAfter,
  contentLength,
  type Artifact,
  type Part,
  type Task,
  type TaskArtifactUpdateEvent,
} from "@parley/a2a/internal/model/index";
import { id } from "@parley/a2a/internal/model/schema";
import type { ArtifactEvent, DelegateOptions, OpenDelegation } from "@parley/a2a/internal/protocol/index";
import { CallFailed } from "./calls.ts";

/** Maximum counted artifacts, and bytes of their counts as JSON, because a row is small. Beyond these limits, a restart may resend an artifact. */
const maxCountedArtifacts = 200;
const maxCountedBytes = 12 << 10;

/** Converts a length to its negative mark for a complete artifact, and back. */
function complete(count: number): number {
  return -count - 1;
}

/** Tracks how much of the other agent's artifacts this task has copied, and keeps their parts up to `resultBytes`. */
export class DelegatedArtifacts {
  readonly #options: DelegateOptions;
  readonly #number: number;
  readonly #limit: number;
  /**
   * The copied `contentLength` of each artifact. Counts content, not parts, because a task merges the text parts of its events. `NaN`:
   * unknown. Negative: complete (`complete`).
   */
  readonly #taken: Map<string, number>;
  /** Absent if it is too large, or began before a restart. */
  #content: Map<string, Artifact & { readonly parts: Part[] }> | undefined;
  #bytes: number;

  constructor(options: DelegateOptions, { number, content, bytes = 0 }: OpenDelegation) {
    this.#options = options;
    this.#number = number;
    this.#limit = options.resultBytes ?? 1 << 20;
    this.#taken = new Map(Object.entries(content ?? {}));
    this.#bytes = bytes;
    if (bytes === 0) this.#content = new Map();
  }

  /** Stored with the task. */
  get row(): Pick<OpenDelegation, "content" | "bytes"> {
    if (this.#bytes === 0) return {};
    if (this.#taken.size > maxCountedArtifacts) return { bytes: this.#bytes };
    const content = Object.fromEntries([...this.#taken].filter(([, count]) => !Number.isNaN(count)));
    const fits = utf8Length(JSON.stringify(content)) <= maxCountedBytes;
    return { bytes: this.#bytes, ...(fits && { content }) };
  }

  /** Size in bytes of JSON. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the artifacts are too large for the result. */
  get isLarge(): boolean {
    return this.#bytes > this.#limit;
  }

  /** `undefined` if the artifacts are not in memory. */
  get whole(): readonly Artifact[] | undefined {
    return this.#content && [...this.#content.values()];
  }

  /** Takes a chunk. Returns the event of this task, if any. */
  chunk({ artifact, append = false, lastChunk = false }: TaskArtifactUpdateEvent): ArtifactEvent | undefined {
    const { artifactId } = artifact;
    const before = this.#taken.get(artifactId);
    // An append to a complete or unknown artifact starts the artifact anew, because other servers mean that.
    const appends = append && (before === undefined ? this.#content === undefined : !(before < 0));
    const added = contentLength(artifact.parts);
    const count = appends ? (before ?? Number.NaN) + added : added;
    return this.#take(artifact, appends, lastChunk, count);
  }

  /** Copies the content of a task's artifacts that was not copied yet. */
  *snapshot({ artifacts = [] }: Task, isOver: boolean): Generator<ArtifactEvent, void, void> {
    for (const artifact of artifacts) {
      const before = this.#taken.get(artifact.artifactId);
      const count = contentLength(artifact.parts);
      const taken = before === undefined ? Number.NaN : before < 0 ? complete(before) : before;
      if (taken === count && (!isOver || (before ?? 0) < 0 || count === 0)) continue;
      const appends = taken <= count && (before ?? -1) >= 0;
      const parts = appends ? contentAfter(artifact.parts, taken) : artifact.parts;
      // At the end, perhaps only an artifact's completion is left to report, but an event needs at least one part.
      if (parts.length === 0) continue;
      const event = this.#take({ ...artifact, parts }, appends, isOver, count);
      if (event !== undefined) yield event;
    }
  }

  /** Throws `CallFailed` if the artifact's id cannot be stored. The delegation then fails, but not the delegating agent. */
  #take(artifact: Artifact, append: boolean, lastChunk: boolean, count: number): ArtifactEvent | undefined {
    const artifactId = `d${this.#number}-${artifact.artifactId}`;
    const checked = check(id, artifactId, "copy");
    if (!checked.ok) {
      const [violation] = checked.violations;
      const what = `The id of an artifact of the other agent ${violation?.description ?? "is not valid"}`;
      throw new CallFailed(new A2AError("InvalidResponse", what));
    }
    this.#taken.set(artifact.artifactId, lastChunk ? complete(count) : count);
    this.#hold(artifact, append);
    const { artifacts } = this.#options;
    if (artifacts === false) return undefined;
    const mapped = artifacts === undefined ? artifact : artifacts(artifact);
    if (mapped === undefined) return undefined;
    return {
      kind: "artifact",
      artifact: { ...mapped, artifactId },
      ...(append && { append }),
      ...(lastChunk && { lastChunk }),
    };
  }

  #hold({ parts, ...artifact }: Artifact, append: boolean): void {
    const content = this.#content;
    const before = content?.get(artifact.artifactId);
    this.#bytes += JSON.stringify(parts).length;
    if (content === undefined) return;
    if (this.isLarge) this.#content = undefined;
    else if (append && before !== undefined) before.parts.push(...parts);
    else content.set(artifact.artifactId, { ...artifact, parts: [...parts] });
  }
}
