import type { Message, Part, Task } from "@parley/a2a";
import { readAuthorization } from "@parley/a2a";
import { textOf, type JsonObject, type JsonValue } from "@parley/a2a/model";
import { plain } from "@parley/a2a/protocol";
import { formIn, isForm, onlyText, type Field } from "@parley/a2a/internal/schema/form";
import type { ElicitRequestFormParams, InputRequest } from "@modelcontextprotocol/server";
import * as z from "zod";

/* Turns questions of a task into elicitations, and their answers into message parts. */

/** The elicitation modes that a client supports. */
export interface ElicitModes {
  readonly form: boolean;
  readonly url: boolean;
}

/** The modes that capabilities declare. `elicitation: {}` means forms. */
export function elicitModes(capabilities: { readonly elicitation?: unknown } | undefined): ElicitModes {
  const { elicitation } = capabilities ?? {};
  if (typeof elicitation !== "object" || elicitation === null) return { form: false, url: false };
  const url = "url" in elicitation;
  return { form: "form" in elicitation || !url, url };
}

/** The elicitation for a waiting task. `undefined` if there is nothing to ask or the client cannot show the elicitation. */
export function questionOf(task: Task, modes: ElicitModes): InputRequest | undefined {
  const { state, message } = task.status;
  const said = message === undefined ? "" : plain(textOf(message), maxQuestion);
  if (state === "TASK_STATE_AUTH_REQUIRED") {
    const url = readAuthorization(message)?.url;
    if (url === undefined || !modes.url) return undefined;
    const text = `${said === "" ? "The agent asks for authorization." : said} (${new URL(url).host})`;
    return { method: "elicitation/create", params: { mode: "url", message: text, url, elicitationId: idOf(task) } };
  }
  if (state !== "TASK_STATE_INPUT_REQUIRED" || !modes.form) return undefined;
  const params: ElicitRequestFormParams = {
    mode: "form",
    message: said === "" ? "The agent asks for input." : said,
    requestedSchema: formOf(message)?.requested ?? oneText,
  };
  return { method: "elicitation/create", params };
}

/** Identifies the question of a task: by the id of its message, or by the time of the status if there is no message. */
export function idOf({ status: { message, timestamp = "" } }: Task): string {
  return message?.messageId ?? `question${timestamp}`;
}

type Requested = ElicitRequestFormParams["requestedSchema"];
type Property = Requested["properties"][string];

const oneText: Requested = {
  type: "object",
  properties: { answer: { type: "string", title: "Answer" } },
  required: ["answer"],
};

interface McpForm {
  readonly requested: Requested;
  /** Members with only one possible text. The form omits these members, because many clients show every member to the user. */
  readonly fixed: Readonly<Record<string, string>>;
}

/** Converts the form of a question to an MCP form: flat, with primitive values and choices. `undefined` to ask for one text instead. */
function formOf(message: Message | undefined): McpForm | undefined {
  const schema = schemaIn(message);
  const given = Object.entries(isObject(schema?.["properties"]) ? schema["properties"] : {});
  if (schema === undefined || given.length > maxFields) return undefined;
  const required = namesIn(schema["required"]);
  const asked = new Map<string, Property>();
  const others = given.filter(([name, each]) => {
    const { success, data } = Choices.safeParse(each);
    if (success) asked.set(name, data);
    return !success;
  });
  const isOther = (name: string): boolean => others.some(([each]) => each === name);
  const fields =
    others.length === 0 && asked.size > 0
      ? []
      : fieldsOf({ ...schema, properties: Object.fromEntries(others), required: required.filter(isOther) });
  if (fields === undefined) return undefined;
  const fixed: Record<string, string> = {};
  for (const field of fields) {
    const only = onlyText(field);
    if (only === undefined) asked.set(field.name, propertyOf(field));
    else fixed[field.name] = only;
  }
  // Keeps the agent's order.
  const properties = given.flatMap(([name]): [string, Property][] => {
    const property = asked.get(name);
    return property === undefined ? [] : [[name, property]];
  });
  const requested: Requested = {
    type: "object",
    properties: Object.fromEntries(properties),
    required: required.filter((name) => asked.has(name)),
  };
  return JSON.stringify(requested).length > maxForm ? undefined : { requested, fixed };
}

