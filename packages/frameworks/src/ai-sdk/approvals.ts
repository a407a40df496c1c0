import type { AgentEvent, Turn } from "@parley/server";
import { resume as resumeLoop, suspend as suspendLoop, type Approval } from "../shared/approvals.ts";
import { fromJson, toJson } from "../shared/json.ts";

/* Suspends and resumes the loop of an agent that waits for approvals. */

export { approvalOf, type ApprovalRequest } from "../shared/approvals.ts";

/** Stores the messages of the loop, and asks for the approvals. */
export function suspend(turn: Turn, messages: readonly unknown[], approvals: readonly Approval[]): AgentEvent {
  return suspendLoop(turn, "aiSdk", { messages: toJson(messages) }, approvals);
}

/** The messages that continue a suspended loop, or the question again if the answer does not fit. `undefined` if nothing is suspended. */
export function resume(turn: Turn): { readonly messages: unknown[] } | { readonly ask: AgentEvent } | undefined {
  const resumed = resumeLoop(turn, "aiSdk");
  if (resumed === undefined || "ask" in resumed) return resumed;
  const { loop, approvals, decisions } = resumed;
  const content = approvals.map(({ approvalId }, at) => ({
    type: "tool-approval-response",
    approvalId,
    ...decisions[at],
  }));
  return { messages: [...(fromJson(loop["messages"]) as unknown[]), { role: "tool", content }] };
}
