import { data, text, type JsonObject, type JsonValue, type Part } from "@parley/a2a/model";
import type { AgentEvent, Turn } from "@parley/server";
import { digestOf, isList, isObject, toPlainJson } from "./json.ts";

/* Turns tool approvals of frameworks into questions (docs/ai-sdk.md). */

/** A tool call that waits for approval. */
export interface Approval {
  readonly approvalId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: JsonValue;
  /** SHA-256 of the canonical JSON of `{ toolName, input }`. The answer repeats it. */
  readonly digest: string;
}

/** An open question, stored in the state of the task. */
interface Asked {
  readonly approvals: readonly Approval[];
  /** The turn that asked. */
  readonly turn: number;
}

export interface Decision {
  readonly approved: boolean;
  readonly reason?: string;
}

/** A suspended loop, with the answer to its question. */
export interface Answered {
  /** The loop that `suspend()` stored. */
  readonly loop: JsonObject;
  readonly approvals: readonly Approval[];
  /** One decision per approval. */
  readonly decisions: readonly Decision[];
}

/** A tool call of a framework that needs approval. */
export interface ApprovalRequest {
  readonly approvalId: string;
  readonly toolCall: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown };
}

export async function approvalOf({ approvalId, toolCall }: ApprovalRequest): Promise<Approval> {
  const { toolCallId, toolName } = toolCall;
  const input = toPlainJson(toolCall.input);
  return { approvalId, toolCallId, toolName, input, digest: await digestOf({ toolName, input }) };
}

/** Stores the loop under the name of its framework, and asks for the approvals. */
export function suspend(turn: Turn, framework: string, loop: JsonObject, approvals: readonly Approval[]): AgentEvent {
  turn.setState({ [framework]: { ...loop, approvals: jsonOf(approvals), turn: turn.number } });
  return ask(turn, approvals);
}

/** The suspended loop with the answer, or the question again if the answer does not fit. `undefined` if nothing is suspended. */
export function resume(turn: Turn, framework: string): Answered | { readonly ask: AgentEvent } | undefined {
  const state = turn.state() as Readonly<Record<string, JsonObject & Asked>> | undefined;
  const loop = state?.[framework];
  if (loop === undefined) return undefined;
  const { approvals } = loop;
  const ids = new Set(approvals.map(({ approvalId }) => approvalId));
  const decisions = hasSeen(turn, loop.turn, (part) => names(part, ids)) ? decisionsOf(turn, approvals) : undefined;
  return decisions === undefined ? { ask: ask(turn, approvals) } : { loop, approvals, decisions };
}

function jsonOf(approvals: readonly Approval[]): readonly JsonObject[] {
  return approvals.map((approval) => ({ ...approval }));
}

/**
 * Whether the sender can have seen the question. False if the message started the turn that asked (and crashed), or was already waiting then,
 * because a `yes` in that message answers something else.
 *
 * @param asked - The turn that asked.
 * @param asks - Whether a part belongs to the question.
 * @param after - How many messages of the history are older than the question. Such a message may have the same parts.
 */
export function hasSeen(
  { task, message, number }: Turn,
  asked: number,
  asks: (part: Part) => boolean,
  after = 0,
): boolean {
  if (number === asked) return false;
  const history = task?.history ?? [];
  const question = history.findIndex(({ role, parts }, at) => at >= after && role === "ROLE_AGENT" && parts.some(asks));
  const said = history.findIndex(({ messageId }) => messageId === message.messageId);
  return said < 0 || said > question;
}

/** Whether a part is the data of a question about these approvals. */
function names({ data: value }: Part, ids: ReadonlySet<string>): boolean {
  const list = isObject(value) ? value["approvals"] : undefined;
  return (
    isList(list) &&
    list.some((each) => isObject(each) && typeof each["approvalId"] === "string" && ids.has(each["approvalId"]))
  );
}

const maxShown = 2000;

