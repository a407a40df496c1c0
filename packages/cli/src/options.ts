import { InvalidArgumentError, Option, type Command, type CommandOptions } from "commander";
import type { TaskState } from "@parley/a2a/internal/model/index";
import type { Io } from "./io.ts";
import { parseState, stateNames } from "./output/states.ts";

/** What the file of a command adds it with. */
export interface Program {
  readonly io: Io;
  /** Adds a command and its help; the caller adds arguments, options and the action. `parent`: the command that it is a part of. */
  command(name: string, help: Help, parent?: Command, options?: CommandOptions): Command;
  /** Receives the exit code of the command. */
  finish(code: number): void;
}

export interface Help {
  readonly summary: string;
  readonly description?: string;
  readonly examples: readonly string[];
}

/** Arguments of `Command.argument` and `Command.option` that several commands share. */
export const url: readonly [string, string, (text: string) => string] = [
  "<url>",
  "the agent's base URL, or that of its card",
  agentUrl,
];

/** Adds the options of commands that show artifacts, or save them. */
export function resultOptions(command: Command): Command {
  return command
    .option(
      "--out <path>",
      "save artifacts as files in this folder, or as this file; the name of a file has an extension",
    )
    .option("--overwrite", "with --out, replace files that exist; without it a name that is taken gets a number")
    .option("--fetch-urls", "with --out, also save files that the agent links to at other origins than its own")
    .option("--full", "show data as a whole, not one line for each value, which is what a terminal gets");
}

export const file: readonly [string, string, (value: string, before?: readonly string[]) => readonly string[]] = [
  "--file <file>",
  "a file to send, or a URL; the media type comes from the extension, or from FILE;type=text/csv; repeatable",
  collect,
];

export const data: typeof file = [
  "--data <json>",
  "data to send: a file with JSON, the JSON itself, or - for standard input; repeatable",
  collect,
];

/** For an option that may be given several times: all its values. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Adds the options of commands that call an agent: credentials, binding, output. */
export function callOptions(command: Command): Command {
  command
    .option("--token <token>", "bearer token to send")
    .option("--header <name: value>", "a header to send; repeatable", collect)
    .addOption(bindingOption(command.name() === "conform"))
    .option("--json", "print only JSON to standard output, one document a line")
    .option("--verbose", "show the causes of an error");
  // The conformance tests send credentials to every address that the card names.
  if (command.name() === "conform") return command;
  return command
    .option(
      "--credential-origin <origin>",
      "another origin to send token and headers to, if the card names it: https://api.example.com; repeatable",
      origins,
    )
    .option("--extension <uri>", "an extension to ask for, by its URI; repeatable", collect);
}

function bindingOption(conform: boolean): Option {
  // The tests also run over custom bindings, whose names are URIs.
  return conform
    ? new Option("--binding <name>", "only over this binding: JSONRPC, HTTP+JSON, GRPC or the URI of a custom one")
    : new Option("--binding <name>", "binding to use, if the card has it").choices(["JSONRPC", "HTTP+JSON", "GRPC"]);
}

/** Parses the URL of an agent. */
export function agentUrl(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  const guess = `http://${text}`;
  const hint = !text.includes("://") && /^\S+$/.test(text) && URL.canParse(guess) ? `; did you mean ${guess}` : "";
  throw new InvalidArgumentError(`It is not an http or https URL${hint}`);
}

/** Parses the origins of `--credential-origin`. A whole URL stands for its origin. */
function origins(text: string, before?: readonly string[]): readonly string[] {
  agentUrl(text);
  return collect(text, before);
}

/** Parses the URL of a receiver without TLS. */
export function receiverUrl(text: string): string {
  if (/^http:\/\//i.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError("It is not an http URL. The receiver speaks no TLS");
}

/** Parses a whole number from `least` to `most`. */
export function count(least: number, most: number = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `, at least ${least}` : ` from ${least} to ${most}`;
    throw new InvalidArgumentError(`It is not a whole number${range}.`);
  };
}

export function stateOption(text: string): TaskState {
  const state = parseState(text);
  if (state === undefined) throw new InvalidArgumentError(`Known states: ${stateNames.join(", ")}.`);
  return state;
}

const units: Readonly<Record<string, number>> = { s: 1e3, m: 60e3, h: 3600e3, d: 86_400e3, w: 604_800e3 };

/** Parses a time in ISO 8601, or an age: `30m`, `2h`, `7d`. Returns ISO 8601 in UTC (A2A 1.0 §5.6.1). */
export function timeOption(text: string, now: number = Date.now()): string {
  const [, amount, unit] = /^(\d+)([smhdw])$/.exec(text) ?? [];
  const time = amount === undefined ? Date.parse(text) : now - Number(amount) * (units[unit ?? ""] ?? Number.NaN);
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError("It is neither a time (2026-01-31T12:00:00Z) nor an age (30m, 2h, 7d).");
  }
  return date.toISOString();
}
