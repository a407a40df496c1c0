import type { JsonValue, Part } from "@parley/a2a/model";
import { isObject } from "@parley/a2a/internal/model/schema";

/* Questions that a front end shows as a form or as a tool approval. */

/** A call that waits for approval, in the format of `fromAISDK()`. */
export interface AskedApproval {
  readonly approvalId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: JsonValue;
  /** Digest of the tool and its arguments. The answer repeats it. */
  readonly digest: string | undefined;
}

const formType = "application/schema+json";

/** The JSON Schema of the answer that a question asks for. */
export function formIn(parts: readonly Part[]): JsonValue | undefined {
  return parts.find(({ mediaType }) => mediaType === formType)?.data;
}

/** The approvals that a question asks for. */
export function approvalsIn(parts: readonly Part[]): readonly AskedApproval[] {
  return parts.flatMap(({ data }) => {
    const listed = isObject(data) ? data["approvals"] : undefined;
    return Array.isArray(listed) ? listed.flatMap((each: unknown) => approvalOf(each)) : [];
  });
}

function approvalOf(value: unknown): readonly AskedApproval[] {
  if (!isObject(value)) return [];
  const { approvalId, toolCallId, toolName, input = null, digest } = value;
  if (typeof approvalId !== "string" || typeof toolCallId !== "string" || typeof toolName !== "string") return [];
  const asked = { approvalId, toolCallId, toolName, input: input as JsonValue };
  return [{ ...asked, digest: typeof digest === "string" ? digest : undefined }];
}

/** A decision on a call in a user message. */
export interface ApprovalAnswer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string;
  readonly digest?: string;
}

/** The decisions in a message. Empty if it contains anything else. */
export function approvalAnswersIn(parts: readonly Part[]): readonly ApprovalAnswer[] {
  const answers = parts.flatMap(({ data }): ApprovalAnswer[] => {
    if (!isObject(data)) return [];
    const { approvalId, approved, reason } = data;
    if (typeof approvalId !== "string" || typeof approved !== "boolean") return [];
    return [{ approvalId, approved, ...(typeof reason === "string" && { reason }) }];
  });
  return answers.length === parts.length ? answers : [];
}
