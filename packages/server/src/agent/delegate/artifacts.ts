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

/**
 * How many artifacts are counted, and how many bytes of JSON that takes: their ids may be long, and a row is small. A task with more of
 * them is taken over as well; after a restart, an artifact may be replaced by itself.
 */
const maxCountedArtifacts = 200;
const maxCountedBytes = 12 << 10;

/** The number of an artifact that is complete, from its length, and the other way round. It is negative. */
function complete(count: number): number {
  return -count - 1;
}

/** How much of an agent's artifacts was taken over, and the parts themselves as far as the result may hold them. */
export class DelegatedArtifacts {
  readonly #options: DelegateOptions;
  readonly #number: number;
  readonly #limit: number;
  /**
   * `contentLength` of what was taken over, since a task that is read has its texts in fewer parts than its events. `NaN`: it is not known.
   * The artifact is complete: the same as `complete` makes it.
   */
  readonly #taken: Map<string, number>;
  /** The content. Absent if it is too large, or began before a restart. */
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

  /** What is kept with the task. */
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

  /** Whether they are larger than the result may be. */
  get isLarge(): boolean {
    return this.#bytes > this.#limit;
  }

  /** The artifacts. `undefined` if they are not in memory. */
  get whole(): readonly Artifact[] | undefined {
    return this.#content && [...this.#content.values()];
  }

  /** Takes a chunk. Returns the event of this task, if there is one. */
  chunk({ artifact, append = false, lastChunk = false }: TaskArtifactUpdateEvent): ArtifactEvent | undefined {
    const { artifactId } = artifact;
    const before = this.#taken.get(artifactId);
    // An append to an artifact that is complete, or that never began, is taken as its beginning, as other servers mean it.
    const appends = append && (before === undefined ? this.#content === undefined : !(before < 0));
    const added = contentLength(artifact.parts);
    const count = appends ? (before ?? Number.NaN) + added : added;
    return this.#take(artifact, appends, lastChunk, count);
  }

  /** Takes what the artifacts of a task have beyond what was taken. */
  *snapshot({ artifacts = [] }: Task, isOver: boolean): Generator<ArtifactEvent, void, void> {
    for (const artifact of artifacts) {
      const before = this.#taken.get(artifact.artifactId);
      const count = contentLength(artifact.parts);
      const taken = before === undefined ? Number.NaN : before < 0 ? complete(before) : before;
      if (taken === count && (!isOver || (before ?? 0) < 0 || count === 0)) continue;
      const appends = taken <= count && (before ?? -1) >= 0;
      const parts = appends ? contentAfter(artifact.parts, taken) : artifact.parts;
      // A task that is over says of an open artifact only that it is complete: an event has at least one part.
      if (parts.length === 0) continue;
      const event = this.#take({ ...artifact, parts }, appends, isOver, count);
      if (event !== undefined) yield event;
    }
  }

  /** @throws CallFailed if no store keeps its id: the delegation fails then, and not the agent that asked. */
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
