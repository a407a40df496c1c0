import { signal } from "@preact/signals";
import type { Part, Task } from "@parley/a2a";
import { authorizationMember, memberOf } from "@parley/a2a/internal/protocol/authorization";
import type { AgentEntry } from "../src/api.ts";
import { agentOf } from "./server.ts";

/* Outcomes of authorization requests, in the memory of the page. Agents do not report who answered a request. */

/** A request that the page has shown, and its outcome. */
export interface Decision {
  readonly taskId: string;
  /** `AuthorizationRequest.id`. */
  readonly requestId: string;
  /** Kind of the request, such as `approval`. */
  readonly form: string;
  /** Digest of the question, as the user saw it. */
  readonly digest?: string;
  /** Its outcome. Absent: the request is pending. */
  readonly outcome?: string;
  /** ISO 8601. The time when the agent accepted the answer from this page, or the timestamp of the task's status. */
  readonly at?: string;
  /** The account that the console used to call the agent. Only for answers from this page. */
  readonly by?: string;
}

export const decisions = signal<readonly Decision[]>([]);

/** Adds a request, or updates it. */
export function decide(decision: Decision): void {
  const { taskId, requestId } = decision;
  const isSame = (other: Decision): boolean => other.taskId === taskId && other.requestId === requestId;
  const known = decisions.value.find(isSame);
  decisions.value = [...decisions.value.filter((other) => !isSame(other)), { ...known, ...decision }].slice(-200);
}

/** Sets the outcome of requests that the task no longer waits for and that this page did not answer. */
export function settle({ id, status: { state, timestamp } }: Task): void {
  if (state === "TASK_STATE_AUTH_REQUIRED") return;
  for (const open of decisions.value) {
    if (open.taskId !== id || open.outcome !== undefined) continue;
    const outcome = /_(?:FAILED|CANCELED|REJECTED)$/.test(state) ? "was not given" : "was answered elsewhere";
    decide({ ...open, outcome, ...(timestamp !== undefined && { at: timestamp }) });
  }
}

/** Records that the agent accepted an answer from this page. */
export function answered(agent: AgentEntry, { id: taskId }: Task, parts: readonly Part[]): void {
  const at = new Date().toISOString();
  const by = (agentOf(agent.id) ?? agent).signIn?.logins[0]?.account;
  for (const part of parts) {
    const member = memberOf(part);
    if (member === undefined) continue;
    const known = decisions.value.find((one) => one.taskId === taskId && one.requestId === member["id"]);
    if (known === undefined) continue;
    const outcome = member["denied"] === true ? "was denied" : known.form === "approval" ? "was approved" : "was given";
    decide({ ...known, outcome, at, ...(by !== undefined && { by }) });
  }
}

/** Removes the credentials from parts, so that they can be shown and saved. */
export function withoutCredentials(parts: readonly Part[]): readonly Part[] {
  return parts.map((part) => {
    const member = memberOf(part);
    if (member?.["credential"] === undefined) return part;
    return { data: { [authorizationMember]: { ...member, credential: "•••" } } };
  });
}
