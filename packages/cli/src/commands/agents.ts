import { stateNames } from "../output/text.ts";
import {
  agentUrl,
  argument,
  callOptions,
  collect,
  conformCallOptions,
  count,
  json,
  messageOptions,
  option,
  receiverUrl,
  resultOptions,
  stateOption,
  timeOption,
  url,
  type CommandSpec,
} from "../options.ts";

/* Commands that call an agent. */

export const card: CommandSpec = {
  name: "card",
  summary: "Show, check or sign an agent card",
  description: "parley card URL is short for parley card show URL.",
  examples: ["parley card http://localhost:4000", "parley card verify signed.json --keys card-keys.json"],
  commands: [
    {
      name: "show",
      isDefault: true,
      summary: "Show an agent's card",
      description: "The card says what the agent can do and how to reach it.",
      examples: ["parley card show http://localhost:4000", "parley card http://localhost:4000 --json"],
      arguments: [url],
      options: callOptions,
      load: async () => (await import("../card.ts")).show,
    },
    {
      name: "verify",
      summary: "Verify the signatures of a card",
      description:
        "Exits with 0 if a trusted key signed the card, otherwise with 1. Only --keys decides which keys are trusted, never the card.",
      examples: [
        "parley card verify signed.json --keys card-keys.json",
        "parley card verify signed.json --keys card-keys.json --json",
      ],
      arguments: [argument("<card>", "base URL of the agent, URL of its card, or a file")],
      options: [
        option("--keys <place>", "file or URL with a set of trusted keys; repeatable", collect).makeOptionMandatory(),
        ...callOptions,
      ],
      load: async () => (await import("../card.ts")).verify,
    },
    {
      name: "lint",
      summary: "Check a card for mistakes",
      description:
        "An error violates the specification. A warning may not work with every client, or not as intended. Exits with 1 if there is an error.",
      examples: ["parley card lint http://localhost:4000", "parley card lint card.json --json"],
      arguments: [argument("<card>", "base URL of the agent, URL of its card, or a file; - reads standard input")],
      options: callOptions,
      load: async () => (await import("../card.ts")).lint,
    },
    {
      name: "sign",
      summary: "Sign a card",
      description:
        "Writes the signed card to standard output, and keeps signatures of other keys. Sign again after each change to the card.",
      examples: [
        "parley card sign card.json --key card-key.json > signed.json",
        "parley card sign card.json --key card-key.json --jku http://localhost:4000/keys.json",
      ],
      arguments: [argument("<file>", "the card as JSON; - reads standard input")],
      options: [
        option("--key <file>", "private key from parley card key; repeatable", collect).makeOptionMandatory(),
        option("--jku <url>", "URL of the public keys, as a hint for clients", agentUrl),
        option("--reduced", "also sign the reduced card that the JavaScript and Python SDKs read"),
      ],
      load: async () => (await import("../card.ts")).sign,
    },
    {
      name: "key",
      summary: "Generate a key for signing cards",
      description:
        "Writes the private key to a new file that only you can read, and the key set to publish to standard output.",
      examples: ["parley card key new-key.json > new-keys.json"],
      arguments: [argument("<file>", "file for the private key; it must not exist")],
      options: [
        option("--algorithm <name>", "signature algorithm").choices(["ES256", "EdDSA", "RS256"]).default("ES256"),
      ],
      load: async () => (await import("../card.ts")).makeKey,
    },
  ],
};

export const send: CommandSpec = {
  name: "send",
  summary: "Send a message and show the answer",
  description:
    "Streams the answer to standard output and progress to standard error. Exits with 1 if the task fails, is rejected or is canceled.",
  examples: [
    'parley send http://localhost:4000 "Hello"',
    'parley send http://localhost:4000 "chart temp_max by month" --file weather.csv --out charts',
    "parley send http://localhost:4000 --data form.json",
    'echo "Hello" | parley send http://localhost:4000 -',
    'parley send http://localhost:4000 "Hello" --json',
    'parley send http://localhost:4000 "Hello" --no-wait',
  ],
  arguments: [url, argument("[text]", "text of the message; - reads standard input")],
  options: [
    ...messageOptions,
    option("--context <id>", "ID of the conversation"),
    option("--task <id>", "ID of the task to continue"),
    option("--accept <modes>", "accepted media types of the answer, separated by commas"),
    option("--no-stream", "request a single answer instead of a stream"),
    option("--wait", "wait until the task ends or needs input").default(true),
    option("--no-wait", "return as soon as the task has started"),
    ...callOptions,
    ...resultOptions,
  ],
  load: async () => (await import("../send.ts")).send,
};

export const watch: CommandSpec = {
  name: "watch",
  summary: "Watch a task until it ends",
  description: "Exits with 1 if the task fails, is rejected or is canceled.",
  examples: ["parley watch http://localhost:4000 TASK", "parley watch http://localhost:4000 TASK --out results"],
  arguments: [url, argument("<task>", "ID of the task")],
  options: [...callOptions, ...resultOptions],
  load: async () => (await import("../send.ts")).watch,
};

