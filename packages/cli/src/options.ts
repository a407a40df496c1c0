import { Argument, InvalidArgumentError, Option } from "commander";
import type { TaskState } from "@parley/a2a/internal/model/index";
import type { Io } from "./io.ts";
import { parseState, stateNames } from "./output/text.ts";

/** A command: its usage, its help, and the function that runs it. */
export interface CommandSpec {
  readonly name: string;
  readonly summary: string;
  readonly description?: string;
  readonly examples: readonly string[];
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  /**
   * Loads the function that runs the command, so that other commands start without it. It receives the arguments, then the options,
   * and resolves with the exit code.
   */
  readonly load?: () => Promise<(io: Io, ...given: never[]) => Promise<number>>;
  /** Subcommands. */
  readonly commands?: readonly CommandSpec[];
  /** Whether it runs when its parent gets no subcommand. */
  readonly isDefault?: boolean;
}

export function option<T>(flags: string, description: string, parse?: (text: string, before: T) => T): Option {
  const made = new Option(flags, description);
  return parse === undefined ? made : made.argParser(parse);
}

export function argument<T>(name: string, description: string, parse?: (text: string, before: T) => T): Argument {
  const made = new Argument(name, description);
  return parse === undefined ? made : made.argParser(parse);
}

export const url: Argument = argument("<url>", "base URL of the agent, or URL of its card", agentUrl);
export const json: Option = option("--json", "print JSON to standard output, one document per line");
export const verbose: Option = option("--verbose", "show the causes of an error");
const token = option("--token <token>", "bearer token to send");
const header = option("--header <name: value>", "header to send; repeatable", collect);

/** Options of commands that call an agent. */
export const callOptions: readonly Option[] = [
  token,
  header,
  option("--binding <name>", "use this binding of the card").choices(["JSONRPC", "HTTP+JSON", "GRPC"]),
  json,
  verbose,
  option(
    "--credential-origin <origin>",
    "also send the token and headers to this origin if the card names it, such as https://api.example.com; repeatable",
    origins,
  ),
  option("--extension <uri>", "URI of an extension to request; repeatable", collect),
];

/** The same for `conform`, which sends credentials to every address on the card, and supports custom bindings. */
export const conformCallOptions: readonly Option[] = [
  token,
  header,
  option("--binding <name>", "test only this binding: JSONRPC, HTTP+JSON, GRPC or the URI of a custom one"),
  json,
  verbose,
];

/** Options of commands that show or save artifacts. */
export const resultOptions: readonly Option[] = [
  option("--out <path>", "save artifacts in this folder, or as this file if the path has an extension"),
  option("--overwrite", "with --out, replace existing files; default: append a number to the name"),
  option("--fetch-urls", "with --out, also download files that the agent links to on other origins"),
  option("--full", "show data in full; default on a terminal: one line per value"),
];

export const messageOptions: readonly Option[] = [
  option(
    "--file <file>",
    "file or URL to send; the extension sets the media type, or FILE;type=text/csv; repeatable",
    collect,
  ),
  option("--data <json>", "JSON to send: a file, the JSON itself, or - for standard input; repeatable", collect),
];

/** The default file of `parley serve` for tasks, below the working directory. */
export const defaultStore = ".parley/parley.db";

/** The id of an agent that is served alone, at the root of its server. */
export const rootAgent = "/";

/** URL of the operators' API of a server with default options. */
export const opsUrl = "http://127.0.0.1:4000/ops";

/** Collects the values of a repeatable option. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

export function agentUrl(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  const guess = `http://${text}`;
  const hint = !text.includes("://") && /^\S+$/.test(text) && URL.canParse(guess) ? `. Did you mean ${guess}?` : "";
  throw new InvalidArgumentError(`must be an http or https URL${hint}`);
}

/** Parses `--credential-origin`. A whole URL stands for its origin. */
function origins(text: string, before?: readonly string[]): readonly string[] {
  return collect(agentUrl(text), before);
}

/** Parses the URL of a receiver without TLS. */
export function receiverUrl(text: string): string {
  if (/^http:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError("must be an http URL (the receiver does not support TLS)");
}

export function count(min: number, max: number = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`must be a whole number ${range}`);
  };
}

export function stateOption(text: string): TaskState {
  const state = parseState(text);
  if (state === undefined) throw new InvalidArgumentError(`must be one of ${stateNames.join(", ")}`);
  return state;
}

const units: Readonly<Record<string, number>> = { s: 1e3, m: 60e3, h: 3600e3, d: 86_400e3, w: 604_800e3 };

/** Parses a time in ISO 8601, or an age: `30m`, `2h`, `7d`. Returns ISO 8601 in UTC (A2A 1.0 §5.6.1). */
export function timeOption(text: string): string {
  return timeAt(text, Date.now());
}

export function timeAt(text: string, now: number): string {
  const [, amount, unit] = /^(\d+)([smhdw])$/.exec(text) ?? [];
  const time = amount === undefined ? Date.parse(text) : now - Number(amount) * (units[unit ?? ""] ?? Number.NaN);
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError("must be a time (2026-01-31T12:00:00Z) or an age (30m, 2h, 7d)");
  }
  return date.toISOString();
}
