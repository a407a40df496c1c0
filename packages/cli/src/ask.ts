import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";

/** What the user answers. Throws UsageError where that is nothing. */
export async function answerTo(io: Io, question: string, hidden: boolean): Promise<string> {
  const text = (await io.ask(question, { hidden }))?.replace(/\r$/, "");
  if (text === undefined || text === "") throw new UsageError(`nothing was given for "${question.replace(/: $/, "")}"`);
  return text;
}
