import { A2AError, invalidParams } from "@parley/a2a/internal/model/index";
import { RunGivenUp, ServerIsStopping, type Principal } from "@parley/a2a/internal/protocol/index";
import type { Store, TaskHead } from "../../store/index.ts";
import type { RetentionOptions } from "./options.ts";

/* Errors that several operations answer with, and what is refused of the options. */

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

/** For a message whose task would have to wait behind more of its owner than may wait. */
export function tooManyQueued(most: number): A2AError {
  return new A2AError("TooManyRequests", `${most} tasks of this caller wait for an agent already`, { retryAfter: 5 });
}

/** Ends the stream of a task that goes on elsewhere. Without a time to wait: another process may have it by now. */
export function streamMoves(): A2AError {
  return new ServerIsStopping("The server is stopping: the stream goes on at another one");
}

/** For who waits for a turn that is given up. `cause`: why the store failed. The task may go on, here or elsewhere. */
export function turnIsLost(cause?: unknown): A2AError {
  return new A2AError("Unavailable", undefined, { cause, retryAfter: retryAfterOf(cause) });
}

/** For the readers of a task whose run is given up. */
export function runIsGivenUp(cause: unknown): A2AError {
  return new RunGivenUp(cause, retryAfterOf(cause));
}

function retryAfterOf(cause: unknown): number {
  return (cause instanceof A2AError ? cause.retryAfter : undefined) ?? 1;
}

export function serverIsStopping(): A2AError {
  return new ServerIsStopping("The server is stopping", 1);
}

/** The same function. A caller without an owner would share its tasks with all others without one. */
export function checkedOwner(ownerOf: (principal: Principal) => unknown): (principal: Principal) => string {
  return (principal) => {
    const owner = ownerOf(principal);
    if (typeof owner === "string" && owner !== "") return owner;
    const cause = new TypeError(`ownerOf must return the name of an owner, and not ${JSON.stringify(owner)}`);
    throw new A2AError("InternalError", undefined, { cause });
  };
}

/** A wrong time would keep tasks for ever, and a store that knows no rules would delete those that are to be kept. */
export function checkRetention(retention: RetentionOptions = {}, store: Store): void {
  const { terminal: _, replay: __, interval: ___, agents = {}, ...states } = retention;
  const groups = [
    ["", retention] as const,
    ...Object.entries(agents).map(([id, of]) => [`agents[${id}].`, of] as const),
  ];
  for (const [path, times] of groups) {
    for (const [name, time] of Object.entries(times)) {
      if (name === "agents" || time === undefined || time === false || (typeof time === "number" && time >= 0))
        continue;
      throw new TypeError(
        `retention.${path}${name} is milliseconds, 0 or more, or false, and cannot be ${String(time)}`,
      );
    }
  }
  const wanted = [...Object.keys(agents), ...Object.values(states)].some((time) => time !== undefined);
  if (wanted && store.upkeep === undefined) {
    throw new TypeError("retention: this store has no `upkeep`, so it has no times for states and agents");
  }
}
