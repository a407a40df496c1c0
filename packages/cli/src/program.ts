import { Command, CommanderError, type Argument } from "commander";
import {
  card,
  cancel,
  conform,
  doctor,
  listen,
  login,
  logout,
  send,
  task,
  tasks,
  watch,
  whoami,
} from "./commands/agents.ts";
import { db, push } from "./commands/operators.ts";
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
  tasks,
  task,
  cancel,
  login,
  logout,
  whoami,
  key,
  push,
  db,
  doctor,
  conform,
  init,
];

const general = `
Exit codes:
  0    success; a task that waits for input is one
  1    a network or protocol error, or a task that failed, was rejected or canceled
  2    bad usage
  130  interrupted; the task goes on

Environment:
  PARLEY_TOKEN           bearer token to send, unless --token is given; it
                         is used in place of a login
  PARLEY_KEYCHAIN        off: keep logins in files, not in the keychain
  PARLEY_TOKENS          bearer tokens that serve accepts, separated by commas,
                         or their hashes, as parley key makes them
  PARLEY_API_KEYS        the same for API keys
  PARLEY_KEYS            keys of serve, separated by commas: 32 random
                         bytes each, from openssl rand -base64 32
  DATABASE_URL           URL of the database of parley db
  NO_COLOR, FORCE_COLOR  never colours; colours even where the output is no terminal`;

/** Every command, with its arguments, options, help and action. `finish` receives the exit code of a command. */
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
  /** Options for `explain`, known once the command line is parsed. */
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
    // Commander has printed the mistake. It also throws after the help and the version, with exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    io.stderr.write(`parley: ${explain(error, { ...explained, program: io.program })}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

/** A message of commander, and what is said in its place. */
type Wording = readonly [pattern: RegExp, say: (match: readonly string[], command: Command) => string];

const wordings: readonly Wording[] = [
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
  [/^option '([^']+)' argument missing$/, ([, flags = ""]) => `${flags} has no value`],
  [
    /^required option '([^']+)' not specified$/,
    ([, flags = ""], command) => `${flags} is missing\n${usageOf(command)}`,
  ],
  [
    /^too many arguments(?: for '[^']+')?\. Expected (\d+) arguments? but got (\d+)\.$/,
    ([, expected, got], command) =>
      `there ${got === "1" ? "is 1 argument" : `are ${got} arguments`}, and ${takes(expected, command)}\n${usageOf(command)}`,
  ],
];

/** What is said of a mistake. `text`: what commander says of it, with or without its `error: `. */
function mistake(text: string, command: Command): string {
  const said = text.trimEnd().replace(/^error: /, "");
  for (const [pattern, say] of wordings) {
    const match = pattern.exec(said);
    if (match !== null) return `${say(match, command)}\n`;
  }
  return `${said}\n`;
}

function invalid(name: string, value: string, why: string): string {
  // The reasons are sentences for `InvalidArgumentError`.
  const reason = why.replace(/\.$/, "").replace(/^[A-Z]/, (letter) => letter.toLowerCase());
  return `${name} cannot be ${JSON.stringify(value)}: ${reason}`;
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
  if (names.length === 0) return `${nameOf(command)} takes none`;
  return `${nameOf(command)} takes ${expected}: ${names.join(" ")}. A text with spaces needs quotes`;
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function usageOf(command: Command): string {
  return `Usage: ${nameOf(command)} ${command.usage()}`;
}
