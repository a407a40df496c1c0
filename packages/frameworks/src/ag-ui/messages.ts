import type { InputContent, Message as AGUIMessage, RunAgentInput, UserMessage } from "@ag-ui/client";
import {
  A2AError,
  data,
  isInterrupted,
  text,
  type JsonValue,
  type Message,
  type Part,
  type Task,
} from "@parley/a2a/model";
import { fileOf, safeMediaType, safeUrl } from "../shared/files.ts";
import { isObject, toPlainJson } from "../shared/json.ts";
import type { ApprovalAnswer, AskedApproval } from "../shared/questions.ts";
import { turnsOf } from "../shared/turns.ts";
import { approvalsOf, RunEvents } from "./events.ts";

/* Converts between AG-UI messages and A2A messages. */

/** The state of a thread at the agent. */
export interface Thread {
  readonly contextId?: string;
  /** The newest task of the thread. */
  readonly task?: Pick<Task, "id" | "status">;
  /** The id of the last user message that was sent. */
  readonly userMessageId?: string;
}

type Resume = NonNullable<RunAgentInput["resume"]>;

/** Whether the user dismissed a question. Dismissing an approval instead denies the call. */
export function isDismissed({ resume = [] }: RunAgentInput, { status }: NonNullable<Thread["task"]>): boolean {
  const isCancelled = resume.length > 0 && resume.every((entry) => entry.status === "cancelled");
  return isCancelled && isInterrupted(status.state) && approvalsOf(status).size === 0;
}

/** The user message that a run answers. `undefined` if the last message is not the user's. */
export function lastSaid({ messages }: RunAgentInput): UserMessage | undefined {
  const last = messages.findLast(({ role }) => role === "user" || role === "assistant" || role === "tool");
  return last?.role === "user" ? last : undefined;
}

/**
 * The message of a run. The message id is the run id, so a repeated run joins the task of the first run.
 *
 * @throws A2AError `InvalidParams` if the run has nothing to send.
 */
export function toSend(input: RunAgentInput, { contextId = input.threadId, task, userMessageId }: Thread): Message {
  const said = lastSaid(input);
  const answers = input.resume?.filter(({ status, payload }) => status === "cancelled" || payload !== undefined) ?? [];
  const parts = answers.length > 0 ? answersOf(answers, task) : partsOf(said?.content ?? []);
  if (parts.length === 0) {
    throw new A2AError("InvalidParams", "The run has neither a user message nor an answer to an interrupt to send");
  }
  // A repeated message that does not answer the question starts a new task.
  const isAnswer = answers.length > 0 || said?.id !== userMessageId;
  const continues = task !== undefined && isInterrupted(task.status.state) && isAnswer;
  const metadata = metadataOf(input);
  return {
    // Front ends answer an interrupt with the id of the run that asked.
    messageId: [input.runId, ...answers.slice(0, 1).map(({ interruptId }) => interruptId)].join("/"),
    role: "ROLE_USER",
    contextId,
    ...(continues && { taskId: task.id }),
    ...(task !== undefined && !continues && { referenceTaskIds: [task.id] }),
    ...(metadata !== undefined && { metadata }),
    parts,
  };
}

/** The metadata key for the page's context and forwarded properties. */
const metadataKey = "ag-ui";

function metadataOf({ context, forwardedProps }: RunAgentInput): Message["metadata"] {
  const props = toPlainJson(forwardedProps ?? {});
  const known = {
    ...(context.length > 0 && { context: toPlainJson(context) }),
    ...(isObject(props) && Object.keys(props).length > 0 && { forwardedProps: props }),
  };
  return Object.keys(known).length === 0 ? undefined : { [metadataKey]: known };
}

function answersOf(answers: Resume, task: Thread["task"]): readonly Part[] {
  const approvals = task === undefined ? new Map<string, AskedApproval>() : approvalsOf(task.status);
  return answers.map(({ interruptId, status, payload }) => {
    const given = toPlainJson(payload);
    const asked = approvals.get(interruptId);
    if (asked === undefined) return typeof given === "string" ? text(given) : data(given);
    return data(decisionOf(asked, status === "resolved" ? given : false));
  });
}

/** Only an explicit `true` approves a call. */
function decisionOf({ approvalId, digest }: AskedApproval, given: JsonValue): { [member: string]: JsonValue } {
  const { approved, reason } = isObject(given) ? given : { approved: given };
  return {
    approvalId,
    approved: approved === true,
    ...(typeof reason === "string" && { reason }),
    ...(digest !== undefined && { digest }),
  } satisfies ApprovalAnswer;
}

function partsOf(content: UserMessage["content"]): readonly Part[] {
  if (typeof content === "string") return content === "" ? [] : [text(content)];
  return content.map((part) => {
    if (part.type === "text") return text(part.text);
    const { source } = part;
    const mediaType = source.mimeType;
    if (source.type === "data") return fileOf(`data:${safeMediaType(mediaType)};base64,${source.value}`, { mediaType });
    const url = source.type === "url" ? safeUrl(source.value) : undefined;
    if (url !== undefined) return fileOf(url, { mediaType });
    throw new A2AError("InvalidParams", `A file in a message must have bytes or an http(s) URL; got ${source.type}`);
  });
}

/** The messages of a thread, oldest first. Omits an answer in progress. */
export function messagesOf(tasks: readonly Task[], maxFileBytes: number): readonly AGUIMessage[] {
  const messages = new Map<string, AGUIMessage>();
  for (const task of tasks) {
    const known = { taskId: task.id };
    for (const { asked, answerId, answer } of turnsOf(task)) {
      if (asked !== undefined) messages.set(asked.messageId, userMessageOf(asked));
      const events = new RunEvents({ answerId, maxFileBytes, known, messages: [] }, () => undefined);
      for (const event of answer ?? []) events.apply(event);
      for (const message of events.messages) messages.set(message.id, message);
      if (events.error === undefined) continue;
      const id = `${answerId}/error`;
      messages.set(id, { id, role: "assistant", content: events.error });
    }
  }
  return [...messages.values()];
}

function userMessageOf({ messageId: id, parts }: Message): AGUIMessage {
  const content = parts.flatMap((part): InputContent[] => {
    if (part.text !== undefined) return [{ type: "text", text: part.text }];
    if (part.data !== undefined) return [{ type: "text", text: JSON.stringify(part.data) }];
    const mimeType = safeMediaType(part.mediaType);
    const kind = /^(image|audio|video)\//.exec(mimeType)?.[1];
    const type = kind === "image" || kind === "audio" || kind === "video" ? kind : "document";
    if (part.raw !== undefined) return [{ type, source: { type: "data", value: part.raw, mimeType } }];
    const url = part.url === undefined ? undefined : safeUrl(part.url);
    return url === undefined ? [] : [{ type, source: { type: "url", value: url, mimeType } }];
  });
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return { id, role: "user", content: texts.length === content.length ? texts.join("") : content };
}
