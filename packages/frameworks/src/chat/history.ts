import { defined } from "@parley/a2a/internal/base/defined";
import type { Message, StreamResponse, Task } from "@parley/a2a/model";
import { AnswerChunks } from "../shared/chunks.ts";
import { safeMediaType, safeUrl } from "../shared/files.ts";
import { approvalAnswersIn, type ApprovalAnswer } from "../shared/questions.ts";
import { turnsOf } from "../shared/turns.ts";
import type { A2AChunk, A2AUIMessage } from "../shared/types.ts";

type ChatPart = A2AUIMessage["parts"][number];

/** The user's messages and the answers of a task, as chat messages. Omits an answer in progress. */
export function messagesOf(task: Task, maxFileBytes: number): A2AUIMessage[] {
  const messages: A2AUIMessage[] = [];
  const a2a = defined({ taskId: task.id, contextId: task.contextId });
  for (const { asked, answerId, answer } of turnsOf(task)) {
    const answers = asked === undefined ? [] : approvalAnswersIn(asked.parts);
    if (answers.length > 0) noteAnswers(messages, answers);
    else if (asked !== undefined)
      messages.push({ id: asked.messageId, role: "user", metadata: { a2a }, parts: userParts(asked) });
    if (answer !== undefined) messages.push(answerOf(answerId, a2a, maxFileBytes, answer));
  }
  return messages;
}

/** Shows the user's approvals where the agent asked for them. */
function noteAnswers(messages: A2AUIMessage[], answers: readonly ApprovalAnswer[]): void {
  const at = messages.length - 1;
  const last = messages[at];
  if (last === undefined) return;
  const parts = last.parts.map((part): ChatPart => {
    if (part.type === "data-approval" && answers.some(({ approvalId }) => approvalId === part.data.approvalId))
      return { ...part, data: { ...part.data, answered: true } };
    if (part.type !== "dynamic-tool" || part.state !== "approval-requested") return part;
    const answer = answers.find(({ approvalId }) => approvalId === part.approval.id);
    if (answer === undefined) return part;
    const { approvalId: id, approved, reason } = answer;
    return {
      ...part,
      state: "approval-responded",
      approval: defined({ id, approved, reason }),
    };
  });
  messages[at] = { ...last, parts };
}

function answerOf(
  id: string,
  a2a: { readonly taskId: string; readonly contextId?: string },
  maxFileBytes: number,
  events: readonly StreamResponse[],
): A2AUIMessage {
  const parts: ChatPart[] = [];
  const chunks = new AnswerChunks({ messageId: id, maxFileBytes }, (chunk) => addTo(parts, chunk));
  chunks.start(a2a);
  for (const event of events) chunks.apply(event);
  chunks.finish();
  return { id, role: "assistant", metadata: { a2a: { ...a2a, ...chunks.metadata } }, parts };
}

/** Adds a chunk of a complete answer, in which each text is one piece. */
function addTo(parts: ChatPart[], chunk: A2AChunk): void {
  if (chunk.type === "text-delta") parts.push({ type: "text", text: chunk.delta, state: "done" });
  else if (chunk.type === "file") parts.push({ type: "file", url: chunk.url, mediaType: chunk.mediaType });
  else if (chunk.type === "error") parts.push({ type: "text", text: chunk.errorText, state: "done" });
  else if (chunk.type === "start-step") parts.push({ type: "step-start" });
  else if (chunk.type.startsWith("data-") && "data" in chunk) parts.push(chunk);
  else if (chunk.type === "tool-input-available") {
    const { toolCallId, toolName, input } = chunk;
    parts.push({ type: "dynamic-tool", toolCallId, toolName, input, state: "input-available" });
  } else if (chunk.type === "tool-approval-request") {
    const at = parts.findIndex((part) => part.type === "dynamic-tool" && part.toolCallId === chunk.toolCallId);
    const call = parts[at];
    if (call?.type !== "dynamic-tool" || call.state !== "input-available") return;
    parts[at] = { ...call, state: "approval-requested", approval: { id: chunk.approvalId } };
  }
}

function userParts({ parts }: Message): ChatPart[] {
  return parts.flatMap((part): ChatPart[] => {
    const { filename } = part;
    const mediaType = safeMediaType(part.mediaType);
    const named = defined({ mediaType, filename });
    if (part.text !== undefined) return [{ type: "text", text: part.text }];
    if (part.url !== undefined) {
      const url = safeUrl(part.url);
      return url === undefined ? [] : [{ type: "file", url, ...named }];
    }
    if (part.raw !== undefined) return [{ type: "file", url: `data:${mediaType};base64,${part.raw}`, ...named }];
    return [{ type: "data-answer", data: part.data }];
  });
}
