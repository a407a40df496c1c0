import {
  A2AError,
  isTerminal,
  partsOf,
  type StreamResponse,
  type Task,
  type TaskState,
  type TaskStatus,
} from "@parley/a2a/internal/model/index";
import type { AgentMessage, DelegateOptions, OpenDelegation, StatusEvent } from "@parley/a2a/internal/protocol/index";
import { CallFailed } from "./errors.ts";
import { authRequired, passedOn, working } from "../authorize.ts";

/* What events of another agent mean for this task. */

/** Characters of the id of a task or a context. They are kept in a row, which is small. */
export const maxId = 1024;

/** What a status is shown for. */
interface ShowingDelegation {
  readonly key: string;
  readonly options: Pick<DelegateOptions, "progress">;
  /** The requests for an authorization that this task shows, of all delegations. */
  readonly authorizations: Map<string, AgentMessage | undefined>;
}

/** What of a status is shown, a request for an authorization or progress, and the row after it. */
export function shownOf(
  status: TaskStatus,
  row: OpenDelegation,
  showing: ShowingDelegation,
): { readonly events: readonly StatusEvent[]; readonly row: OpenDelegation } {
  const { key, authorizations, options } = showing;
  const { message } = status;
  if (status.state === "TASK_STATE_AUTH_REQUIRED") {
    const request = passedOn(message);
    const isNew = JSON.stringify(authorizations.get(key)) !== JSON.stringify(request);
    authorizations.set(key, request);
    return { events: isNew ? [authRequired(request)] : [], row: { ...row, auth: true } };
  }
  const events: StatusEvent[] = [];
  const { auth, ...next } = row;
  if (auth === true) {
    authorizations.delete(key);
    const other = [...authorizations.values()].at(-1);
    // The task goes on waiting for the others.
    if (other !== undefined) events.push(authRequired(other));
    else if (authorizations.size === 0) events.push(working);
  }
  const isProgress = !isTerminal(status.state) && status.state !== "TASK_STATE_INPUT_REQUIRED";
  if (!isProgress || message === undefined || authorizations.size > 0 || message.messageId === row.said) {
    return { events, row: next };
  }
  const { progress } = options;
  const content = progress === undefined ? message.parts : progress === false ? undefined : progress(message);
  if (content === undefined) return { events, row: next };
  events.push({ ...working, message: { parts: partsOf(content) } });
  const { said: _, ...unsaid } = next;
  return { events, row: { ...unsaid, ...(isKept(message.messageId) && { said: message.messageId }) } };
}

/** Whether the id of a message is kept, so that the message is known when it comes again. A row is small. */
export function isKept(messageId: string): boolean {
  return messageId.length <= 256;
}

/**
 * The task that an event belongs to.
 *
 * @throws CallFailed where its ids are too long to keep.
 */
export function idsOf({
  task,
  statusUpdate,
  artifactUpdate,
}: StreamResponse): Pick<OpenDelegation, "taskId" | "contextId"> {
  const update = statusUpdate ?? artifactUpdate;
  const taskId = task?.id ?? update?.taskId;
  const contextId = task?.contextId ?? update?.contextId;
  if ((taskId?.length ?? 0) > maxId || (contextId?.length ?? 0) > maxId) {
    throw new CallFailed(
      new A2AError("InvalidResponse", `An id of the other agent is longer than ${maxId} characters`),
    );
  }
  return { ...(taskId !== undefined && { taskId }), ...(contextId !== undefined && { contextId }) };
}

/** The task after a status. */
export function taskOf({ taskId = "", contextId }: OpenDelegation, { task, statusUpdate }: StreamResponse): Task {
  const status = (task ?? statusUpdate)?.status as TaskStatus;
  return task ?? { id: taskId, status, ...(contextId !== undefined && { contextId }) };
}

/** The question of another agent, as a question of this task. */
export function questionOf({ message }: TaskStatus): StatusEvent {
  const { parts = [{ text: "Another agent needs more information." }], metadata } = message ?? {};
  return {
    kind: "status",
    state: "TASK_STATE_INPUT_REQUIRED",
    message: { parts, ...(metadata !== undefined && { metadata }) },
  };
}

/** Whether a task shows no work: it has only begun, or was rejected at once. */
export function isIdle(state: TaskState, task: Task | undefined): boolean {
  const { artifacts = [] } = task ?? {};
  return (state === "TASK_STATE_SUBMITTED" || state === "TASK_STATE_REJECTED") && artifacts.length === 0;
}
