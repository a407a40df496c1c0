import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { line } from "@parley/a2a/internal/base/display";
import { answerOf, hintOf, onlyText, shown, type Field } from "@parley/a2a/internal/schema/form";
import type { Io } from "./io.ts";
import { maxLength } from "./output/text.ts";

/* Asks a user at a terminal to fill in a form. */

/**
 * Asks for each field of a form until its answer is valid. Fills in a field that allows only one text.
 *
 * @param before - Earlier answers, as defaults: the agent may ask again.
 * @returns the data; `undefined` if the user left the form.
 */
export async function fill(io: Io, fields: readonly Field[], before: JsonObject): Promise<JsonObject | undefined> {
  const given: (readonly [name: string, value: JsonValue])[] = [];
  for (const field of fields) {
    const only = onlyText(field);
    if (only !== undefined) {
      given.push([field.name, only]);
      continue;
    }
    const initial = Object.hasOwn(before, field.name) ? before[field.name] : field.initial;
    const value = await ask(io, { ...field, initial });
    if (value === stopped) return undefined;
    if (value !== undefined) given.push([field.name, value]);
  }
  return Object.fromEntries(given);
}

/** The user left the form. */
const stopped = Symbol("stopped");

async function ask(io: Io, field: Field): Promise<JsonValue | undefined | typeof stopped> {
  const { description, initial, schema } = field;
  if (description !== undefined) io.stderr.write(`  ${line(description, maxLength.name)}\n`);
  const hint = hintOf(field);
  const standard = initial === undefined ? "" : ` [${shown(initial)}]`;
  const question = `  ${line(field.label, maxLength.name)}${hint === "" ? "" : ` (${hint})`}${standard}: `;
  for (;;) {
    const text = (await io.ask(question, { hidden: schema["format"] === "password" }))?.trim();
    if (text === undefined) return stopped;
    const answer = answerOf(field, text);
    if ("value" in answer) return answer.value;
    io.stderr.write(`  ${answer.problem}\n`);
  }
}
