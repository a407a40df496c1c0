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

/** Gives the exit code of a command to who runs the program. */
export type Finish = (code: number) => void;

const general = `
Exit codes:
  0    success, also of a task that waits for input: its state says so
  1    a network or protocol error, or a task that failed, was rejected or canceled
  2    bad usage
  130  interrupted; the task goes on

Environment:
  PARLEY_TOKEN           bearer token of the caller, where --token is absent
  PARLEY_TOKENS          for serve: bearer tokens, separated by commas
  NO_COLOR, FORCE_COLOR  no colours, or colours wherever the output goes`;

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
      "The module is JavaScript or TypeScript. What it exports by default is an agent, or a list of mounts: { agent, path?, tenant? }.",
    examples: [
      "parley serve agent.ts",
      "parley serve agent.ts --port 8080 --store memory",
      "parley serve agent.ts --host 0.0.0.0 --public-url https://agent.example --token s3cret=alice",
    ],
  })
    .argument("<file>", "the module")
    .option("--port <port>", "port to listen on; 0 takes a free one", count(0, 65_535), 4000)
    .option("--host <host>", "name or address to listen on", "127.0.0.1")
    .option("--public-url <url>", "how clients reach this server; cards give it out", agentUrl)
    .option("--store <path>", "SQLite file for the tasks, or the word memory", ".parley/parley.db")
    .option("--token <token>", "a bearer token that callers must show: TOKEN or TOKEN=SUBJECT; repeatable", collect)
    .option("--cors <origin>", "a web origin whose pages may call, or *; repeatable", collect)
    .option("--insecure", "serve an address beyond this machine without tokens")
    .option("--grace <seconds>", "how long running turns may go on when stopped", count(0), 10)
    .addOption(new Option("--log-level <level>", "what is logged to standard error, default: info").choices(logLevels))
    .addOption(
      new Option("--log-format <format>", "how; default: text on a terminal, JSON lines elsewhere").choices(logFormats),
    )
    .option("--json", "for programs: one JSON document with the URLs, once it is ready")
    .option("--verbose", "the same as --log-level debug, and say what kept it from starting")
    .action(async (file: string, options: ServeOptions) => {
      // The server and its database are loaded for those who serve.
      const { serve } = await import("./commands/serve.ts");
      finish(await serve(io, file, options));
    });

  callOptions(
    command("card", {
      summary: "Show an agent's card",
      description: "What the agent is, what it can do, how it is reached.",
      examples: ["parley card http://localhost:4000", "parley card http://localhost:4000 --json"],
    }).argument(...url),
  ).action(async (at: string, options: CallOptions) => finish(await card(io, at, options)));

  callOptions(
    command("send", {
      summary: "Send a message, and show the work on it",
      description:
        "What the agent says goes to standard output as it grows, how the work goes to standard error. Ends with 1 when the task fails, is rejected or canceled.",
      examples: [
        'parley send http://localhost:4000 "Hello"',
        'parley send http://localhost:4000 "chart temp_max by month" --file weather.csv --out charts',
        'echo "Hello" | parley send http://localhost:4000 -',
        'parley send http://localhost:4000 "Hello" --json',
        'parley send http://localhost:4000 "Hello" --no-wait',
      ],
    })
      .argument(...url)
      .argument("[text]", "the message; - reads it from standard input")
      .option(
        "--file <file>",
        "a file to send, or a URL; its extension tells the media type, or say it: FILE;type=text/csv; repeatable",
        collect,
      )
      .option("--context <id>", "the conversation that the message belongs to")
      .option("--task <id>", "the task that the message continues")
      .option("--accept <modes>", "media types that the answer may have, separated by commas")
      .option(...out)
      .option("--no-stream", "ask for one answer at the end, not for a stream")
      .option("--wait", "wait until the task ends or waits for somebody", true)
      .option("--no-wait", "only start the task"),
  ).action(async (at: string, text: string | undefined, options: SendOptions) =>
    finish(await send(io, at, text, options)),
  );

  callOptions(
    command("watch", {
      summary: "Watch a task until it ends",
      description: "Ends with 1 when the task fails, is rejected or canceled.",
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
      description: "Those whose state changed last come first.",
      examples: [
        "parley tasks http://localhost:4000",
        "parley tasks http://localhost:4000 --state input-required --since 2h",
        "parley tasks http://localhost:4000 --limit 500 --json",
      ],
    })
      .argument(...url)
      .option("--context <id>", "of this conversation alone")
      .addOption(new Option("--state <state>", `in this state alone: ${stateNames.join(", ")}`).argParser(stateOption))
      .option("--since <time>", "changed since a time, 2026-01-31T12:00Z, or for an age: 30m, 2h, 7d", (text: string) =>
        timeOption(text),
      )
      .option("--limit <n>", "at most so many", count(1), 50)
      .option("--page <token>", "go on where a list ended"),
  ).action(async (at: string, options: TasksOptions) => finish(await tasks(io, at, options)));

  callOptions(
    command("task", {
      summary: "Show a task as it stands",
      description: "Its state, its messages, its artifacts.",
      examples: [
        "parley task http://localhost:4000 TASK",
        "parley task http://localhost:4000 TASK --history 0 --out results",
      ],
    })
      .argument(...url)
      .argument("<id>", "id of the task")
      .option("--history <n>", "the newest so many messages; absent: all", count(0))
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
        "Runs declarative tests (ACTS) over each binding that the card names, and tells what does not hold: level, section, expected, got. Agents under test know the behaviours of ACTS §11; say which of them yours has. Ends with 0 if every MUST that was asked holds, with 1 if one does not or none was asked. The verdict counts what was not asked, and says why.",
      examples: [
        "parley conform http://localhost:4000 --behaviors none",
        "parley conform http://localhost:4000 --behaviors none --level must --filter 'CARD-*'",
        "parley conform http://localhost:4000 --behaviors none --json --junit conform.xml",
      ],
    })
      .argument(...url)
      .option("--acts <path>", "a file of tests, or a folder with *.acts.yaml; default: those of this package")
      .option("--protocol <version>", "tests of this version of A2A alone, such as 1.0")
      .addOption(
        new Option("--level <level>", "tests of this level and those above it").choices(["must", "should", "may"]),
      )
      .option("--filter <pattern>", "tests or suites of this id; * stands for anything; repeatable", collect)
      .option("--tag <tag>", "tests with this tag; repeatable", collect)
      .option("--behaviors <prefixes>", "behaviours that the agent has, separated by commas, or none; default: all")
      .option("--var <name=value>", "a variable of the tests; repeatable", collect)
      .option("--other-token <token>", "bearer token of somebody else, to see that tasks are private")
      .option("--webhook <url>", "how the server reaches this machine; default: a free port of 127.0.0.1")
      .option("--timeout <seconds>", "how long one step may take", count(1, 3600), 30)
      .option("--time-limit <minutes>", "how long the whole run may take", count(1, 1440), 30)
      .option("--concurrency <n>", "tests at a time", count(1, 64), 4)
      .option("--junit <file>", "also write a JUnit report"),
  ).action(async (at: string, options: ConformOptions) => {
    // The runner and its YAML reader are loaded for those who test.
    const { conform } = await import("./commands/conform.ts");
    finish(await conform(io, at, options));
  });

  command("init", { summary: "Write a small agent project that runs", examples: ["parley init my-agent"] })
    .argument("[folder]", "a new or empty folder", ".")
    .option("--link <folder>", "take Parley's packages from this checkout, not from the registry")
    .action(async (folder: string, options: InitOptions) => finish(await init(io, folder, options)));

  return program;
}
