import type { LazyBlobs } from "../../blobs/lazy.ts";
import { isTerminal } from "../../model/index.ts";
import type { EngineSettings } from "../options.ts";
import type { Send } from "./admission.ts";

/* Large files of messages, which are stored before the message is. */

/** The message with its large files outside. One for a task that is over, or that the caller does not have, stays as it is, and is refused later. */
export async function withFilesOutside(
  send: Send,
  lazy: LazyBlobs,
  { ids, store }: Pick<EngineSettings, "ids" | "store">,
): Promise<Send> {
  const { owner, request, again } = send;
  const { message } = request;
  const taskId = message.taskId ?? send.newTaskId ?? ids.next();
  if (message.taskId !== undefined) {
    const head = await store.head(owner, taskId);
    if (head === undefined || isTerminal(head.state)) return send;
  }
  const blobs = await lazy.load();
  const task = { agent: owner.agent, owner: owner.owner, taskId };
  const room = await blobs.roomOf(task);
  const parts = await blobs.storeParts(task, message.parts, room);
  const stored: Send = {
    ...send,
    kept: [...send.kept, ...room.rows.values()],
    request: { ...request, message: { ...message, parts } },
    ...(message.taskId === undefined && { newTaskId: taskId }),
  };
  if (again === undefined) return stored;
  return { ...stored, again: async () => withFilesOutside(await again(), lazy, { ids, store }) };
}