export const listen: CommandSpec = {
  name: "listen",
  summary: "Receive and show the webhooks of a task",
  description:
    "Starts a receiver on this machine, registers it for the task, and shows each event with the proof of its sender. Removes the webhook when the task ends, or on Ctrl-C. Exits with 1 if the task fails, is rejected or is canceled.",
  examples: [
    'parley listen http://localhost:4000 --message "Hello"',
    "parley listen http://localhost:4000 TASK",
    'parley listen http://localhost:4000 --message "Hello" --json',
  ],
  arguments: [url, argument("[task]", "ID of the task")],
  options: [
    option("--message <text>", "send this message and listen to its task"),
    ...messageOptions,
    option("--port <port>", "port to listen on; 0 picks a free one", count(0, 65_535)).default(0),
    option("--public-url <url>", "public URL of this receiver, such as a tunnel to its port", agentUrl),
    ...callOptions,
    ...resultOptions,
  ],
  load: async () => (await import("../listen.ts")).listen,
};

export const mcp: CommandSpec = {
  name: "mcp",
  summary: "Serve an agent as an MCP server",
  description:
    "Skills of the agent become tools of Claude, Cursor and other MCP clients. Serves standard input and output, so that a client can start it, or HTTP with --http. The agent gets the credentials of this command or of a login, never those of the MCP client.",
  examples: [
    "parley mcp http://localhost:4000",
    "parley mcp http://localhost:4000 --skill obey",
    "parley mcp http://localhost:4000 --http 8000",
  ],
  arguments: [url],
  options: [
    option("--skill <id>", "serve this skill; default: all skills; repeatable", collect),
    option("--http <port>", "serve HTTP on this port of 127.0.0.1, at /mcp; 0 picks a free one", count(0, 65_535)),
    option(
      "--max-wait <seconds>",
      "longest time that a call blocks; afterwards its answer has a handle for get_task",
      count(1, 86_400),
    ).default(50),
    ...callOptions.filter(({ long }) => long !== "--json"),
  ],
  load: async () => (await import("../mcp.ts")).mcp,
};

export const tasks: CommandSpec = {
  name: "tasks",
  summary: "List your tasks",
  description: "Most recently updated first.",
  examples: [
    "parley tasks http://localhost:4000",
    "parley tasks http://localhost:4000 --state input-required --since 2h",
    "parley tasks http://localhost:4000 --limit 500 --json",
  ],
  arguments: [url],
  options: [
    option("--context <id>", "only tasks of this conversation"),
    option("--state <state>", `only tasks in this state: ${stateNames.join(", ")}`, stateOption),
    option(
      "--since <time>",
      "only tasks updated since a time (2026-01-31T12:00Z) or within an age (30m, 2h, 7d)",
      timeOption,
    ),
    option("--limit <n>", "maximum number of tasks", count(1)).default(50),
    option("--page <token>", "token of the first page, from the end of the previous list"),
    ...callOptions,
  ],
  load: async () => (await import("../tasks.ts")).tasks,
};

export const task: CommandSpec = {
  name: "task",
  summary: "Show a task",
  description: "Its current state, messages and artifacts.",
  examples: [
    "parley task http://localhost:4000 TASK",
    "parley task http://localhost:4000 TASK --history 0 --out results",
  ],
  arguments: [url, argument("<id>", "ID of the task")],
  options: [
    option("--history <n>", "number of latest messages to show; default: all", count(0)),
    ...callOptions,
    ...resultOptions,
  ],
  load: async () => (await import("../tasks.ts")).task,
};

export const cancel: CommandSpec = {
  name: "cancel",
  summary: "Cancel a task",
  examples: ["parley cancel http://localhost:4000 TASK"],
  arguments: [url, argument("<id>", "ID of the task")],
  options: callOptions,
  load: async () => (await import("../tasks.ts")).cancel,
};

export const login: CommandSpec = {
  name: "login",
  summary: "Log in to an agent",
  description:
    "Reads the agent's card, asks for the credentials that its security schemes need, and tests them. Later commands use them for this URL and everything below it. They are stored in the keychain of the operating system, or in a file that only you can read. Type the secrets, or pass them on standard input, one per line.",
  examples: [
    "echo s3cret | parley login http://localhost:4000",
    "echo s3cret | parley login http://localhost:4000 --with-token",
    "parley login http://localhost:4000 --client-id native --scope offline_access",
  ],
  arguments: [url],
  options: [
    option("--scheme <name>", "security scheme of the card; default: the first supported one"),
    option("--with-token", "enter an existing token, for a scheme that takes bearer tokens"),
    option("--username <name>", "user name for HTTP Basic; default: ask"),
    option(
      "--flow <flow>",
      "OAuth flow: browser on this machine, device code in any browser, or client credentials; default: the first flow of the card",
    ).choices(["browser", "device", "client"]),
    option("--client-id <id>", "client ID at the authorization server; default: ask"),
    option("--with-secret", "ask for a client secret"),
    option("--issuer <url>", "authorization server; default: from the card", agentUrl),
    option("--scope <scope>", "additional scope to request, such as offline_access; repeatable", collect),
    option("--no-resource", "omit the resource parameter, for servers that reject it (RFC 8707)"),
    option("--dpop", "bind the token to a key (RFC 9449)"),
    ...callOptions,
  ],
  load: async () => (await import("../login.ts")).login,
};