function ask(turn: Turn, approvals: readonly Approval[]): AgentEvent {
  const lines = approvals.map(({ toolName, input }) => {
    const shown = JSON.stringify(input);
    return `${toolName} ${shown.length > maxShown ? `${shown.slice(0, maxShown)}…` : shown}`;
  });
  const question = lines.length === 1 ? `Approve ${lines[0]}?` : `Approve each of these?\n${lines.join("\n")}`;
  const form: Part = { data: formOf(approvals), mediaType: "application/schema+json" };
  return turn.inputRequired([text(question), data({ approvals: jsonOf(approvals) }), form]);
}

/** The suffix of field names. This is a number, unless there is only one approval. */
function suffix(approvals: readonly Approval[], at: number): string {
  return approvals.length === 1 ? "" : `${at + 1}`;
}

function formOf(approvals: readonly Approval[]): JsonObject {
  const fields = approvals.flatMap(({ toolName, digest }, at): [string, JsonObject][] => {
    const end = suffix(approvals, at);
    return [
      [`approved${end}`, { type: "boolean", title: `Approve ${toolName}` }],
      [`reason${end}`, { type: "string", title: "Reason" }],
      [`digest${end}`, { type: "string", const: digest }],
    ];
  });
  const required = fields.map(([name]) => name).filter((name) => !name.startsWith("reason"));
  return { type: "object", properties: Object.fromEntries(fields), required };
}

const yes = /^\s*(y|yes|ok|okay|approve|approved|allow)[.!]?\s*$/i;
const no = /^\s*(n|no|deny|denied|reject|refuse)[.!]?\s*$/i;

/** The decision for each approval. `undefined` if a decision is missing or is for other arguments. */
function decisionsOf(turn: Turn, approvals: readonly Approval[]): readonly Decision[] | undefined {
  const given = turn.message.parts.flatMap((part) => answersIn(part, approvals));
  const isText = turn.message.parts.every(({ text }) => text !== undefined);
  if (given.length === 0 && approvals.length === 1 && isText) {
    if (yes.test(turn.text)) return [{ approved: true }];
    if (no.test(turn.text)) return [{ approved: false }];
  }
  const left = [...given];
  const decisions: Decision[] = [];
  for (const { approvalId, digest } of approvals) {
    const at = left.findIndex(
      (answer) => answer.digest === digest && (answer.approvalId === undefined || answer.approvalId === approvalId),
    );
    const [answer] = at < 0 ? [] : left.splice(at, 1);
    if (answer === undefined) return undefined;
    const { approved, reason } = answer;
    decisions.push({ approved, ...(reason !== undefined && { reason }) });
  }
  // An answer to anything else invalidates all decisions, because the sender saw another question.
  return left.length === 0 ? decisions : undefined;
}

interface Given extends Decision {
  readonly digest: string;
  readonly approvalId?: string;
}

function answersIn(part: Part, approvals: readonly Approval[]): Given[] {
  const value = part.data ?? jsonObjectIn(part.text);
  const several = isObject(value) ? value["approvals"] : value;
  const list: readonly JsonValue[] = isList(several) ? several : [];
  const ends = new Set(["", ...approvals.map((_, at) => suffix(approvals, at))]);
  const numbered = isObject(value) ? [...ends].map((end) => numberedIn(value, end)) : [];
  return [...list, ...numbered].flatMap((each) => (isGiven(each) ? [each] : []));
}

function numberedIn(value: JsonObject, end: string): JsonObject {
  const { [`approved${end}`]: approved, [`reason${end}`]: reason, [`digest${end}`]: digest } = value;
  const { approvalId } = value;
  const members = { approved, reason: reason === "" ? undefined : reason, digest, ...(end === "" && { approvalId }) };
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, each]) => (each === undefined ? [] : [[name, each]])),
  );
}

function isGiven(value: JsonValue): value is JsonObject & Given {
  if (!isObject(value)) return false;
  const { approved, digest, reason = "", approvalId = "" } = value;
  return [digest, reason, approvalId].every((each) => typeof each === "string") && typeof approved === "boolean";
}

export function jsonObjectIn(given: string | undefined): JsonValue | undefined {
  try {
    return given?.trimStart().startsWith("{") ? (JSON.parse(given) as JsonValue) : undefined;
  } catch {
    return undefined;
  }
}
