import type { AgentEvent, JsonValue, Part } from "@parley/node";
import { isUrlPart, toBase64 } from "@parley/a2a/model";
import type { GuardedFetch } from "@parley/a2a/protocol";
import { collect, type Numbers } from "./chart/collect.ts";
import { renderSvg } from "./chart/render.ts";
import { chartData, chartTable, chartText } from "./chart/report.ts";
import { specOf } from "./chart/spec.ts";
import {
  type AnalystTurn,
  checkpointOf,
  pendingOf,
  pendingMetadata,
  recall,
  rememberedTable,
  rememberTable,
  type Pending,
  type TableRef,
} from "./conversation/memory.ts";
import { outputsFor, type Outputs } from "./conversation/outputs.ts";
import { loadTable, questionIn, tableIn } from "./conversation/source.ts";
import type { Steps } from "./conversation/steps.ts";
import { readRows, type Table } from "./csv/table.ts";
import { profileTable, type Profile } from "./profile/profile.ts";
import { headline, profileData, profileText } from "./profile/report.ts";
import { askText, readAnswer } from "./question/ask.ts";
import { findColumns } from "./question/columns.ts";
import type { Answers, Ask, Plan } from "./question/plan.ts";
import { parseQuestion, type ChartRequest, type Request } from "./question/request.ts";
import { resolveChart } from "./question/resolve.ts";
import { Refusal } from "./refusal.ts";
import { suggestionsFor } from "./suggestions.ts";
import { countOf, formatNumber, markdownTable } from "./words.ts";

/** How many rows are read between two progress messages. */
const progressRows = 20_000;

const sendTable =
  "Send me a table first: a CSV file as a file part of your message, or as text of type text/csv, or as the URL of one.";

const helpText = `I read CSV files, say what is in their columns, and draw charts of them.

Send a CSV file, alone or with a question. Then ask, in the same conversation:

- chart average temp_max by month
- plot wind over date
- bar chart of count by weather
- show the distribution of precipitation
- plot temp_max against temp_min, split by weather
- what is the median wind?
- profile, or: show the first 10 rows

Charts come as SVG, together with their numbers.`;

/** The work of a turn, before the table is read. */
interface Assignment {
  readonly question: string;
  readonly answers: Answers;
  /** The table; absent if none was sent. */
  readonly table?: TableRef;
  /** Whether the table is in this message. */
  readonly fresh: boolean;
  /** The open question that this message did not answer. It is asked again. */
  readonly again?: Ask;
}

/** The work of one turn in steps. It depends only on the message, the conversation and the table, so it can be repeated after a crash. */
export class Analyst {
  readonly #turn: AnalystTurn;
  readonly #fetch: GuardedFetch;
  readonly #outputs: Outputs;
  #table: TableRef | undefined;

  constructor(turn: AnalystTurn, fetch: GuardedFetch) {
    this.#turn = turn;
    this.#fetch = fetch;
    this.#outputs = outputsFor(turn.acceptedOutputModes);
  }

  /** The table, as soon as it is known. */
  get table(): TableRef | undefined {
    return this.#table;
  }

