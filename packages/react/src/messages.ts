import { isInterrupted, isTerminal, type JsonValue, type Message, type Part, type Task } from "@parley/a2a/model";
import { authorizationMember, readAuthorization } from "@parley/a2a/internal/protocol/authorization";
import { isObject } from "@parley/a2a/internal/model/schema";
import type { ApprovalRequest, ConversationMessage, Question, Status } from "./types.ts";

/** A message of this page, with its position in the history of a task that does not contain it yet. */
export interface SentMessage {
  readonly message: Message;
  readonly at: number;
}

/**
 * A task as messages. A task does not record which turn created an artifact, so all artifacts are in the last answer.
 *
 * @param sent - Messages of this page. Those already in the history are not added.
 */
export function messagesOf(task: Task, sent: readonly SentMessage[] = []): readonly ConversationMessage[] {
  const turns = turnsOf(historyOf(task, sent));
  return turns.flatMap(({ asked, said }, at): ConversationMessage[] => {
    const question = asked === undefined ? [] : [...userMessages(asked, task.id)];
    const isLast = at === turns.length - 1;
    const id = answerId(asked?.messageId ?? task.id);
    const answer = isLast ? lastAnswer(task, id, said) : ({ id, role: "assistant", parts: partsOf(said) } as const);
    const isEmpty = answer.parts.length === 0 && !("progress" in answer) && !("failure" in answer);
    return isEmpty ? question : [...question, { ...answer, taskId: task.id }];
  });
}

/** Removes duplicates, because some agents repeat the messages of a context in all of its tasks. Keeps the last answer of a task, which has its artifacts. */
export function distinct(messages: readonly ConversationMessage[]): readonly ConversationMessage[] {
  const ids = new Set<string>();
  return messages.flatMap((message) => {
    const { id, taskId, state } = message;
    const isRepeated = ids.has(id);
    ids.add(id);
    if (!isRepeated) return [message];
    return state === undefined ? [] : [{ ...message, id: `${id}-${taskId}` }];
  });
}

/** The id of the answer to a message. */
export function answerId(messageId: string): string {
  return `answer-${messageId}`;
}

/** A user message. Empty if it only decides on tool calls or contains a credential. */
export function userMessages(message: Message, taskId?: string): readonly ConversationMessage[] {
  const parts = partsOf([message]);
  const { messageId: id } = message;
  return parts.length === 0 ? [] : [{ id, role: "user", parts, ...(taskId !== undefined && { taskId }) }];
}

/** The parts that a page shows. Omits parts of a `Question`, answers to it, and links such as `javascript:`. */
export function partsOf(said: readonly Pick<Message, "parts">[]): readonly Part[] {
  return said.flatMap(({ parts }) => parts.filter((part) => isSafe(part) && !isOfQuestion(part)));
}

function isSafe({ url }: Part): boolean {
  return url === undefined || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol));
}

function isOfQuestion(part: Part): boolean {
  const { data, mediaType } = part;
  if (data !== undefined && mediaType === formType) return true;
  if (!isObject(data)) return false;
  const isDecision = typeof data["approvalId"] === "string" && typeof data["approved"] === "boolean";
  return isDecision || authorizationMember in data || approvalsIn(part).length > 0;
}

const formType = "application/schema+json";

/** What the task waits for. */
export function questionOf({ id: taskId, status: { state, message } }: Task): Question | undefined {
  if (!isInterrupted(state)) return undefined;
  const parts = message?.parts ?? [];
  const schema = parts.find(({ mediaType }) => mediaType === formType)?.data;
  const authorization = readAuthorization(message);
  return {
    taskId,
    kind: state === "TASK_STATE_AUTH_REQUIRED" ? "auth" : "input",
    text: textOf(parts),
    approvals: parts.flatMap(approvalsIn),
    ...(schema !== undefined && { schema }),
    ...(authorization !== undefined && { authorization }),
  };
}

/** Why the agent failed or rejected the task. */
function failureOf({ status: { state, message } }: Task): string | undefined {
  if (state !== "TASK_STATE_FAILED" && state !== "TASK_STATE_REJECTED") return undefined;
  return textOf(message?.parts ?? []) || "The agent failed without a reason";
}

