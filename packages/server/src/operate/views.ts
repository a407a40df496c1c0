import { defined } from "@parley/a2a/internal/base/defined";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { jsonHash } from "@parley/a2a/internal/model/index";
import { operatorBounds, type StoredAct, type TaskHead } from "../store/index.ts";
import { iso, short } from "./explain.ts";
import type { Act, ActName, OperatedTask } from "./port.ts";

/* The operators' views of stored data. */

/** The operators' view of a task. `delegates`: whether the task has an open delegation. */
export function viewOf(head: TaskHead, delegates: boolean | undefined = head.delegates): OperatedTask {
  const { task, contextId, state, statusTime, seq, bytes, holder: node, run: held } = head;
  const { agent, owner, taskId } = task;
  const { turn = 1, attempt = 1, deaths = 0, suspended = false } = held ?? {};
  const run = held && { turn, attempt, deaths, suspended };
  const known = defined({ node, run, waits: waitOf(head, delegates) });
  return { agent, owner, taskId, contextId, state, statusTime: iso(statusTime), seq, bytes, ...known };
}

function waitOf({ state, run }: TaskHead, delegates: boolean | undefined): OperatedTask["waits"] {
  if (state === "TASK_STATE_SUBMITTED" && run === undefined) return "queue";
  if (state !== "TASK_STATE_WORKING") return undefined;
  return run === undefined ? "wait" : delegates === true ? "delegate" : undefined;
}

/** A short description of a task, for the audit. */
export function inWords({ state, seq, run }: TaskHead): string {
  const doing = run === undefined ? "" : run.suspended === true ? ", suspended" : `, turn ${run.turn}`;
  return `${short(state)}${doing}, seq ${seq}`;
}

/** The subjects of audit records. */
export const subjects: {
  readonly task: (agent: string, taskId: string) => string;
  readonly agent: (agent: string) => string;
  readonly node: (node: string) => string;
} = {
  task: (agent, taskId) => bounded("task", JSON.stringify([agent, taskId])),
  agent: (agent) => bounded("agent", agent),
  node: (node) => bounded("node", node),
};

function bounded(kind: string, name: string): string {
  const subject = `${kind} ${name}`;
  if (utf8Length(subject) <= operatorBounds.name) return subject;
  return `${kind} ${jsonHash(name)}`;
}

/** Truncates a text for a stored act, because the size of an act is limited, but names of steps are not. */
export const clipped = (text: string | undefined): string | undefined =>
  text === undefined || text.length <= maxClipped ? text : `${text.slice(0, maxClipped)}…`;
const maxClipped = 500;

/** The stored form of an act. */
export type ActText = Omit<Act, "number" | "time">;

export function actOf({ number, time, json }: StoredAct): Act {
  return { number, time: iso(time), ...(JSON.parse(json) as ActText) };
}

/** The facts of an act, for the audit in the store and the audit of the process. */
export interface ActAbout {
  readonly act: ActName;
  readonly agent?: string;
  readonly taskId?: string;
  readonly node?: string;
  readonly name?: string;
}
