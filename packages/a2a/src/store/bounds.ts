import { A2AError } from "../model/index.ts";

/** What a store gives or makes at once, in bytes. */
export interface StoreBounds {
  /** Of one task, as it is asked for: what is more is refused. */
  readonly text: number;
  /** Tasks with larger logs are not compacted: compaction holds a whole task in memory, beside whatever else goes on. */
  readonly compaction: number;
}

/** 256 MiB are half of the longest string that V8 can hold, and 32 MiB what the engine lets a task have by default. */
export const defaultStoreBounds: StoreBounds = { text: 256 << 20, compaction: 32 << 20 };

/** Of a task that takes more than `StoreBounds.text` as it was asked for. Asking again gives the same answer; asking for less may help. */
export function tooLarge(taskId: string, bytes: number, most: number): A2AError {
  return new A2AError(
    "UnsupportedOperation",
    `Task ${taskId} is too large to be given as it was asked for: about ${mebibytes(bytes)} MiB, at most ${mebibytes(most)} are possible. Ask without its artifacts, or for less history`,
  );
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / (1 << 20));
}
