import { A2AError, invalidParams } from "../model/index.ts";
import type { TaskHead } from "../store/index.ts";

/* Errors that several operations answer with. */

/** Also for the task of another owner, because for this caller it does not exist. */
export function taskNotFound(taskId: string): A2AError {
  return new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
}

/** For a message to a task in a terminal state (A2A 1.0 §3.4.3). */
export function taskIsOver({ task, state }: TaskHead): A2AError {
  const metadata = { taskId: task.taskId, state };
  return new A2AError("UnsupportedOperation", "This task is over and takes no more messages", { metadata });
}

/** For a message that does not fit into its task. */
export function taskIsFull(taskBytes: number): A2AError {
  const description = `does not fit: a task takes ${taskBytes} bytes, all of its messages and results together`;
  return invalidParams([{ field: "message.parts", description }], "This task is full");
}

/** For a message that would begin one run more than its owner may have. */
export function tooManyTasks(most: number): A2AError {
  return new A2AError("TooManyRequests", `Agents work on ${most} tasks of this caller already`, { retryAfter: 5 });
}

/** Ends the stream of a task that goes on elsewhere. Without a time to wait: another process may have it by now. */
export function streamMoves(): A2AError {
  return new A2AError("Unavailable", "The server is stopping: the stream goes on at another one");
}

export function serverIsStopping(): A2AError {
  return new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 });
}
