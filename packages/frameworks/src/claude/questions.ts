import { text, type JsonObject, type JsonValue, type Part } from "@parley/a2a/model";
import type { AgentEvent, Turn } from "@parley/server";
import { hasSeen } from "../shared/approvals.ts";
import { isList, isObject, toPlainJson } from "../shared/json.ts";

/* Converts calls of the tool AskUserQuestion to questions to the user. */

/** The SDK's tool with which the model asks the user. */
export const askTool = "AskUserQuestion";

export interface Question {
  readonly question: string;
  readonly labels: readonly string[];
  readonly multiSelect: boolean;
}

/** The questions of a call. `undefined` if the call has no questions. */
export function questionsOf(input: unknown): readonly Question[] | undefined {
  const plain = toPlainJson(input);
  const list = isObject(plain) ? plain["questions"] : undefined;
  const questions = isList(list) ? list.flatMap((each) => questionOf(each) ?? []) : [];
  return questions.length === 0 ? undefined : questions;
}

function questionOf(value: JsonValue): Question | undefined {
  if (!isObject(value) || typeof value["question"] !== "string" || value["question"] === "") return undefined;
  const { question, options, multiSelect } = value;
  const labels = isList(options) ? options.flatMap((option) => (isObject(option) ? (option["label"] ?? []) : [])) : [];
  return { question, labels: labels.filter((label) => typeof label === "string"), multiSelect: multiSelect === true };
}

/** Stores the questions, and asks them. */
export function askQuestions(turn: Turn, questions: readonly Question[]): AgentEvent {
  const stored = questions.map((question): JsonObject => ({ ...question }));
  turn.setState({ claudeQuestions: { questions: stored, turn: turn.number } });
  return ask(turn, questions, turn.number);
}

/** @param asked - The turn that asked. */
function ask(turn: Turn, questions: readonly Question[], asked: number): AgentEvent {
  const lines = questions.map(({ question, labels }) => `${question}${labels.map((label) => `\n- ${label}`).join("")}`);
  const properties = Object.fromEntries(questions.map((each, at) => [nameOf(questions, at), fieldOf(each)]));
  const form = { $id: idOf(asked), type: "object", properties, required: Object.keys(properties) };
  return turn.inputRequired([text(lines.join("\n")), { data: form, mediaType: "application/schema+json" }]);
}

function idOf(asked: number): string {
  return `questions-${asked}`;
}

function nameOf(questions: readonly Question[], at: number): string {
  return questions.length === 1 ? "answer" : `answer${at + 1}`;
}

function fieldOf({ question, labels, multiSelect }: Question): JsonObject {
  const choice = { type: "string", ...(labels.length > 0 && { enum: labels }) };
  return multiSelect ? { type: "array", title: question, items: choice } : { ...choice, title: question };
}

/** The answers as text for the model, or the questions again if the message does not answer them. `undefined` if no question was asked. */
export function answersIn(turn: Turn): string | { readonly ask: AgentEvent } | undefined {
  const state = turn.state() as
    | { readonly claudeQuestions?: { readonly questions: readonly Question[]; readonly turn: number } }
    | undefined;
  if (state?.claudeQuestions === undefined) return undefined;
  const { questions, turn: asked } = state.claudeQuestions;
  const isForm = ({ data }: Part): boolean => isObject(data) && data["$id"] === idOf(asked);
  const answers = hasSeen(turn, asked, isForm) ? allIn(turn, questions) : undefined;
  if (answers === undefined) return { ask: ask(turn, questions, asked) };
  return `The user answered:\n${questions.map(({ question }, at) => `- ${question} ${answers[at]}`).join("\n")}`;
}

function allIn({ message, text }: Turn, questions: readonly Question[]): readonly string[] | undefined {
  const given = message.parts.flatMap((part) => objectIn(part));
  if (given.length === 0) return questions.length === 1 && text.trim() !== "" ? [text] : undefined;
  const answers = questions.map((_, at) => answerOf(given.map((each) => each[nameOf(questions, at)])));
  return answers.every((answer) => answer !== "") ? answers : undefined;
}

function answerOf(values: readonly (JsonValue | undefined)[]): string {
  const [value = ""] = values.filter((each) => each !== undefined);
  const list = isList(value) ? value : [value];
  return list.every((each) => typeof each === "string") ? list.join(", ") : "";
}

function objectIn({ data: value, text: said }: Part): JsonObject[] {
  if (value !== undefined) return isObject(value) ? [value] : [];
  try {
    const parsed = said?.trimStart().startsWith("{") ? (JSON.parse(said) as JsonValue) : undefined;
    return isObject(parsed) ? [parsed] : [];
  } catch {
    return [];
  }
}
