import { Command, Option } from "commander";
import { cancel } from "./commands/cancel.ts";
import { card } from "./commands/card.ts";
import { init, type InitOptions } from "./commands/init.ts";
import { send, type SendOptions } from "./commands/send.ts";
import type { ServeOptions } from "./commands/serve.ts";
import { task, type TaskOptions } from "./commands/task.ts";
import { tasks, type TasksOptions } from "./commands/tasks.ts";
import { watch } from "./commands/watch.ts";
import type { FollowOptions } from "./follow.ts";
import type { Io } from "./io.ts";
import { agentUrl, callOptions, collect, count, stateOption, timeOption, type CallOptions } from "./options.ts";
import { stateNames } from "./output/states.ts";
import { version } from "./version.ts";

/** Gives the exit code of a command to who runs the program. */
export type Finish = (code: number) => void;

const agentUrlText = "where the agent is: its base URL, or that of its card";

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((text) => `  $ ${text}\n`).join("")}`;
}

const exitCodes = `
Exit codes: 0 success; 1 a network or protocol error, or a task that failed, was
rejected or canceled; 2 bad usage; 130 interrupted (the task goes on).
A task that waits for input is a success: its state says so.
`;

export function createProgram(io: Io, finish: Finish): Command {
  const program = new Command("parley")
    .description("Serve A2A agents, and talk to any of them.")
    .version(version, "--version", "show the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [command]", "show the help of a command")
    .showSuggestionAfterError()
    .exitOverride()
    .configureHelp({ showGlobalOptions: false })
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "parley: ")),
      getOutHelpWidth: () => Math.min(io.stdout.columns ?? 80, 100),
      getErrHelpWidth: () => Math.min(io.stderr.columns ?? 80, 100),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText("after", exitCodes);

  const command = (name: string, summary: string, ...lines: readonly string[]): Command =>
    program
      .command(name)
      .description(summary)
      .helpOption("-h, --help", "show this help")
      .addHelpText("after", examples(...lines));
  const calling = (...definition: Parameters<typeof command>): Command =>
    callOptions(command(...definition)).argument("<url>", agentUrlText, agentUrl);

  command(
    "serve",
    "Serve the agents of a module: JavaScript or TypeScript whose default export is an\nagent, or a list of { agent, path?, tenant? }.",
    "parley serve agent.ts",
    "parley serve agent.ts --port 8080 --store memory",
    "parley serve agent.ts --host 0.0.0.0 --public-url https://agent.example --token s3cret=alice",
  )
    .argument("<file>", "the module")
    .option("--port <port>", "port to listen on; 0 takes a free one", count(0, 65_535), 4000)
    .option("--host <host>", "name or address to listen on", "127.0.0.1")
    .option("--public-url <url>", "how clients reach this server; the card gives it out", agentUrl)
    .option("--store <path>", "SQLite file of the tasks, or the word memory", ".parley/parley.db")
    .option(
      "--token <token>",
      "a bearer token that callers must show, TOKEN or TOKEN=SUBJECT; may be repeated (environment: PARLEY_TOKENS, separated by commas)",
      collect,
      [],
    )
    .option("--cors <origin>", "a web origin that may call, or *; may be repeated", collect, [])
    .option("--insecure", "serve an address beyond this machine without tokens")
    .option("--grace <seconds>", "how long running turns may go on when stopped", count(0), 10)
    .option("--json", "for programs: one JSON document with the URLs once it is ready")
    .option("--verbose", "log everything, and say what caused an error")
    .action(async (file: string, options: ServeOptions) => {
      // The server and its database are loaded for those who serve.
      const { serve } = await import("./commands/serve.ts");
      finish(await serve(io, file, options));
    });

  calling(
    "card",
    "Show an agent's card: what it is, what it can do, how it is reached.",
    "parley card http://localhost:4000",
    "parley card http://localhost:4000 --json",
  ).action(async (url: string, options: CallOptions) => finish(await card(io, url, options)));

  calling(
    "send",
    "Send a message, and show what the agent makes of it while it works. What the agent\nsays goes to standard output, how the work goes to standard error.",
    'parley send http://localhost:4000 "Hello"',
    'parley send http://localhost:4000 "chart temp_max by month" --file weather.csv --out charts',
    'echo "Hello" | parley send http://localhost:4000 -',
    'parley send http://localhost:4000 "Hello" --json',
    'parley send http://localhost:4000 "Hello" --no-wait',
  )
    .argument("[text]", "the message; - reads it from standard input")
    .option(
      "--file <file>",
      "a file to send, or a URL; its media type follows from its extension, or is said: FILE;type=text/csv; may be repeated",
      collect,
      [],
    )
    .option("--context <id>", "the conversation that the message belongs to")
    .option("--task <id>", "the task that the message continues")
    .option("--accept <modes>", "media types that the answer may have, separated by commas")
    .option("--out <folder>", "save artifacts as files in this folder; nothing is overwritten")
    .option("--no-stream", "ask for one answer at the end, not for a stream")
    .option("--wait", "wait until the task ends or waits for somebody", true)
    .option("--no-wait", "only start the task")
    .action(async (url: string, text: string | undefined, options: SendOptions) =>
      finish(await send(io, url, text, options)),
    );

  calling(
    "watch",
    "Watch a task until it ends.",
    "parley watch http://localhost:4000 TASK",
    "parley watch http://localhost:4000 TASK --out results",
  )
    .argument("<task>", "id of the task")
    .option("--out <folder>", "save artifacts as files in this folder; nothing is overwritten")
    .action(async (url: string, id: string, options: CallOptions & FollowOptions) =>
      finish(await watch(io, url, id, options)),
    );

  calling(
    "tasks",
    "List your tasks, the newest change first.",
    "parley tasks http://localhost:4000",
    "parley tasks http://localhost:4000 --state input-required --since 2h",
    "parley tasks http://localhost:4000 --limit 500 --json",
  )
    .option("--context <id>", "of this conversation alone")
    .addOption(new Option("--state <state>", `in this state alone: ${stateNames.join(", ")}`).argParser(stateOption))
    .option(
      "--since <time>",
      "changed since: a time such as 2026-01-31T12:00Z, or an age such as 30m, 2h, 7d",
      (text: string) => timeOption(text),
    )
    .option("--limit <n>", "at most so many", count(1), 50)
    .option("--page <token>", "go on where a list ended")
    .action(async (url: string, options: TasksOptions) => finish(await tasks(io, url, options)));

  calling(
    "task",
    "Show a task as it stands: its state, its messages, its artifacts.",
    "parley task http://localhost:4000 TASK",
    "parley task http://localhost:4000 TASK --history 0 --out results",
  )
    .argument("<id>", "id of the task")
    .option("--history <n>", "the newest so many messages; without it all", count(0))
    .option("--out <folder>", "save artifacts as files in this folder; nothing is overwritten")
    .action(async (url: string, id: string, options: TaskOptions) => finish(await task(io, url, id, options)));

  calling("cancel", "Cancel a task.", "parley cancel http://localhost:4000 TASK")
    .argument("<id>", "id of the task")
    .action(async (url: string, id: string, options: CallOptions) => finish(await cancel(io, url, id, options)));

  command("init", "Write a small agent project that runs.", "parley init my-agent")
    .argument("[folder]", "a new or empty folder", ".")
    .option("--link <folder>", "take Parley's packages from this checkout, not from the registry")
    .action(async (folder: string, options: InitOptions) => finish(await init(io, folder, options)));

  return program;
}
