import type { Task } from "@parley/a2a/model";
import type { Ref } from "./program.ts";

/* The ids in answers, and ids that nobody has. */

/** The ids that a call got. */
export interface Got {
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
  readonly token?: string | undefined;
}

/** Whether a context was named by a caller: everyone can know it, without having seen it. */
export function isNamed(contextId: string): boolean {
  return /^c\d$/.test(contextId);
}

/** An id that nobody has. */
export function madeUp(digit: string, of: Ref): string {
  return `00000000-0000-4000-8000-${digit}${String(of).padStart(11, "0")}`;
}

/** The ids in an answer, as far as it is about one task, and the token of the next page. */
export function idsOf(value: unknown): Got {
  const { task, message, statusUpdate, artifactUpdate, id, contextId, status, nextPageToken } = value as {
    readonly task?: Task;
    readonly message?: { readonly contextId?: string };
    readonly statusUpdate?: { readonly taskId: string; readonly contextId: string };
    readonly artifactUpdate?: { readonly taskId: string; readonly contextId: string };
  } & Partial<Task> & { readonly nextPageToken?: string };
  const token = nextPageToken === undefined || nextPageToken === "" ? {} : { token: nextPageToken };
  if (task !== undefined) return { taskId: task.id, contextId: task.contextId, ...token };
  if (message !== undefined) return { contextId: message.contextId, ...token };
  const update = statusUpdate ?? artifactUpdate;
  if (update !== undefined) return { taskId: update.taskId, contextId: update.contextId, ...token };
  return status === undefined ? token : { taskId: id, contextId, ...token };
}
