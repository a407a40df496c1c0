import { data, text, type JsonObject, type JsonValue, type Part } from "@parley/a2a/model";
import type { AgentEvent, Turn } from "@parley/server";
import {
  approvalOf,
  hasSeen,
  resume as resumeApprovals,
  suspend as suspendApprovals,
  type Approval,
  type Decision,
} from "../shared/approvals.ts";
import { isList, isObject, parseJson } from "../shared/json.ts";
import { viewOf } from "../shared/view.ts";
import { Validator } from "./peer.ts";
import type { StoredThread } from "./thread.ts";

/* Interrupts as questions (docs/langgraph.md). */

/** An interrupt of a node, or a breakpoint of the graph. */
export interface Interrupt {
  /** The id of the interrupt. A breakpoint has the id of the checkpoint. */
  readonly id: string;
  readonly value: JsonValue;
  readonly schema?: JsonObject;
  readonly isBreakpoint?: boolean;
}

/** A suspended graph in the state of the task. */
interface Suspended {
  readonly thread: StoredThread;
  readonly asked: readonly Interrupt[];
  readonly turn: number;
}

/** The input that continues a graph: values by interrupt id, or `null` to continue from a breakpoint. */
export type Resumed = Readonly<Record<string, JsonValue>> | null;

const framework = "langGraph";

/** Stores the thread, and asks the questions. */
export async function ask(turn: Turn, thread: JsonObject, asked: readonly Interrupt[]): Promise<AgentEvent> {
  const requests = asked.flatMap(requestsOf);
  const loop = { thread, asked: asked.map((each) => ({ ...each })), turn: turn.number };
  if (requests.length > 0 && asked.every((each) => requestsOf(each).length > 0)) {
    const approvals = await Promise.all(requests.map(approvalOf));
    return suspendApprovals(turn, framework, loop, approvals);
  }
  turn.setState({ [framework]: loop });
  return question(turn, asked);
}

/** The suspended thread with its answers. If an answer does not fit, the event that repeats the question. `undefined` if no thread is suspended. */
export function resume(
  turn: Turn,
): { readonly event: AgentEvent } | { readonly thread: StoredThread; readonly answers: Resumed } | undefined {
  const { [framework]: suspended } = viewOf<{ [framework]: Suspended & { readonly approvals?: unknown } }>(
    turn.state(),
  );
  if (suspended === undefined) return undefined;
  const { thread, asked } = suspended;
  if (suspended.approvals !== undefined) {
    const resumed = resumeApprovals(turn, framework);
    if (resumed === undefined) return undefined;
    if ("ask" in resumed) return { event: resumed.ask };
    return { thread, answers: decided(asked, resumed.approvals, resumed.decisions) };
  }
  const own = JSON.stringify(shownOf(asked));
  const isQuestion = ({ data: value }: Part): boolean => isObject(value) && JSON.stringify(value["interrupts"]) === own;
  const answers = hasSeen(turn, suspended.turn, isQuestion) ? answersIn(turn, asked) : undefined;
  if (answers === undefined) return { event: question(turn, asked) };
  if (answers !== "no") return { thread, answers };
  turn.setState(undefined);
  return { event: turn.rejected("The graph was not continued") };
}

function shownOf(asked: readonly Interrupt[]): readonly JsonObject[] {
  return asked.map(({ id, value }) => ({ id, value }));
}

const maxShown = 2000;

function question(turn: Turn, asked: readonly Interrupt[]): AgentEvent {
  const lines = asked.map(({ value }) => titleOf(value));
  const schema = formOf(asked);
  const form: readonly Part[] = schema === undefined ? [] : [{ data: schema, mediaType: "application/schema+json" }];
  return turn.inputRequired([text(lines.join("\n")), data({ interrupts: shownOf(asked) }), ...form]);
}

/** The question as text. */
function titleOf(value: JsonValue): string {
  const { question, message, description, title } = isObject(value) ? value : {};
  const words = [value, question, message, description, title].find((each) => typeof each === "string" && each !== "");
  const shown = typeof words === "string" ? words : JSON.stringify(value);
  return shown.length > maxShown ? `${shown.slice(0, maxShown)}…` : shown;
}

/** The schema of an answer: the schema of the interrupt, or the value of the interrupt if the value is a schema. */
function schemaOf({ value, schema }: Interrupt): JsonObject | undefined {
  if (schema !== undefined) return schema;
  return isObject(value) && value["type"] === "object" && isObject(value["properties"]) ? value : undefined;
}

function isForm(schema: JsonObject | undefined): schema is JsonObject {
  return schema?.["type"] === "object";
}

function nameOf(asked: readonly Interrupt[], at: number): string {
  return asked.length === 1 ? "answer" : `answer${at + 1}`;
}

