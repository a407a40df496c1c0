import { Command, Option } from "commander";
import { cancel } from "./commands/cancel.ts";
import { card } from "./commands/card.ts";
import type { ConformOptions } from "./commands/conform.ts";
import { init, type InitOptions } from "./commands/init.ts";
import { send, type SendOptions } from "./commands/send.ts";
import type { ServeOptions } from "./commands/serve.ts";
import { task, type TaskOptions } from "./commands/task.ts";
import { tasks, type TasksOptions } from "./commands/tasks.ts";
import { watch } from "./commands/watch.ts";
import type { FollowOptions } from "./follow.ts";
import type { Io } from "./io.ts";
import {
  agentUrl,
  callOptions,
  collect,
  count,
  logFormats,
  logLevels,
  stateOption,
  timeOption,
  type CallOptions,
} from "./options.ts";
import { stateNames } from "./output/states.ts";
import { version } from "./version.ts";

/** Receives the exit code of a command. */
export type Finish = (code: number) => void;

const general = `
Exit codes:
  0    success; a task that waits for input is one
  1    a network or protocol error, or a task that failed, was rejected or canceled
  2    bad usage
  130  interrupted; the task goes on

Environment:
  PARLEY_TOKEN           bearer token to send, unless --token is given
  PARLEY_TOKENS          bearer tokens that serve accepts, separated by commas
  NO_COLOR, FORCE_COLOR  never colours; colours even where the output is no terminal`;

const url = ["<url>", "the agent's base URL, or that of its card", agentUrl] as const;
const out = ["--out <folder>", "save artifacts as files in this folder; nothing is overwritten"] as const;

interface Help {
  readonly summary: string;
  readonly description?: string;
  readonly examples: readonly string[];
}

