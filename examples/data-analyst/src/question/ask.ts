import { findColumns } from "./columns.ts";
import type { Ask } from "./plan.ts";

/** Thrown while a question is resolved, if the user must be asked first. */
export class Asking extends Error {
  override readonly name = "Asking";
  readonly ask: Ask;

  constructor(ask: Ask) {
    super(ask.prompt);
    this.ask = ask;
  }
}

export function askFor(ask: Ask): never {
  throw new Asking(ask);
}

/** The question as the user reads it. */
export function askText({ prompt, choices, several }: Ask): string {
  if (choices.length === 0) return prompt;
  const lines = choices.map(({ label }, index) => `${index + 1}. ${label}`);
  const how = several === true ? "Answer with names or numbers, or “all”." : "Answer with a name or a number.";
  return `${prompt}\n\n${lines.join("\n")}\n\n${how}`;
}

/** The choices that an answer names; `undefined` if it names none. */
export function readAnswer(text: string, { choices, several }: Ask): readonly string[] | undefined {
  const said = text
    .trim()
    .replace(/(?<![.!?])[.!?]+$/, "")
    .toLowerCase();
  if (several === true && /^(all|both|all of them|both of them|everything)$/.test(said))
    return choices.map(({ value }) => value);
  const parts = several === true ? said.split(/\s*(?:,|;|&|\band\b)\s*/).filter((part) => part !== "") : [said];
  const taken = parts.map((part) => {
    const number = /^#?(\d{1,2})\.?$/.exec(part)?.[1];
    if (number !== undefined) return choices[Number(number) - 1]?.value;
    const plain = part.replace(/^(the|by|take|use|i mean|i meant|please|column|it's|its) /, "");
    const found = [
      ...named(
        plain,
        choices.map(({ value }) => value),
      ),
      ...named(
        plain,
        choices.map(({ label }) => label),
      ),
    ];
    const values = new Set(found.map((index) => choices[index]?.value));
    return values.size === 1 ? [...values][0] : undefined;
  });
  return taken.length > 0 && taken.every((value) => value !== undefined) ? [...new Set(taken)] : undefined;
}

function named(words: string, names: readonly string[]): readonly number[] {
  const found = findColumns(
    words,
    names.map((name, index) => ({ name, index })),
  );
  return found.map(({ index }) => index);
}
