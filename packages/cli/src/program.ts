import { Command, CommanderError, type CommandOptions } from "commander";
import { addCard } from "./commands/card.ts";
import { addConform } from "./commands/conform.ts";
import { addDb } from "./commands/db.ts";
import { addDev } from "./commands/dev.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addInit } from "./commands/init.ts";
import { addKey } from "./commands/key.ts";
import { addListen } from "./commands/listen.ts";
import { addLogin, addLogout, addWhoami } from "./commands/login.ts";
import { addPush } from "./commands/push.ts";
import { addSend } from "./commands/send.ts";
import { addServe } from "./commands/serve.ts";
import { addCancel, addTask, addTasks } from "./commands/tasks.ts";
import { addWatch } from "./commands/watch.ts";
import { explain, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { mistake } from "./mistakes.ts";
import type { Help, Program } from "./options.ts";
import { version } from "./version.ts";

/** In the order of the help. */
const commands = [
  addServe,
  addDev,
  addCard,
  addSend,
  addWatch,
  addListen,
  addTasks,
  addTask,
  addCancel,
  addLogin,
  addLogout,
  addWhoami,
  addKey,
  addPush,
  addDb,
  addDoctor,
  addConform,
  addInit,
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
  const command: Program["command"] = (name, help, parent = program, options = {}) =>
    addCommand(parent, name, help, options);
  for (const add of commands) add({ io, command, finish });
  return program;
}

function addCommand(
  parent: Command,
  name: string,
  { summary, description, examples }: Help,
  options: CommandOptions,
): Command {
  const command = parent.command(name, options);
  return command
    .configureOutput({ outputError: (text, write) => write(`parley: ${mistake(text, command)}`) })
    .summary(summary)
    .description(description === undefined ? `${summary}.` : `${summary}. ${description}`)
    .helpOption("-h, --help", "show this help")
    .addHelpText("after", `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`);
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
