import { A2AError, invalidParams } from "@parley/a2a/internal/model/index";
import { RunGivenUp, ServerIsStopping } from "@parley/a2a/internal/protocol/index";
import type { TaskHead } from "../../store/index.ts";

/* Errors that several operations use, and errors of the store. */

/** Also used for a task of another owner, which does not exist for this caller. */
export function taskNotFound(taskId: string): A2AError {
  return new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
}

/** For a message to a task in a terminal state (A2A 1.0 §3.4.3). */
export function taskIsOver({ task, state }: TaskHead): A2AError {
  const metadata = { taskId: task.taskId, state };
  return new A2AError("UnsupportedOperation", "This task is over and takes no more messages", { metadata });
}

export function taskIsFull(taskBytes: number): A2AError {
  const description = `does not fit: a task takes ${taskBytes} bytes, all of its messages and results together`;
  return invalidParams([{ field: "message.parts", description }], "This task is full");
}

/** For a message that would exceed its owner's limit of runs. */
export function tooManyTasks(max: number): A2AError {
  return new A2AError("TooManyRequests", `Agents work on ${max} tasks of this caller already`, { retryAfter: 5 });
}

/** For a message that would exceed its owner's limit of queued tasks. */
export function tooManyQueued(max: number): A2AError {
  return new A2AError("TooManyRequests", `${max} tasks of this caller wait for an agent already`, { retryAfter: 5 });
}

/** Ends the stream of a task that continues elsewhere. Without `retryAfter`: another process may already run it. */
export function streamMoves(): A2AError {
  return new ServerIsStopping("The server is stopping; the stream continues on another server");
}

/** For callers that wait for an abandoned turn. The task may continue, here or elsewhere. `cause`: why the store failed. */
export function turnIsLost(cause?: unknown): A2AError {
  return new A2AError("Unavailable", undefined, { cause, retryAfter: retryAfterOf(cause) });
}

export function runIsGivenUp(cause: unknown): A2AError {
  return new RunGivenUp(cause, retryAfterOf(cause));
}

function retryAfterOf(cause: unknown): number {
  return (cause instanceof A2AError ? cause.retryAfter : undefined) ?? 1;
}

export function serverIsStopping(): A2AError {
  return new ServerIsStopping("The server is stopping", 1);
}

/**
 * The store is unavailable for reading. This is not an error of the agent: the engine gives up the run, as after a failed
 * write, and another run continues the task.
 */
class StoreUnavailable extends A2AError {
  constructor(cause: A2AError) {
    const { message, retryAfter } = cause;
    super("Unavailable", message, { cause, ...(retryAfter !== undefined && { retryAfter }) });
  }
}

/** Maximum causes of an error that are inspected. */
const maxCauses = 8;

/** Whether an error comes from the store, even if an agent wrapped it. */
export function isOfStore(error: unknown): boolean {
  let each = error;
  for (let depth = 0; depth < maxCauses && each instanceof Error; depth += 1) {
    if (each instanceof StoreUnavailable) return true;
    each = each.cause;
  }
  return false;
}

/** Whether an error says that the store cannot work now. */
export function isOutage(error: unknown): boolean {
  return (error instanceof A2AError && error.code === "Unavailable") || isOfStore(error);
}

export function storeFailed(error: unknown): never {
  throw error instanceof A2AError && error.code === "Unavailable" ? new StoreUnavailable(error) : error;
}
