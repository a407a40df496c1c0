import { defined } from "@parley/a2a/internal/base/defined";
import { A2AError, data, isInterrupted, text, type Message, type Part } from "@parley/a2a/model";
import { fileOf } from "../shared/files.ts";
import type { ApprovalAnswer } from "../shared/questions.ts";
import type { A2AMetadata, A2AUIMessage } from "../shared/types.ts";

/* Converts chat messages to A2A messages. */

/** The task metadata of a message. Metadata may be malformed, because pages may store messages themselves. */
function metadataOf(message: A2AUIMessage | undefined): A2AMetadata["a2a"] {
  const { a2a } = (message?.metadata ?? {}) as Partial<A2AMetadata>;
  return a2a ?? {};
}

/**
 * The last message of a chat, with its context and the task that waits for it.
 *
 * @param isAgain - Whether the user wants another answer to an answered message.
 * @throws A2AError `InvalidParams` if the chat ends with nothing to send.
 */
export function toSend(
  chatId: string,
  messages: readonly A2AUIMessage[],
  isAgain: boolean,
): Message & { contextId: string } {
  const last = messages.at(-1);
  const { contextId = chatId, taskId, state } = metadataOf(messages.findLast(({ role }) => role === "assistant"));
  const parts =
    last === undefined
      ? []
      : last.role === "assistant"
        ? decisionsIn(last).map((each) => data({ ...each }))
        : last.parts.flatMap(partOf);
  if (last === undefined || parts.length === 0) {
    throw new A2AError("InvalidParams", "The last message of the chat has no text, file, data or approval to send");
  }
  const continues = taskId !== undefined && state !== undefined && isInterrupted(state) && !isAgain;
  // A repeated message with the same id would join the task of the first message.
  const isNew = isAgain || last.role === "assistant";
  return {
    messageId: isNew ? crypto.randomUUID() : last.id,
    role: "ROLE_USER",
    contextId,
    ...(continues && { taskId }),
    ...(taskId !== undefined && !continues && { referenceTaskIds: [taskId] }),
    parts,
  };
}

type ChatPart = A2AUIMessage["parts"][number];

function partOf(part: ChatPart): readonly Part[] {
  if (part.type === "text") return part.text === "" ? [] : [text(part.text)];
  if (part.type === "file") return [fileOf(part.url, part)];
  return part.type.startsWith("data-") && "data" in part ? [data(part.data)] : [];
}

/** The user's answers to the approvals in a message that the agent does not have yet. */
export function decisionsIn(message: A2AUIMessage | undefined): readonly ApprovalAnswer[] {
  if (message?.role !== "assistant") return [];
  const { parts } = message;
  const asked = new Map(
    parts.flatMap((part) => (part.type === "data-approval" ? [[part.data.approvalId, part.data] as const] : [])),
  );
  // If an approval was requested twice, the last part counts.
  const calls = new Map(
    parts.flatMap((part) =>
      part.type === "dynamic-tool" && part.approval !== undefined ? [[part.approval.id, part] as const] : [],
    ),
  );
  return [...calls.values()].flatMap((part): ApprovalAnswer[] => {
    if (part.state !== "approval-responded") return [];
    const { id, approved, reason } = part.approval;
    const { digest, answered = false } = asked.get(id) ?? {};
    return answered ? [] : [defined({ approvalId: id, approved, reason, digest })];
  });
}