/** Maximum length of a question, in characters. */
const maxQuestion = 4000;

/** Maximum length of a form as JSON, in characters. */
const maxForm = 64 << 10;

const maxFields = 50;

function schemaIn(message: Message | undefined): JsonObject | undefined {
  const data = message?.parts.find(isForm)?.data;
  if (!isObject(data)) return undefined;
  const { form } = data;
  return isObject(form) && !isObject(data["properties"]) ? form : data;
}

function fieldsOf(schema: JsonObject): readonly Field[] | undefined {
  const parts = [{ data: schema, mediaType: "application/schema+json" }];
  return formIn({ messageId: "form", role: "ROLE_AGENT", parts })?.fields;
}

function namesIn(required: JsonValue | undefined): string[] {
  return Array.isArray(required) ? required.filter((each) => typeof each === "string") : [];
}

const about = { title: z.string().optional(), description: z.string().optional() };
const titled = z.array(z.object({ const: z.string(), title: z.string() })).min(1);
const texts = z.array(z.string()).min(1);
const several = {
  ...about,
  type: z.literal("array"),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  default: z.array(z.string()).optional(),
};

/** Titled choices and multiple choices, for which MCP has the same formats. */
const Choices = z.union([
  z.object({ ...about, type: z.literal("string"), oneOf: titled, default: z.string().optional() }),
  z.object({ ...about, type: z.literal("string"), enum: texts, enumNames: texts, default: z.string().optional() }),
  z.object({ ...several, items: z.object({ type: z.literal("string"), enum: texts }) }),
  z.object({ ...several, items: z.object({ anyOf: titled }) }),
]);

function propertyOf({ label, description, kind, choices, initial, schema }: Field): Property {
  const named = { title: label, ...(description !== undefined && { description }) };
  if (kind === "boolean")
    return { ...named, type: "boolean", ...(typeof initial === "boolean" && { default: initial }) };
  if (kind === "string") {
    const standard = { ...named, type: kind, ...(typeof initial === "string" && { default: initial }) };
    const allowed = choices?.filter((choice): choice is string => typeof choice === "string");
    if (allowed !== undefined && allowed.length > 0) return { ...standard, enum: allowed };
    const { minLength, maxLength, format } = schema;
    const known = formats.find((each) => each === format);
    return {
      ...standard,
      ...(typeof minLength === "number" && { minLength }),
      ...(typeof maxLength === "number" && { maxLength }),
      ...(known !== undefined && { format: known }),
    };
  }
  const { minimum, maximum } = schema;
  return {
    ...named,
    type: kind,
    ...(typeof minimum === "number" && { minimum }),
    ...(typeof maximum === "number" && { maximum }),
    ...(typeof initial === "number" && { default: initial }),
  };
}

/** The formats that MCP defines. */
const formats = ["email", "uri", "date", "date-time"] as const;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The user's answer. */
export type Answered =
  | { readonly kind: "parts"; readonly parts: readonly Part[] }
  /** The user opened a page, which informs the agent directly. */
  | { readonly kind: "opened" }
  | { readonly kind: "declined" }
  | { readonly kind: "missing" };

const Value = z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]);

/** Reads the answer to the question of a task. The agent validates the untrusted values. */
export function answerOf(task: Task, given: unknown): Answered {
  if (typeof given !== "object" || given === null || !("action" in given)) return { kind: "missing" };
  if (given.action !== "accept") return { kind: "declined" };
  if (task.status.state === "TASK_STATE_AUTH_REQUIRED") return { kind: "opened" };
  const content = "content" in given && typeof given.content === "object" ? given.content : {};
  const values: Record<string, string | number | boolean | string[]> = {};
  for (const [name, value] of Object.entries(content ?? {})) {
    const { success, data } = Value.safeParse(value);
    if (success) values[name] = data;
  }
  const form = formOf(task.status.message);
  if (form !== undefined) return { kind: "parts", parts: [{ data: { ...values, ...form.fixed } }] };
  const { answer } = values;
  return answer === undefined ? { kind: "missing" } : { kind: "parts", parts: [{ text: String(answer) }] };
}
