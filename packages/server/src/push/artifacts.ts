import {
  TaskFold,
  type Artifact,
  type LogRecord,
  type TaskArtifactUpdateEvent,
} from "@parley/a2a/internal/model/index";
import { recordBytes, roomless, type Room, type Store, type TaskKey } from "../store/index.ts";
import type { StoredConfig } from "./stored.ts";
import { updateJson } from "../store/json.ts";

/* Artifacts that come in chunks: the last chunk sends the whole artifact. */

/** Artifacts whose beginnings are remembered. Of more, only the oldest one is known. */
const maxOpen = 1000;

/**
 * Where the oldest artifact begins that may be incomplete, so that its chunks are not searched for in the whole log. The result may be too
 * early, and is never too late.
 */
export class OpenArtifacts {
  /** Artifacts that began since the cursor, and are not complete: the `seq` before each. */
  readonly #begun = new Map<string, number>();
  /** The beginning of those before the cursor. */
  #before: number;
  #mayHaveBefore: boolean;

  constructor({ cursor, chunks = 0 }: Pick<StoredConfig, "cursor" | "chunks">) {
    this.#before = chunks;
    this.#mayHaveBefore = chunks < cursor;
  }

  /** The position after one more record. */
  note(record: LogRecord): { readonly chunks: number } {
    if (record.kind === "artifactUpdate") this.#update(record);
    if (this.#mayHaveBefore) return { chunks: this.#before };
    return { chunks: this.#oldest ?? record.seq };
  }

  /** The one that was put in first. */
  get #oldest(): number | undefined {
    return this.#begun.values().next().value;
  }

  #update(record: LogRecord): void {
    const { artifact, append, lastChunk } = updateJson.read(record.json);
    const { artifactId } = artifact;
    const before = record.seq - 1;
    if (lastChunk === true) this.#begun.delete(artifactId);
    else if (append !== true && !this.#begun.has(artifactId)) {
      if (this.#begun.size < maxOpen) this.#begun.set(artifactId, before);
      else if (!this.#mayHaveBefore) [this.#before, this.#mayHaveBefore] = [this.#oldest ?? before, true];
    }
  }
}

/** An artifact with all of its chunks. */
interface WholeArtifact {
  readonly update: TaskArtifactUpdateEvent;
  /** Set if its parts were left out, because they exceed the largest body: their size in bytes. */
  readonly left?: number;
}

interface Reading {
  readonly store: Pick<Store, "read">;
  readonly bodyBytes: number;
  readonly mergeTextParts: boolean;
  readonly room: Room;
}

/** The artifact that `last` completes. Its first chunk comes after `from`. `undefined`: the log was compacted meanwhile. */
export async function wholeArtifact(
  { store, bodyBytes, mergeTextParts, room }: Reading,
  task: TaskKey,
  last: LogRecord,
  from: number,
): Promise<WholeArtifact | undefined> {
  const end = updateJson.read(last.json);
  const { taskId, contextId, metadata } = end;
  const newFold = (): TaskFold =>
    new TaskFold({ id: taskId, status: { state: "TASK_STATE_WORKING" } }, { mergeTextParts });
  let fold = newFold();
  let bytes = 0;
  for (let after = from; after < last.seq;) {
    const kinds = ["artifactUpdate"] as const;
    const page = await store.read(task, task.taskId, { after, limit: 256, bytes: roomless, kinds, room });
    if (page === undefined || page.head.firstSeq > after + 1 || page.records.length === 0) return undefined;
    for (const record of page.records) {
      after = record.seq;
      if (after > last.seq) break;
      const update = updateJson.read(record.json);
      if (update.artifact.artifactId !== end.artifact.artifactId) continue;
      if (update.append !== true) [fold, bytes] = [newFold(), 0];
      bytes += recordBytes(record);
      // What is too large is counted, and not collected.
      const artifact: Artifact = bytes > bodyBytes ? { ...update.artifact, parts: [] } : update.artifact;
      fold.apply({ artifactUpdate: { ...update, artifact } });
    }
  }
  const artifact = fold.snapshot().artifacts?.[0] ?? end.artifact;
  const update = { taskId, contextId, artifact, lastChunk: true, ...(metadata !== undefined && { metadata }) };
  return bytes > bodyBytes ? { update, left: bytes } : { update };
}