  async *steps(): Steps {
    try {
      yield* this.#answer(this.#assignment());
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      yield [this.#turn[error.outcome](error.message)];
    }
  }

  #assignment(): Assignment {
    const { message } = this.#turn;
    const part = tableIn(message);
    const pending = pendingOf(this.#turn);
    const said = questionIn(message);
    const request = parseQuestion(said);
    if (part !== undefined) {
      const question = said === "" && pending !== undefined ? pending.question : said;
      return { question, answers: {}, table: { messageId: message.messageId, part, sha256: "" }, fresh: true };
    }
    const known = checkpointOf(this.#turn).table ?? pending?.table ?? rememberedTable(this.#turn);
    const place = { ...(known === undefined ? {} : { table: known }), fresh: false };
    const anew = { question: said, answers: {}, ...place };
    if (pending === undefined || (request.kind === "help" && said !== "")) return anew;
    const { ask, answers, question } = pending;
    if (ask.key === "table") return { question, answers, ...place };
    const answer = readAnswer(said, ask);
    if (ask.key === "question") return { ...anew, question: answer?.[0] ?? said };
    if (answer !== undefined) return { question, answers: { ...answers, [ask.key]: answer }, ...place };
    return isClear(request) ? anew : { question, answers, ...place, again: ask };
  }

  async *#answer(assignment: Assignment): Steps {
    const turn = this.#turn;
    const { question, answers, fresh, again } = assignment;
    const request = parseQuestion(question);
    if (again !== undefined)
      return yield [this.#ask(question, answers, again, assignment.table, "That is none of these. ")];
    if (request.kind === "help" && !fresh) return yield [turn.reply(helpText)];
    if (assignment.table === undefined) {
      if (!isClear(request)) return yield [turn.reply(`${sendTable}\n\n${helpText}`)];
      return yield [this.#ask(question, answers, { key: "table", prompt: sendTable, choices: [] }, undefined)];
    }

    const table = yield* this.#open(assignment.table);
    if (fresh && this.#table !== undefined) rememberTable(turn, this.#table);
    yield [turn.working(`${fresh ? "Reading" : "Looking at"} ${table.name}.`)];
    if (request.kind === "rows") return yield* this.#rows(table, request.count);
    const profile = yield* this.#count("Profiling", profileTable(table, turn.signal));
    if (profile.rows === 0) throw new Refusal("failed", "The table has no rows.");
    if (fresh || request.kind === "profile") yield* this.#profile(profile);
    if (request.kind === "help" || request.kind === "profile")
      return yield [this.#finish(`${headline(profile)} ${hint(profile)}`)];
    if (request.kind !== "chart" || isVague(request, profile)) {
      if (fresh)
        return yield [
          this.#finish(`${headline(profile)} I did not find a question in what you wrote. ${hint(profile)}`),
        ];
      const choices = suggestionsFor(profile).map((text) => ({ value: text, label: text }));
      const ask: Ask = {
        key: "question",
        prompt: "I do not know what to do with that. One of these, or another question like them?",
        choices,
      };
      return yield [this.#ask(question, {}, ask, this.#table)];
    }
    const plan = resolveChart(request, profile, answers);
    if ("prompt" in plan) return yield [this.#ask(question, answers, plan, this.#table)];
    yield* this.#chart(table, plan);
  }

  /** Reads the table again, and checks that it has not changed since this work began. */
  async *#open(reference: TableRef): AsyncGenerator<readonly AgentEvent[], Table, void> {
    const part = await recall(this.#turn, reference);
    if (part === undefined)
      throw new Refusal("rejected", "I no longer have the table of this conversation. Please send it again.");
    if (isUrlPart(part)) yield [this.#turn.working("Fetching the file.")];
    const table = await loadTable(part, this.#fetch, this.#turn.signal);
    const begun = checkpointOf(this.#turn).table?.sha256;
    if (begun !== undefined && begun !== table.sha256) {
      throw new Refusal("failed", "The file at that address changed while I was working on it. Please ask again.");
    }
    this.#table = { ...reference, sha256: table.sha256 };
    return table;
  }

  async *#profile(profile: Profile): Steps {
    const artifactId = `profile-${this.#turn.number}`;
    const texts = profileText(profile).map((text) => this.#text(text, "profile"));
    const [first, ...others] = texts;
    if (first === undefined) return;
    const name = `Profile of ${profile.table}`;
    yield [this.#turn.artifact({ artifactId, name, parts: [first], open: true })];
    const data: readonly Part[] = this.#outputs.json ? [dataPart(profileData(profile), "profile")] : [];
    for (const [index, part] of others.entries()) {
      const last = index === others.length - 1;
      yield [this.#turn.append(artifactId, last ? [part, ...data] : [part], { last })];
    }
  }

  async *#chart(table: Table, plan: Plan): Steps {
    const numbers = yield* this.#count("Collecting the numbers", collect(table, plan, this.#turn.signal));
    const summary = chartText(numbers);
    const parts = await this.#chartParts(table, numbers);
    const artifactId = `chart-${this.#turn.number}`;
    yield [this.#turn.artifact({ artifactId, name: plan.title, description: summary, parts }), this.#finish(summary)];
  }

  async #chartParts(table: Table, numbers: Numbers): Promise<readonly Part[]> {
    const parts: Part[] = [];
    const { plan, rowsUsed } = numbers;
    if (this.#outputs.svg && !(plan.kind === "groups" && plan.group === undefined)) {
      const svg = await renderSvg(specOf(numbers, `${table.name}, ${countOf(rowsUsed, "row")}`));
      parts.push({ raw: toBase64(new TextEncoder().encode(svg)), mediaType: "image/svg+xml", filename: "chart.svg" });
    }
    if (this.#outputs.json) parts.push(dataPart(chartData(table.name, numbers), "chart"));
    if (!this.#outputs.svg || parts.length === 0) parts.push(this.#text(chartTable(numbers), "chart"));
    return parts;
  }

  async *#rows(table: Table, count: number): Steps {
    const rows: (readonly string[])[] = [];
    for await (const batch of readRows(table, this.#turn.signal)) {
      rows.push(...batch.rows.slice(0, count - rows.length));
      if (rows.length >= count) break;
    }
    const text = this.#text(markdownTable(table.columns, rows), "rows");
    const data = dataPart({ table: table.name, columns: table.columns, rows }, "rows");
    const name = `First rows of ${table.name}`;
    const parts = this.#outputs.json ? [text, data] : [text];
    const artifact = this.#turn.artifact({ artifactId: `rows-${this.#turn.number}`, name, parts });
    yield [artifact, this.#finish(`The first ${countOf(rows.length, "row")} of ${table.name}.`)];
  }

  #text(text: string, name: string): Part {
    const mediaType = this.#outputs.text;
    return { text, mediaType, filename: `${name}.${mediaType === "text/markdown" ? "md" : "txt"}` };
  }

  /** Returns the result of a reader of rows, with progress messages in between. */
  async *#count<T>(
    what: string,
    reading: AsyncGenerator<number, T, void>,
  ): AsyncGenerator<readonly AgentEvent[], T, void> {
    let told = 0;
    for (;;) {
      const next = await reading.next();
      if (next.done === true) return next.value;
      if (next.value < told + progressRows) continue;
      told = next.value;
      yield [this.#turn.working(`${what}: ${formatNumber(told)} rows so far.`)];
    }
  }

  /**
   * The answer in words. It is a progress message that is kept in the history. The function ends after it and does not yield
   * `completed`, so that a message that arrived during the turn is answered by the same task.
   */
  #finish(text: string): AgentEvent {
    return this.#turn.working(text, { keep: true });
  }

  #ask(question: string, answers: Answers, ask: Ask, table: TableRef | undefined, before = ""): AgentEvent {
    const pending: Pending = { question, answers, ask, ...(table === undefined ? {} : { table }) };
    const message = { parts: [{ text: `${before}${askText(ask)}` }], metadata: pendingMetadata(pending) };
    return { kind: "status", state: "TASK_STATE_INPUT_REQUIRED", message };
  }
}

function dataPart(data: JsonValue, name: string): Part {
  return { data, mediaType: "application/json", filename: `${name}.json` };
}

/** Whether the text alone is an understood question. */
function isClear(request: Request): boolean {
  if (request.kind !== "chart") return request.kind === "profile" || request.kind === "rows";
  return (
    request.picture ||
    request.distribution ||
    request.by !== undefined ||
    request.measures.some(({ aggregate }) => aggregate !== undefined)
  );
}

/** Whether a question names nothing that is in the table. */
function isVague(request: ChartRequest, { columns }: Profile): boolean {
  return !isClear(request) && !request.measures.some(({ words }) => findColumns(words, columns).length > 0);
}

function hint(profile: Profile): string {
  return `You could ask: ${suggestionsFor(profile)
    .map((text) => `“${text}”`)
    .join(", ")}.`;
}
