import { Command, CommanderError, type Argument } from "commander";
import {
  card,
  cancel,
  conform,
  doctor,
  inspect,
  listen,
  login,
  logout,
  mcp,
  send,
  task,
  tasks,
  watch,
  whoami,
} from "./commands/agents.ts";
import { db, push } from "./commands/operators.ts";
import { logs, ops, top } from "./commands/ops.ts";
import { dev, init, key, serve } from "./commands/servers.ts";
import { explain, UsageError } from "./errors.ts";
import { version } from "./invocation.ts";
import type { Io } from "./io.ts";
import type { CommandSpec } from "./options.ts";

/** In the order of the help. */
const commands: readonly CommandSpec[] = [
  serve,
  dev,
  card,
  send,
  watch,
  listen,
  mcp,
  tasks,
  task,
  cancel,
  login,
  logout,
  whoami,
  inspect,
  key,
  ops,
  top,
  logs,
  push,
  db,
  doctor,
  conform,
  init,
];

const general = `
Exit codes:
  0    success, including a task that waits for input
  1    network or protocol error, or a task that failed, was rejected or canceled
  2    invalid usage
  130  interrupted; the task keeps running

Environment:
  PARLEY_TOKEN           bearer token to send; --token takes precedence, and a
                         token takes precedence over a login
  PARLEY_OPERATOR_TOKEN  the same for the operators' API
  PARLEY_KEYCHAIN        off: store logins in files, not in the keychain
  PARLEY_TOKENS          bearer tokens that serve accepts, separated by commas;
                         parley key creates hashes to use instead
  PARLEY_API_KEYS        the same for API keys
  PARLEY_KEYS            encryption keys of serve, separated by commas: 32
                         random bytes each, from openssl rand -base64 32
  DATABASE_URL           URL of the database of parley db
  NO_COLOR, FORCE_COLOR  disable colors; force colors without a terminal`;

/** Creates the program with all of its commands. `finish` receives the exit code of the command that ran. */
export function createProgram(io: Io, finish: (code: number) => void): Command {
  const program = new Command("parley")
    .description("Serve A2A agents, and talk to any of them.")
    .version(version, "--version", "show the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [command]", "show the help of a command")
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(`parley: ${mistake(text, program)}`),
      getOutHelpWidth: () => Math.min(io.stdout.columns ?? 80, 100),
      getErrHelpWidth: () => Math.min(io.stderr.columns ?? 80, 100),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText("after", general);
  for (const command of commands) addCommand(program, command, io, finish);
  return program;
}

function addCommand(parent: Command, spec: CommandSpec, io: Io, finish: (code: number) => void): void {
  const { name, summary, description, examples, isDefault = false, load } = spec;
  const { arguments: given = [], options = [], commands: parts = [] } = spec;
  const command = parent.command(name, { isDefault });
  command
    .configureOutput({ outputError: (text, write) => write(`parley: ${mistake(text, command)}`) })
    .summary(summary)
    .description(description === undefined ? `${summary}.` : `${summary}. ${description}`)
    .helpOption("-h, --help", "show this help")
    .addHelpText("after", `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`);
  for (const each of given) command.addArgument(each);
  for (const each of options) command.addOption(each);
  for (const part of parts) addCommand(command, part, io, finish);
  if (load === undefined) return;
  command.action(async (...all: unknown[]) => {
    const run = await load();
    // Commander also passes the command.
    finish(await run(io, ...(all.slice(0, given.length + 1) as never[])));
  });
}

/** Runs one command line, without the name of the program. Returns the exit code; never throws. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let code = 0;
  /** Options of `explain`, set once the command line is parsed. */
  let explained: { url?: string; verbose?: boolean } = {};
  const program = createProgram(io, (value) => (code = value)).hook("preAction", (_, command) => {
    const [target] = command.args;
    explained = {
      ...(target !== undefined && /^https?:/i.test(target) ? { url: target } : {}),
      verbose: command.getOptionValue("verbose") === true,
    };
  });
  if (argv.length === 0) {
    program.outputHelp({ error: true });
    return 2;
  }
  try {
    await program.parseAsync(argv, { from: "user" });
    return code;
  } catch (error) {
    // Commander has printed the message. It also throws after the help and the version, with exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    io.stderr.write(`parley: ${explain(error, { ...explained, program: io.program })}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

/** A message of commander, and its replacement. */
type Wording = readonly [pattern: RegExp, say: (match: readonly string[], command: Command) => string];

/** Synonyms of commands that are not spelled alike. */
const meanings: ReadonlyMap<string, string> = new Map([
  ["tasks", "list"],
  ["ls", "list"],
  ["list", "tasks"],
]);

const wordings: readonly Wording[] = [
  [
    /^unknown command '([^]*)'(\n\(Did you mean [^]*\))?$/,
    ([, name = "", alike], command) => {
      const meant = command.commands.find((each) => each.name() === meanings.get(name));
      const hint = meant === undefined ? alike : `\n(Did you mean ${meant.name()}?)`;
      return `unknown command '${name}'${hint ?? `\n(${nameOf(command)} --help lists the commands)`}`;
    },
  ],
  [
    /^command-argument value '([^]*)' is invalid for argument '([^']+)'\. ([^]*)$/,
    ([, value = "", name = "", why = ""], command) => invalid(argumentNamed(name, command), value, why),
  ],
  [
    /^option '([^']+)' argument '([^]*)' is invalid\. ([^]*)$/,
    ([, flags = "", value = "", why = ""]) => invalid(flags, value, why),
  ],
  [
    /^missing required argument '([^']+)'$/,
    ([, name = ""], command) => `${argumentNamed(name, command)} is missing\n${usageOf(command)}`,
  ],
  [/^option '([^']+)' argument missing$/, ([, flags = ""]) => `${flags} needs a value`],
  [
    /^required option '([^']+)' not specified$/,
    ([, flags = ""], command) => `${flags} is missing\n${usageOf(command)}`,
  ],
  [
    /^too many arguments(?: for '[^']+')?\. Expected (\d+) arguments? but got (\d+)\.$/,
    ([, expected, got], command) => `${takes(expected, command)}; got ${got}\n${usageOf(command)}`,
  ],
];

/** Rewords a message of commander in the terms of the help: `<url>`, `[task]`, `--port <port>`. */
function mistake(text: string, command: Command): string {
  const said = text.trimEnd().replace(/^error: /, "");
  for (const [pattern, say] of wordings) {
    const match = pattern.exec(said);
    if (match !== null) return `${say(match, command)}\n`;
  }
  return `${said}\n`;
}

function invalid(name: string, value: string, why: string): string {
  const reason = why.replace(/^Allowed choices are (.*)\.$/, "must be one of $1");
  // A second sentence is a hint.
  const [, rule = reason, hint = ""] = /^(.*?)(\. .*)?$/s.exec(reason) ?? [];
  return `${name} ${rule}; got ${JSON.stringify(value)}${hint}`;
}

function argumentNamed(name: string, command: Command): string {
  const argument = command.registeredArguments.find((each) => each.name() === name);
  return argument === undefined ? name : shown(argument);
}

/** An argument as the usage shows it. */
function shown(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

function takes(expected: string | undefined, command: Command): string {
  const names = command.registeredArguments.map(shown);
  if (names.length === 0) return `${nameOf(command)} takes no arguments`;
  const count = expected === "1" ? "1 argument" : `${expected} arguments`;
  return `${nameOf(command)} takes ${count}, ${names.join(" ")} (quote text with spaces)`;
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function usageOf(command: Command): string {
  return `Usage: ${nameOf(command)} ${command.usage()}`;
}
