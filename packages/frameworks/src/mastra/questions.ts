import { answerOf, formIn } from "@parley/a2a/internal/schema/form";
import { data, text, type JsonObject, type JsonValue, type Part } from "@parley/a2a/model";
import type { AgentEvent, Turn } from "@parley/server";
import { hasSeen, jsonObjectIn } from "../shared/approvals.ts";
import { digestOf, isObject, toPlainJson } from "../shared/json.ts";

/* Turns a tool's `suspend()` into a question, with its `resumeSchema` as the form. */

/** A suspended tool call, stored in the state of the task with the turn that asked. */
export interface Suspended {
  readonly id: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: JsonValue;
  /** The argument of `suspend()`. */
  readonly payload: JsonValue;
  /** JSON Schema of the answer. */
  readonly schema: JsonObject;
  /** SHA-256 of the canonical JSON of `{ toolName, input, payload }`. The answer repeats it. */
  readonly digest: string;
}

/** The payload of the chunk for a suspended tool call. */
export interface SuspendedPayload {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args?: unknown;
  readonly suspendPayload?: unknown;
  readonly resumeSchema?: unknown;
}

export async function suspendedOf(id: string, chunk: SuspendedPayload): Promise<Suspended> {
  const { toolCallId, toolName, args, suspendPayload, resumeSchema } = chunk;
  const input = toPlainJson(args);
  const payload = toPlainJson(suspendPayload);
  const digest = await digestOf({ toolName, input, payload });
  const schema = jsonObjectIn(typeof resumeSchema === "string" ? resumeSchema : undefined);
  return { id, toolCallId, toolName, input, payload, schema: isObject(schema) ? schema : {}, digest };
}

const maxShown = 2000;

/** Asks for the data that resumes the tool. */
export function ask(turn: Turn, { schema, ...suspended }: Suspended, problem?: string): AgentEvent {
  const { toolName, payload, digest } = suspended;
  const [said, ...others] = isObject(payload) ? Object.values(payload) : [payload];
  const shown = typeof said === "string" && others.length === 0 ? said : JSON.stringify(payload);
  const line = `${toolName} asks: ${shown.length > maxShown ? `${shown.slice(0, maxShown)}…` : shown}`;
  const form: Part = { data: formOf(schema, digest), mediaType: "application/schema+json" };
  return turn.inputRequired([
    text(problem === undefined ? line : `${line}\n${problem}`),
    data({ suspended: { ...suspended } }),
    form,
  ]);
}

/** Whether the schema is not an object, and is therefore wrapped as the member `answer`. */
function isWrapped({ type, properties }: JsonObject): boolean {
  return type !== "object" || !isObject(properties);
}

/** Name of the digest field. The schema may come from the question of another agent, whose form already has a digest. */
function digestKey({ properties }: JsonObject): string {
  return isObject(properties) && "digest" in properties ? "questionDigest" : "digest";
}

function formOf(schema: JsonObject, digest: string): JsonObject {
  const { properties, required } = isWrapped(schema)
    ? { properties: { answer: schema }, required: ["answer"] }
    : schema;
  const names = Array.isArray(required) ? required.map(String) : [];
  return {
    type: "object",
    properties: { ...(isObject(properties) && properties), [digestKey(schema)]: { type: "string", const: digest } },
    required: [...names, digestKey(schema)],
  };
}

/** The data that resumes the tool. `undefined` if the message does not answer the question. */
export function answerIn(turn: Turn, suspended: Suspended, asked: number): { readonly value: JsonValue } | undefined {
  const { id, schema, digest } = suspended;
  if (!hasSeen(turn, asked, (part) => idIn(part) === id)) return undefined;
  const { parts } = turn.message;
  for (const part of parts) {
    const given = part.data ?? jsonObjectIn(part.text);
    const { [digestKey(schema)]: named, ...value } = isObject(given) ? given : {};
    if (named !== digest) continue;
    if (!isWrapped(schema)) return { value };
    if (value["answer"] !== undefined) return { value: value["answer"] };
  }
  return parts.every((part) => part.text !== undefined) ? textAnswer(turn.text.trim(), suspended) : undefined;
}

function idIn({ data: value }: Part): JsonValue | undefined {
  const suspended = isObject(value) ? value["suspended"] : undefined;
  return isObject(suspended) ? suspended["id"] : undefined;
}

/** A text can answer a form with a single required field. */
function textAnswer(given: string, { schema, digest }: Suspended): { readonly value: JsonValue } | undefined {
  const form: Part = { data: formOf(schema, digest), mediaType: "application/schema+json" };
  const fields = formIn({ messageId: "form", role: "ROLE_AGENT", parts: [form] })?.fields ?? [];
  const [field, ...others] = fields.filter(({ name, required }) => required && name !== digestKey(schema));
  if (field === undefined || others.length > 0) return undefined;
  const answer = answerOf(field, given);
  if ("problem" in answer || answer.value === undefined) return undefined;
  return { value: isWrapped(schema) ? answer.value : { [field.name]: answer.value } };
}

/** Why an answer does not match the `resumeSchema` of a tool (Standard Schema). `undefined` if it matches, or the tool has no schema. */
export async function problemOf(resumeSchema: unknown, value: JsonValue): Promise<string | undefined> {
  const { "~standard": standard } = (resumeSchema ?? {}) as { readonly "~standard"?: Standard };
  const { issues = [] } = (await standard?.validate(value)) ?? {};
  const lines = issues.slice(0, 10).map(({ message, path = [] }) => `${path.map(keyOf).join(".")}: ${message}`);
  return lines.length === 0 ? undefined : `The answer does not fit: ${lines.join("; ")}`.slice(0, maxShown);
}

interface Standard {
  validate(value: unknown): Promise<Checked> | Checked;
}

interface Checked {
  readonly issues?: readonly { readonly message: string; readonly path?: readonly unknown[] }[];
}

function keyOf(key: unknown): string {
  return String(typeof key === "object" && key !== null && "key" in key ? key.key : key);
}
