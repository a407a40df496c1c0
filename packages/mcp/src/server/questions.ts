import type { Message, Part, Task } from "@parley/a2a";
import { readAuthorization } from "@parley/a2a";
import { textOf } from "@parley/a2a/model";
import { formIn, type Field } from "@parley/a2a/internal/schema/form";
import type { ElicitRequestFormParams, InputRequest } from "@modelcontextprotocol/server";

/* Questions of a task as elicitations, and their answers as parts of a message. */

/** Which modes of elicitation a client can show. */
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

/** The elicitation for a task that waits; `undefined`: the client cannot show it, or there is nothing to ask. */
export function questionOf(task: Task, modes: ElicitModes): InputRequest | undefined {
  const { state, message } = task.status;
  const said = message === undefined ? "" : textOf(message);
  if (state === "TASK_STATE_AUTH_REQUIRED") {
    const url = readAuthorization(message)?.url;
    if (url === undefined || !modes.url) return undefined;
    const text = `${said === "" ? "The agent asks for an authorization." : said} (${new URL(url).host})`;
    return { method: "elicitation/create", params: { mode: "url", message: text, url, elicitationId: idOf(task) } };
  }
  if (state !== "TASK_STATE_INPUT_REQUIRED" || !modes.form) return undefined;
  const params: ElicitRequestFormParams = {
    mode: "form",
    message: said === "" ? "The agent asks for input." : said,
    requestedSchema: schemaOf(message),
  };
  return { method: "elicitation/create", params };
}

/** Identifies the question of a task: the id of its message, or without a message the time of the status. */
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

/** Elicitations have flat forms of primitive values. Other forms are asked as one text. */
function schemaOf(message: Message | undefined): Requested {
  const fields = formIn(message)?.fields;
  if (fields === undefined) return oneText;
  const properties = Object.fromEntries(fields.map((field) => [field.name, propertyOf(field)]));
  return { type: "object", properties, required: fields.filter((each) => each.required).map(({ name }) => name) };
}

function propertyOf({ label, description, kind, choices, schema }: Field): Property {
  const about = { title: label, ...(description !== undefined && { description }) };
  if (kind === "boolean") return { ...about, type: "boolean" };
  if (kind === "string") {
    const texts = choices?.filter((choice): choice is string => typeof choice === "string");
    if (texts !== undefined && texts.length > 0) return { ...about, type: "string", enum: texts };
    const { minLength, maxLength } = schema;
    const bounds = {
      ...(typeof minLength === "number" && { minLength }),
      ...(typeof maxLength === "number" && { maxLength }),
    };
    return { ...about, type: "string", ...bounds };
  }
  const { minimum, maximum } = schema;
  const range = {
    ...(typeof minimum === "number" && { minimum }),
    ...(typeof maximum === "number" && { maximum }),
  };
  return { ...about, type: kind, ...range };
}

/** What a person answered. */
export type Answered =
  | { readonly kind: "parts"; readonly parts: readonly Part[] }
  /** A page was opened: the agent learns the rest itself. */
  | { readonly kind: "opened" }
  | { readonly kind: "declined" }
  | { readonly kind: "missing" };

/** Reads the answer to the question of a task. The values are untrusted: the agent checks them. */
export function answerOf(task: Task, given: unknown): Answered {
  if (typeof given !== "object" || given === null || !("action" in given)) return { kind: "missing" };
  if (given.action !== "accept") return { kind: "declined" };
  if (task.status.state === "TASK_STATE_AUTH_REQUIRED") return { kind: "opened" };
  const content = "content" in given && typeof given.content === "object" ? given.content : {};
  const values: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(content ?? {})) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") values[name] = value;
  }
  if (formIn(task.status.message)?.fields !== undefined) return { kind: "parts", parts: [{ data: values }] };
  const { answer } = values;
  return answer === undefined ? { kind: "missing" } : { kind: "parts", parts: [{ text: String(answer) }] };
}
