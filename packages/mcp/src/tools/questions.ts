import type { JsonObject, JsonValue, Message } from "@parley/a2a/model";
import { textOf } from "@parley/a2a/model";
import { line } from "@parley/a2a/protocol";
import { answerOf, formIn } from "@parley/a2a/internal/schema/form";
import { MessageRefused } from "@parley/a2a/internal/protocol/index";
import { bytesOf, isObject } from "./reading.ts";
import type { ElicitAnswer } from "./port.ts";

/* Turns elicitations of a tool into questions of the task. */

const maxFormBytes = 16 << 10;

/** The question for an elicitation. `undefined` for other requests, such as sampling, or if the link of the elicitation must not be shown. */
export function questionFor(server: string, request: unknown): MessageRefused | undefined {
  const params = paramsOf(request);
  if (params === undefined) return undefined;
  const { message, requestedSchema, url } = params;
  const said = `${server} asks: ${line(typeof message === "string" ? message : "", 2000)}`;
  const link = webLink(url);
  // An answer would mean that the user agreed to open the link.
  if (url !== undefined && link === undefined) return undefined;
  const form = isObject(requestedSchema) && bytesOf(requestedSchema) <= maxFormBytes ? requestedSchema : undefined;
  const ask = [
    { text: link === undefined ? said : `${said}\nOpen ${link}, and answer when you are done.` },
    ...(form === undefined || link !== undefined ? [] : [{ data: form, mediaType: "application/schema+json" }]),
  ];
  return new MessageRefused([], { ask });
}

function paramsOf(request: unknown): JsonObject | undefined {
  if (!isObject(request) || request["method"] !== "elicitation/create") return undefined;
  const { params } = request;
  return isObject(params) ? params : undefined;
}

/** Returns the link if it may be shown to a user. */
function webLink(url: JsonValue | undefined): string | undefined {
  if (typeof url !== "string" || url.length > 4000 || !URL.canParse(url)) return undefined;
  return new URL(url).protocol === "https:" ? new URL(url).href : undefined;
}

/** The answer in a message. `undefined` if it does not answer the question. */
export function answerIn(message: Message, request: unknown): ElicitAnswer | undefined {
  const params = paramsOf(request);
  if (params === undefined) return undefined;
  if (params["url"] !== undefined) return { action: "accept" };
  const schema = isObject(params["requestedSchema"]) ? params["requestedSchema"] : {};
  const text = textOf(message).trim();
  const given = message.parts.map(({ data }) => data).find(isObject) ?? objectIn(text);
  if (given !== undefined) return { action: "accept", content: scalarsOf({ ...defaultsIn(schema), ...given }) };
  const [field, ...others] = formIn(formMessage(schema))?.fields ?? [];
  if (field === undefined || others.some(({ required }) => required)) return undefined;
  const answer = answerOf(field, text);
  return "problem" in answer
    ? undefined
    : { action: "accept", content: scalarsOf({ ...defaultsIn(schema), [field.name]: answer.value ?? "" }) };
}

/** Defaults for fields that an answer omits (SEP-1034). */
function defaultsIn({ properties }: JsonObject): JsonObject {
  const fields = Object.entries(isObject(properties) ? properties : {});
  return Object.fromEntries(
    fields.flatMap(([name, field]) => {
      const standard = isObject(field) ? field["default"] : undefined;
      return standard === undefined ? [] : [[name, standard]];
    }),
  );
}

function formMessage(schema: JsonObject): Message {
  return { messageId: "form", role: "ROLE_AGENT", parts: [{ data: schema, mediaType: "application/schema+json" }] };
}

function objectIn(text: string): JsonObject | undefined {
  if (!text.startsWith("{") || text.length > 100_000) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function scalarsOf(values: JsonObject): Record<string, string | number | boolean> {
  const scalars: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") scalars[name] = value;
  }
  return scalars;
}
