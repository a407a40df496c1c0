import { plain } from "@parley/a2a/internal/base/display";
import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  type Artifact,
  isTerminal,
  type Message,
  partsOf,
  type StandardSchema,
  type StreamResponse,
  type Task,
  type TaskState,
  type TaskStatus,
  textOf,
} from "@parley/a2a/internal/model/index";
import {
  type AgentMessage,
  type ClosedDelegation,
  type Delegated,
  type DelegateOptions,
  DelegationFailed,
  type OpenDelegation,
  type StatusEvent,
} from "@parley/a2a/internal/protocol/index";
import { dataOf } from "@parley/a2a/internal/schema/data";
import { authRequired, passedOn, working } from "../authorize.ts";
import { CallFailed } from "./calls.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/* Translates events of another agent for this task. */

/** Maximum characters of a task or context id, to keep rows small. */
export const maxId = 1024;

/** The delegation of a shown status. */
interface ShowingDelegation {
  readonly key: string;
  readonly options: Pick<DelegateOptions, "progress">;
  /** The authorization requests of all delegations that this task shows. */
  readonly authorizations: Map<string, AgentMessage | undefined>;
}

/** The visible part of a status, such as an authorization request or progress, and the next row. */
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
    // The task still waits for the others.
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

/** Whether a message id is short enough to store. A stored id identifies the message if it is repeated. */
export function isKept(messageId: string): boolean {
  return messageId.length <= 256;
}

/** The task that an event belongs to. Throws `CallFailed` if its ids are too long to store. */
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
  return defined({ taskId, contextId });
}

export function taskOf({ taskId = "", contextId }: OpenDelegation, task: Task | undefined, status: TaskStatus): Task {
  return task ?? { id: taskId, status, ...defined({ contextId }) };
}

/** The question of another agent, as a question of this task. */
export function questionOf({ message }: TaskStatus): StatusEvent {
  const { parts = [{ text: "Another agent needs more information." }], metadata } = message ?? {};
  return { kind: "status", state: "TASK_STATE_INPUT_REQUIRED", message: { parts, ...defined({ metadata }) } };
}

/** Whether a task shows no work: it has only been created, or was rejected immediately. */
export function isIdle(state: TaskState, task: Task | undefined): boolean {
  const { artifacts = [] } = task ?? {};
  return (state === "TASK_STATE_SUBMITTED" || state === "TASK_STATE_REJECTED") && artifacts.length === 0;
}

/** Below the store's limit of 32 KiB. */
const maxRowBytes = 24 << 10;

export class DelegatedResult implements Delegated {
  readonly task: Task | undefined;
  readonly message: Message | undefined;
  readonly #artifacts: readonly Artifact[] | undefined;

  /** `artifacts`: `undefined` if they are too large. */
  constructor(of: Pick<Delegated, "task" | "message">, artifacts: readonly Artifact[] | undefined) {
    this.task = of.task;
    this.message = of.message;
    this.#artifacts = artifacts;
  }

  get artifacts(): readonly Artifact[] {
    if (this.#artifacts !== undefined) return this.#artifacts;
    throw new A2AError(
      "UnsupportedOperation",
      "The artifacts of the other agent exceed resultBytes: raise it in turn.delegate(), or read them from the task",
    );
  }

  async data<Output>(schema: StandardSchema<Output>): Promise<Output> {
    const { task, message } = this;
    if (message !== undefined) return dataOf(message, schema);
    return dataOf(task === undefined ? [] : { ...task, artifacts: this.artifacts }, schema);
  }

  get text(): string {
    if (this.message !== undefined) return textOf(this.message);
    const texts = this.artifacts.map(textOf).filter((each) => each !== "");
    const said = this.task?.status.message;
    return texts.length > 0 || said === undefined ? texts.join("\n") : textOf(said);
  }
}

/** A task without its large members. */
export function briefOf({ id, contextId, status, metadata }: Task): Task {
  return { id, status, ...defined({ contextId, metadata }) };
}

/** The members of an open row that its closed row keeps. */
type Before = Pick<OpenDelegation, "number" | "agent" | "addresses" | "hash">;

function beforeOf({ number, agent, addresses, hash }: Before): Before {
  return { number, agent, hash, ...defined({ addresses }) };
}

/** The row of a direct reply. `undefined` if it is too large to be kept. */
export function messageRow(open: Before, message: Message): ClosedDelegation | undefined {
  return fitting({ ...beforeOf(open), result: { message } });
}

/** The row of a task. Content that does not fit is read again on use. */
export function taskRow(
  open: Before,
  task: Task,
  artifacts: readonly Artifact[] | undefined,
  bytes: number,
): ClosedDelegation {
  const before = beforeOf(open);
  const whole = artifacts && fitting({ ...before, result: { task, artifacts } });
  const brief = { ...briefOf(task), status: { state: task.status.state } };
  return whole ?? fitting({ ...before, result: { task, bytes } }) ?? { ...before, result: { task: brief, bytes } };
}

export function failureRow(open: Before, { kind, message: text, task, untaken }: DelegationFailed): ClosedDelegation {
  const before = beforeOf(open);
  const failure = { kind, text, ...(untaken && { untaken }) } as const;
  const whole = fitting({ ...before, failure: { ...failure, ...(task && { task }) } });
  return whole ?? { ...before, failure };
}

function fitting(row: ClosedDelegation): ClosedDelegation | undefined {
  return utf8Length(JSON.stringify(row)) > maxRowBytes ? undefined : row;
}

const ends: { readonly [State in Task["status"]["state"]]?: "failed" | "rejected" | "canceled" } = {
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_CANCELED: "canceled",
};

const verbs = { failed: "could not do its part", rejected: "refused its part", canceled: "has canceled its part" };

/** The error of an unsuccessful task. `undefined`: it is completed. */
export function failureOf(agent: string, task: Task, isIdle: boolean): DelegationFailed | undefined {
  const kind = ends[task.status.state];
  if (kind === undefined) return undefined;
  const said = task.status.message === undefined ? "" : plain(textOf(task.status.message), 500);
  return new DelegationFailed(kind, `${agent} ${verbs[kind]}${said === "" ? "." : `: ${said}`}`, {
    task,
    untaken: isIdle && kind === "rejected",
  });
}
