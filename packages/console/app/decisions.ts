import { signal } from "@preact/signals";
import type { Part, Task } from "@parley/a2a";
import { authorizationMember, memberOf } from "@parley/a2a/internal/protocol/authorization";
import type { AgentEntry } from "../src/api.ts";
import { agentOf } from "./server.ts";

/* How requests for an authorization ended, for as long as the page is open: agents do not tell who answered. */

/** A request that was shown, and how it ended. */
export interface Decision {
  readonly taskId: string;
  /** `AuthorizationRequest.id`. */
  readonly requestId: string;
  /** What was asked for, such as `approval`. */
  readonly form: string;
  /** Digest of the question, as the user saw it. */
  readonly digest?: string;
  /** How it ended. Absent: it is open. */
  readonly outcome?: string;
  /** When it ended, in ISO 8601: when the agent took the answer from here, or what the status of the task says. */
  readonly at?: string;
  /** The account that the console calls the agent with. Only for answers from here. */
  readonly by?: string;
}

export const decisions = signal<readonly Decision[]>([]);

/** Adds what is known now about a request. */
export function decide(decision: Decision): void {
  const { taskId, requestId } = decision;
  const isSame = (other: Decision): boolean => other.taskId === taskId && other.requestId === requestId;
  const known = decisions.value.find(isSame);
  decisions.value = [...decisions.value.filter((other) => !isSame(other)), { ...known, ...decision }].slice(-200);
}

/** Ends the requests that a task no longer waits for, and that were not answered from here. */
export function settle({ id, status: { state, timestamp } }: Task): void {
  if (state === "TASK_STATE_AUTH_REQUIRED") return;
  for (const open of decisions.value) {
    if (open.taskId !== id || open.outcome !== undefined) continue;
    const outcome = /_(?:FAILED|CANCELED|REJECTED)$/.test(state) ? "was not given" : "was answered elsewhere";
    decide({ ...open, outcome, ...(timestamp !== undefined && { at: timestamp }) });
  }
}

/** The agent has taken an answer from here. */
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

/** The same parts without credentials, to be shown and saved. */
export function withoutCredentials(parts: readonly Part[]): readonly Part[] {
  return parts.map((part) => {
    const member = memberOf(part);
    if (member?.["credential"] === undefined) return part;
    return { data: { [authorizationMember]: { ...member, credential: "•••" } } };
  });
}