/** The form for all answers. A single question with an object schema is its own form. */
function formOf(asked: readonly Interrupt[]): JsonObject | undefined {
  const schemas = asked.map(schemaOf);
  const [only] = schemas;
  if (asked.length === 1 && (only === undefined || isForm(only))) return only;
  const fields = asked.map((each, at): [string, JsonObject] => [
    nameOf(asked, at),
    { title: titleOf(each.value), ...(schemas[at] ?? { type: "string" }) },
  ]);
  return { type: "object", properties: Object.fromEntries(fields), required: fields.map(([name]) => name) };
}

/** The answers in a message. `undefined` if an answer is missing or does not match its schema. */
function answersIn(turn: Turn, asked: readonly Interrupt[]): Resumed | "no" | undefined {
  const given = turn.message.parts.flatMap(({ data: value }) => (value === undefined ? [] : [value]));
  const values = asked.map((each, at) => answerTo(each, nameOf(asked, at), asked.length, given, turn.text));
  const fits = values.every((value, at) => value !== undefined && isValid(value, asked[at]));
  if (!fits) return undefined;
  if (asked[0]?.isBreakpoint === true) return values[0] === true ? null : "no";
  return Object.fromEntries(asked.map(({ id }, at) => [id, values[at] ?? null]));
}

function answerTo(
  each: Interrupt,
  name: string,
  count: number,
  given: readonly JsonValue[],
  said: string,
): JsonValue | undefined {
  for (const value of given) {
    const members = isObject(value) ? value : {};
    const named = [members["interrupts"]].flatMap((list) => (isList(list) ? list : []));
    for (const one of named) if (isObject(one) && one["id"] === each.id && "value" in one) return one["value"];
    if (Object.hasOwn(members, name)) return members[name];
    // An answer to several questions names each question.
    if (count === 1 && !("interrupts" in members)) return value;
  }
  if (count > 1 || given.length > 0 || said.trim() === "") return undefined;
  return fromText(said, schemaOf(each));
}

const yes = /^\s*(y|yes|ok|okay|approve|approved|true)[.!]?\s*$/i;
const no = /^\s*(n|no|deny|denied|reject|refuse|false)[.!]?\s*$/i;

function fromText(said: string, schema: JsonObject | undefined): JsonValue | undefined {
  const type = schema?.["type"];
  if (type === "boolean") return yes.test(said) ? true : no.test(said) ? false : undefined;
  if (schema === undefined || type === "string" || "enum" in schema) return said;
  try {
    return parseJson(said);
  } catch {
    return undefined;
  }
}

function isValid(value: JsonValue | undefined, asked: Interrupt | undefined): boolean {
  // From such a value, LangGraph would instantiate a class when it reads the checkpoint.
  if (/[{,]"lc":/.test(JSON.stringify(value))) return false;
  const schema = asked && schemaOf(asked);
  if (schema === undefined) return true;
  try {
    return new Validator(schema).validate(value).valid;
  } catch {
    // The validator does not support this schema, so the graph must check the answer.
    return true;
  }
}

/** Tool calls that wait for approval, in the format of langchain's middleware or LangGraph's `HumanInterrupt`. */
function requestsOf({ id, value }: Interrupt): readonly Parameters<typeof approvalOf>[0][] {
  return actionsOf(value).map(({ name, input }, at) => ({
    approvalId: `${id}-${at + 1}`,
    toolCall: { toolCallId: `${id}-${at + 1}`, toolName: name, input },
  }));
}

function actionsOf(value: JsonValue): readonly { readonly name: string; readonly input: JsonValue }[] {
  const several = isObject(value) ? value["actionRequests"] : value;
  return (isList(several) ? several : [several]).flatMap((each) => {
    const { action_request: human } = isObject(each) ? each : {};
    const request = isObject(value) && "actionRequests" in value ? each : human;
    if (!isObject(request)) return [];
    const name = request["name"] ?? request["action"];
    return typeof name === "string" ? [{ name, input: request["args"] ?? {} }] : [];
  });
}

/** Decisions in the format that the interrupt expects. */
function decided(asked: readonly Interrupt[], approvals: readonly Approval[], decisions: readonly Decision[]): Resumed {
  const values = asked.map(({ id, value }): [string, JsonValue] => {
    const own = decisions.filter((_, at) => approvals[at]?.approvalId.slice(0, id.length) === id);
    if (isObject(value) && "actionRequests" in value) {
      return [
        id,
        {
          decisions: own.map(({ approved, reason }) =>
            approved ? { type: "approve" } : { type: "reject", ...(reason !== undefined && { message: reason }) },
          ),
        },
      ];
    }
    const responses = own.map(({ approved, reason }): JsonValue => {
      if (approved) return { type: "accept", args: null };
      return reason === undefined ? { type: "ignore", args: null } : { type: "response", args: reason };
    });
    return [id, isList(value) ? responses : (responses[0] ?? null)];
  });
  return Object.fromEntries(values);
}