/** Every command, with its arguments, options, help and action. */
export function createProgram(io: Io, finish: Finish): Command {
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
      outputError: (text, write) => write(text.replace(/^error: /, "parley: ")),
      getOutHelpWidth: () => Math.min(io.stdout.columns ?? 80, 100),
      getErrHelpWidth: () => Math.min(io.stderr.columns ?? 80, 100),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText("after", general);

  const command = (name: string, { summary, description, examples }: Help): Command =>
    program
      .command(name)
      .summary(summary)
      .description(description === undefined ? `${summary}.` : `${summary}. ${description}`)
      .helpOption("-h, --help", "show this help")
      .addHelpText("after", `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`);

  command("serve", {
    summary: "Serve the agents of a module",
    description:
      "The module is JavaScript or TypeScript. Its default export is an agent, or a list of mounts: { agent, path?, tenant? }.",
    examples: [
      "parley serve agent.ts",
      "parley serve agent.ts --port 8080 --store memory",
      "parley serve agent.ts --host 0.0.0.0 --public-url https://agent.example --token s3cret=alice",
    ],
  })
    .argument("<file>", "the module")
    .option("--port <port>", "port to listen on; 0 takes a free one", count(0, 65_535), 4000)
    .option("--host <host>", "name or address to listen on", "127.0.0.1")
    .option("--public-url <url>", "URL at which clients reach this server; it goes into the card", agentUrl)
    .option("--store <path>", "SQLite file for the tasks, or the word memory", ".parley/parley.db")
    .option("--token <token>", "a bearer token that callers must present: TOKEN or TOKEN=SUBJECT; repeatable", collect)
    .option("--cors <origin>", "a web origin whose pages may call the server, or * for any; repeatable", collect)
    .option("--insecure", "serve other machines without tokens")
    .option("--grace <seconds>", "how long turns may run on after a signal to stop", count(0), 10)
    .addOption(
      new Option("--log-level <level>", "lowest level that is logged to standard error; default: info").choices(
        logLevels,
      ),
    )
    .addOption(
      new Option(
        "--log-format <format>",
        "format of the log; default: text on a terminal, JSON lines elsewhere",
      ).choices(logFormats),
    )
    .option("--json", "print one JSON document with the URLs once the server is ready")
    .option("--verbose", "the same as --log-level debug; also shows why the server cannot start")
    .action(async (file: string, options: ServeOptions) => {
      // Loaded here, so that other commands start without the server and its database.
      const { serve } = await import("./commands/serve.ts");
      finish(await serve(io, file, options));
    });

  callOptions(
    command("card", {
      summary: "Show an agent's card",
      description: "What the agent can do, and how to reach it.",
      examples: ["parley card http://localhost:4000", "parley card http://localhost:4000 --json"],
    }).argument(...url),
  ).action(async (at: string, options: CallOptions) => finish(await card(io, at, options)));

  callOptions(
    command("send", {
      summary: "Send a message and show the answer",
      description:
        "The answer goes to standard output while it grows, progress to standard error. Exits with 1 if the task fails, is rejected or is canceled.",
      examples: [
        'parley send http://localhost:4000 "Hello"',
        'parley send http://localhost:4000 "chart temp_max by month" --file weather.csv --out charts',
        'echo "Hello" | parley send http://localhost:4000 -',
        'parley send http://localhost:4000 "Hello" --json',
        'parley send http://localhost:4000 "Hello" --no-wait',
      ],
    })
      .argument(...url)
      .argument("[text]", "text of the message; - reads it from standard input")
      .option(
        "--file <file>",
        "a file to send, or a URL; the media type comes from the extension, or from FILE;type=text/csv; repeatable",
        collect,
      )
      .option("--context <id>", "id of the conversation that the message belongs to")
      .option("--task <id>", "id of the task that the message continues")
      .option("--accept <modes>", "media types to accept in the answer, separated by commas")
      .option(...out)
      .option("--no-stream", "wait for one answer, not for a stream")
      .option("--wait", "wait until the task ends or needs input", true)
      .option("--no-wait", "return as soon as the task has started"),
  ).action(async (at: string, text: string | undefined, options: SendOptions) =>
    finish(await send(io, at, text, options)),
  );

  callOptions(
    command("watch", {
      summary: "Watch a task until it ends",
      description: "Exits with 1 if the task fails, is rejected or is canceled.",
      examples: ["parley watch http://localhost:4000 TASK", "parley watch http://localhost:4000 TASK --out results"],
    })
      .argument(...url)
      .argument("<task>", "id of the task")
      .option(...out),
  ).action(async (at: string, id: string, options: CallOptions & FollowOptions) =>
    finish(await watch(io, at, id, options)),
  );

  callOptions(
    command("tasks", {
      summary: "List your tasks",
      description: "The most recently changed come first.",
      examples: [
        "parley tasks http://localhost:4000",
        "parley tasks http://localhost:4000 --state input-required --since 2h",
        "parley tasks http://localhost:4000 --limit 500 --json",
      ],
    })
      .argument(...url)
      .option("--context <id>", "only tasks of this conversation")
      .addOption(
        new Option("--state <state>", `only tasks in this state: ${stateNames.join(", ")}`).argParser(stateOption),
      )
      .option(
        "--since <time>",
        "only tasks that changed since a time (2026-01-31T12:00Z) or within an age (30m, 2h, 7d)",
        (text: string) => timeOption(text),
      )
      .option("--limit <n>", "largest number of tasks", count(1), 50)
      .option("--page <token>", "token of the page to begin with, as the end of a list shows it"),
  ).action(async (at: string, options: TasksOptions) => finish(await tasks(io, at, options)));

  callOptions(
    command("task", {
      summary: "Show a task",
      description: "Its state, messages and artifacts at this moment.",
      examples: [
        "parley task http://localhost:4000 TASK",
        "parley task http://localhost:4000 TASK --history 0 --out results",
      ],
    })
      .argument(...url)
      .argument("<id>", "id of the task")
      .option("--history <n>", "number of messages to show, the newest; default: all", count(0))
      .option(...out),
  ).action(async (at: string, id: string, options: TaskOptions) => finish(await task(io, at, id, options)));

  callOptions(
    command("cancel", { summary: "Cancel a task", examples: ["parley cancel http://localhost:4000 TASK"] })
      .argument(...url)
      .argument("<id>", "id of the task"),
  ).action(async (at: string, id: string, options: CallOptions) => finish(await cancel(io, at, id, options)));

  callOptions(
    command("conform", {
      summary: "Test whether a server keeps to the protocol",
      description:
        "Runs declarative tests (ACTS) over each binding that the card names, and reports what does not hold: level, section, expected, got. Some tests need an agent with the behaviours of ACTS §11; --behaviors says which ones yours has. Exits with 0 if every MUST that was asked holds, with 1 if one does not or none was asked. The verdict counts what was not asked, with the reasons.",
      examples: [
        "parley conform http://localhost:4000 --behaviors none",
        "parley conform http://localhost:4000 --behaviors none --level must --filter 'CARD-*'",
        "parley conform http://localhost:4000 --behaviors none --json --junit conform.xml",
      ],
    })
      .argument(...url)
      .option("--acts <path>", "a file of tests, or a folder with *.acts.yaml; default: those of this package")
      .option("--protocol <version>", "only tests of this version of A2A, such as 1.0")
      .addOption(
        new Option("--level <level>", "only tests of this level and higher ones").choices(["must", "should", "may"]),
      )
      .option("--filter <pattern>", "only tests or suites with this id; * stands for any text; repeatable", collect)
      .option("--tag <tag>", "only tests with this tag; repeatable", collect)
      .option("--behaviors <prefixes>", "behaviours that the agent has, separated by commas, or none; default: all")
      .option("--var <name=value>", "sets a variable of the tests; repeatable", collect)
      .option("--other-token <token>", "bearer token of a second caller, to test that tasks are private")
      .option("--webhook <url>", "URL at which the server reaches this machine; default: a free port of 127.0.0.1")
      .option("--client <file>", "a module whose default export is the client of a custom binding; repeatable", collect)
      .option("--timeout <seconds>", "time limit of one step", count(1, 3600), 30)
      .option("--time-limit <minutes>", "time limit of the whole run", count(1, 1440), 30)
      .option("--concurrency <n>", "number of tests that run at a time", count(1, 64), 4)
      .option("--junit <file>", "also write a JUnit report"),
  ).action(async (at: string, options: ConformOptions) => {
    // Loaded here, so that other commands start without the runner and its YAML parser.
    const { conform } = await import("./commands/conform.ts");
    finish(await conform(io, at, options));
  });

  command("init", { summary: "Write a small agent project that runs", examples: ["parley init my-agent"] })
    .argument("[folder]", "a new or empty folder", ".")
    .option("--link <folder>", "take Parley's packages from this checkout, not from the registry")
    .action(async (folder: string, options: InitOptions) => finish(await init(io, folder, options)));

  return program;
}