/** The status of a task on a page, except for errors. */
export function statusOf(task: Task | undefined): Status {
  if (task === undefined) return "submitted";
  const { state } = task.status;
  if (isTerminal(state) || isInterrupted(state)) return "ready";
  return state === "TASK_STATE_SUBMITTED" ? "submitted" : "streaming";
}

const errors = new WeakMap<Task, Error>();

/** The failure of a task as an error. Returns the same object for the same task. */
export function errorOf(task: Task | undefined): Error | undefined {
  const failure = task && failureOf(task);
  if (task === undefined || failure === undefined) return undefined;
  const error = errors.get(task) ?? new Error(failure);
  errors.set(task, error);
  return error;
}

/** The messages of a task, each once. */
function historyOf(
  { history = [], status: { state, message } }: Task,
  sent: readonly SentMessage[],
): readonly Message[] {
  const asked = new Map<string, Message>();
  for (const message of history.toReversed()) asked.set(message.messageId, message);
  const all = history.filter((message) => message.role === "ROLE_AGENT" || asked.get(message.messageId) === message);
  const has = (id: string): boolean => all.some(({ messageId }) => messageId === id);
  // Some agents use the same id for all of their messages.
  const repeats = ({ messageId, parts }: Message): boolean =>
    all.some((each) => each.messageId === messageId && JSON.stringify(each.parts) === JSON.stringify(parts));
  let added = 0;
  for (const { message: own, at } of sent) {
    if (!has(own.messageId)) all.splice(Math.min(at + added++, all.length), 0, own);
  }
  const isSaid = isInterrupted(state) || isTerminal(state);
  return message !== undefined && isSaid && !repeats(message) ? [...all, message] : all;
}

interface Turn {
  /** `undefined` if the history no longer has it. */
  readonly asked: Message | undefined;
  readonly said: readonly Message[];
}

function turnsOf(history: readonly Message[]): readonly Turn[] {
  const starts = history.flatMap(({ role }, at) => (role === "ROLE_USER" || at === 0 ? [at] : []));
  if (starts.length === 0) return [{ asked: undefined, said: [] }];
  return starts.map((start, at) => {
    const messages = history.slice(start, starts[at + 1]);
    const asked = messages.find(({ role }) => role === "ROLE_USER");
    return { asked, said: messages.filter((message) => message !== asked) };
  });
}

function lastAnswer(task: Task, id: string, said: readonly Message[]): ConversationMessage {
  const { artifacts = [], status } = task;
  const made = artifacts.flatMap(({ parts }) => parts.filter(isSafe));
  const failure = failureOf(task);
  const isActive = !isInterrupted(status.state) && !isTerminal(status.state);
  const progress = isActive ? textOf(status.message?.parts ?? []) : "";
  const told = said.filter((message) => failure === undefined || message.messageId !== status.message?.messageId);
  // Some agents repeat their artifacts in the last message, for clients that do not show artifacts.
  const texts = artifacts.map(({ parts }) => textOf(parts));
  const shown = [...texts, texts.join(""), texts.join("\n")].map((text) => text.trim());
  const isRepeated = (part: Part): boolean =>
    made.length > 0 && part.text !== undefined && shown.includes(part.text.trim());
  return {
    id,
    role: "assistant",
    parts: [...made, ...partsOf(told).filter((part) => !isRepeated(part))],
    state: status.state,
    ...(progress !== "" && { progress }),
    ...(failure !== undefined && { failure }),
  };
}

const textOf = (parts: readonly Part[]): string => parts.map(({ text = "" }) => text).join("");

function approvalsIn({ data }: Part): readonly ApprovalRequest[] {
  const listed = isObject(data) ? data["approvals"] : undefined;
  return Array.isArray(listed) ? listed.flatMap((each: unknown) => approvalOf(each)) : [];
}

function approvalOf(value: unknown): readonly ApprovalRequest[] {
  if (!isObject(value)) return [];
  const { approvalId: id, toolCallId, toolName, input = null, digest } = value;
  if (typeof id !== "string" || typeof toolCallId !== "string" || typeof toolName !== "string") return [];
  const asked = { id, toolCallId, toolName, input: input as JsonValue };
  return [{ ...asked, ...(typeof digest === "string" && { digest }) }];
}
