import { A2AError } from "@parley/a2a/internal/model/index";
import type { BlobStore } from "./port.ts";
import { prefixOf, unknownAgent } from "./ref.ts";

/** Whose blobs are deleted. */
export interface BlobScope {
  /** The id that the tasks of the agent are stored under: `ServedAgent.id`. */
  readonly agent: string;
  /** The owner. Absent: all owners. */
  readonly owner?: string;
  /** The task. Absent: all tasks of the owner. */
  readonly taskId?: string;
}

/**
 * Deletes the blobs of an agent, of an owner, or of a task, and returns how many there were. A server deletes the blobs of deleted tasks
 * by itself, within a day and an hour. This is for what has to be gone now.
 *
 * @example
 * ```ts
 * async function forget(store: BlobStore, owner: string) {
 *   return await deleteBlobsOf(store, { agent: "/", owner });
 * }
 * ```
 */
export async function deleteBlobsOf(store: BlobStore, { agent, owner, taskId }: BlobScope): Promise<number> {
  const prefix = await prefixOf(agent, owner, taskId);
  let deleted = 0;
  let last: string | undefined;
  for (;;) {
    // From the beginning each time, since the page before is gone.
    const { blobs, next } = await store.list({ prefix, limit: 1000 });
    const first = blobs[0]?.key;
    // Otherwise this would not end where a bucket keeps what is deleted.
    if (next !== undefined && (first === undefined || first === last)) {
      throw new A2AError("Unavailable", "The blob store still lists files that were deleted");
    }
    last = first;
    await store.delete(blobs.map(({ key }) => key));
    deleted += blobs.length;
    if (next === undefined) return deleted;
  }
}

/**
 * Deletes what messages of an owner have brought whose agent was not known yet: they are being received, or their server has crashed
 * meanwhile. Returns how many files there were.
 */
export function deleteIncomingBlobs(store: BlobStore, owner: string): Promise<number> {
  return deleteBlobsOf(store, { agent: unknownAgent, owner });
}
