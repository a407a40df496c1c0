import { plain } from "@parley/a2a/internal/base/display";
import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  textOf,
  type Artifact,
  type Message,
  type StandardSchema,
  type Task,
} from "@parley/a2a/internal/model/index";
import { dataOf } from "@parley/a2a/internal/schema/data";
import {
  DelegationFailed,
  type ClosedDelegation,
  type Delegated,
  type OpenDelegation,
} from "@parley/a2a/internal/protocol/index";

/** Most bytes of a row. The store takes 32 KiB. */
const maxRowBytes = 24 << 10;

/** What a delegation returned. */
export class DelegatedResult implements Delegated {
  readonly task: Task | undefined;
  readonly message: Message | undefined;
  readonly #artifacts: readonly Artifact[] | undefined;

  /** `artifacts`: `undefined` where they are too large. */
  constructor(of: Pick<Delegated, "task" | "message">, artifacts: readonly Artifact[] | undefined) {
    this.task = of.task;
    this.message = of.message;
    this.#artifacts = artifacts;
  }

  get artifacts(): readonly Artifact[] {
    if (this.#artifacts !== undefined) return this.#artifacts;
    throw new A2AError(
      "UnsupportedOperation",
      "The artifacts of the other agent are larger than the result may be: set resultBytes of turn.delegate(), or read them from the task",
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

/** A task without what may be large. */
export function briefOf({ id, contextId, status, metadata }: Task): Task {
  return { id, status, ...(contextId !== undefined && { contextId }), ...(metadata !== undefined && { metadata }) };
}

/** What the row of a delegation that is over has of the open one. */
type Before = Pick<OpenDelegation, "number" | "agent" | "addresses" | "hash">;

const beforeOf = ({ number, agent, addresses, hash }: Before): Before => ({
  number,
  agent,
  hash,
  ...(addresses && { addresses }),
});

/** The row of a direct reply. `undefined` where it is too large to be kept. */
export function messageRow(open: Before, message: Message): ClosedDelegation | undefined {
  return fitting({ ...beforeOf(open), result: { message } });
}

/** The row of a task. What does not fit is read again when it is needed. */
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

/** The row of a failure. */
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

/** The error of a task that has ended without its work. `undefined` where it is done. */
export function failureOf(agent: string, task: Task, isIdle: boolean): DelegationFailed | undefined {
  const kind = ends[task.status.state];
  if (kind === undefined) return undefined;
  const said = task.status.message === undefined ? "" : plain(textOf(task.status.message), 500);
  return new DelegationFailed(kind, `${agent} ${verbs[kind]}${said === "" ? "." : `: ${said}`}`, {
    task,
    untaken: isIdle && kind === "rejected",
  });
}