const someAgent = argument("[url]", url.description, agentUrl);

export const logout: CommandSpec = {
  name: "logout",
  summary: "Log out of an agent",
  description: "Deletes the login and its secrets.",
  examples: ["parley logout http://localhost:4000", "parley logout --all"],
  arguments: [someAgent],
  options: [option("--all", "log out of all agents")],
  load: async () => (await import("../login.ts")).logout,
};

export const whoami: CommandSpec = {
  name: "whoami",
  summary: "List your logins",
  description: "With a URL, only the logins used for that agent. Secrets are never shown.",
  examples: ["parley whoami", "parley whoami --json"],
  arguments: [someAgent],
  options: [json],
  load: async () => (await import("../login.ts")).whoami,
};

export const doctor: CommandSpec = {
  name: "doctor",
  summary: "Diagnose why calls to an agent fail",
  description:
    "Checks what clients see of a server: its card, TLS, the addresses and versions on the card, streams, the clock. Suggests a fix for each problem. Read-only unless --message sends a message. Exits with 1 if something is broken.",
  examples: [
    "parley doctor http://localhost:4000",
    'parley doctor http://localhost:4000 --message "count to 3"',
    "parley doctor http://localhost:4000 --binding JSONRPC --json",
  ],
  arguments: [url],
  options: [
    option(
      "--message <text>",
      "message that keeps the agent busy for at least a second, to detect a proxy that buffers streams",
    ),
    ...callOptions,
  ],
  load: async () => (await import("../doctor/index.ts")).doctor,
};

export const inspect: CommandSpec = {
  name: "inspect",
  summary: "Open the console: talk to agents, and see what goes over the wire",
  description:
    "Serves a web application on this machine only, and opens it in a browser. Its URL has a token that is valid until the command ends. The console calls the agent of the URL with the credentials from the options, and all others with those of parley login or from the page.",
  examples: [
    "parley inspect http://localhost:4000",
    "parley inspect",
    "parley inspect http://localhost:4000 --no-open",
    "parley inspect http://localhost:4000 --operators http://localhost:4000/ops",
    "parley inspect http://localhost:4000 --webhooks",
  ],
  arguments: [someAgent],
  options: [
    option("--port <port>", "port of the console; 0 picks a free one", count(0, 65_535)).default(0),
    option("--no-open", "do not open a browser"),
    option(
      "--operators <url>",
      "URL of the operators' API of a server, to see and change the tasks of all owners",
      agentUrl,
    ),
    option(
      "--operators-token <token>",
      "bearer token for --operators; default: the environment variable PARLEY_OPERATOR_TOKEN",
    ),
    option("--webhooks", "show webhooks that agents on this machine send to a URL of the console"),
    ...callOptions,
  ],
  load: async () => (await import("../inspect.ts")).inspect,
};

export const conform: CommandSpec = {
  name: "conform",
  summary: "Test whether a server conforms to the protocol",
  description:
    "Runs declarative tests (ACTS) over each binding of the card, and reports failures with level, section, expected and actual value. The default tests work with any agent and take a few seconds. The others need an agent with the behaviors of ACTS §11: they run with --acts, or if the card lists the behavior as a skill. Exits with 0 if every MUST that was tested holds, with 1 if one fails or none was tested. The verdict counts the tests that did not run, with the reasons.",
  examples: [
    "parley conform http://localhost:4000",
    "parley conform http://localhost:4000 --level must --filter 'CARD-*'",
    "parley conform http://localhost:4000 --json --junit conform.xml",
  ],
  arguments: [url],
  options: [
    option("--acts [path]", "the agent supports ACTS: run every test, or those of this file or folder"),
    option("--protocol <version>", "test only this version of A2A, such as 1.0"),
    option("--level <level>", "minimum level of the tests").choices(["must", "should", "may"]),
    option("--filter <pattern>", "ID of tests or suites to run; * matches any text; repeatable", collect),
    option("--tag <tag>", "tag of tests to run; repeatable", collect),
    option(
      "--behaviors <prefixes>",
      "test behaviors of the agent, separated by commas, or all, or none; default: those on the card, with --acts all",
    ),
    option("--var <name=value>", "set a variable of the tests; repeatable", collect),
    option("--other-token <token>", "bearer token of a second caller, to test that tasks are private"),
    option(
      "--webhook <url>",
      "URL at which the server reaches this machine; default: a free port on 127.0.0.1",
      receiverUrl,
    ),
    option("--client <file>", "module whose default export is the client of a custom binding; repeatable", collect),
    option("--timeout <seconds>", "timeout of a step", count(1, 3600)).default(30),
    option("--time-limit <minutes>", "timeout of the whole run", count(1, 1440)).default(30),
    option("--concurrency <n>", "number of concurrent tests", count(1, 64)).default(4),
    option("--junit <file>", "also write a JUnit report"),
    ...conformCallOptions,
  ],
  load: async () => (await import("../conform.ts")).conform,
};
