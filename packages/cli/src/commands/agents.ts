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
  summary: "Show an agent's card, check it, sign it",
  description: "parley card URL is short for parley card show URL.",
  examples: ["parley card http://localhost:4000", "parley card verify signed.json --keys card-keys.json"],
  commands: [
    {
      name: "show",
      isDefault: true,
      summary: "Show an agent's card",
      description: "What the agent can do, and how to reach it.",
      examples: ["parley card show http://localhost:4000", "parley card http://localhost:4000 --json"],
      arguments: [url],
      options: callOptions,
      load: async () => (await import("../card.ts")).show,
    },
    {
      name: "verify",
      summary: "Verify the signatures of a card",
      description:
        "Exits with 0 if a key that you trust has signed it, otherwise with 1. A card cannot name the keys that are trusted.",
      examples: [
        "parley card verify signed.json --keys card-keys.json",
        "parley card verify signed.json --keys card-keys.json --json",
      ],
      arguments: [argument("<card>", "the agent's base URL, that of its card, or a file")],
      options: [
        option(
          "--keys <place>",
          "the keys that you trust: a file or a URL with a key set; repeatable",
          collect,
        ).makeOptionMandatory(),
        ...callOptions,
      ],
      load: async () => (await import("../card.ts")).verify,
    },
    {
      name: "lint",
      summary: "Find what is wrong with a card",
      description:
        "What breaks the specification is an error; what works, but not for all or not as it seems, is a warning. Exits with 1 if there is an error.",
      examples: ["parley card lint http://localhost:4000", "parley card lint card.json --json"],
      arguments: [
        argument("<card>", "the agent's base URL, that of its card, or a file; - reads it from standard input"),
      ],
      options: callOptions,
      load: async () => (await import("../card.ts")).lint,
    },
    {
      name: "sign",
      summary: "Sign a card",
      description:
        "Writes the signed card to standard output. Signatures of other keys stay. Sign again after every change of the card.",
      examples: [
        "parley card sign card.json --key card-key.json > signed.json",
        "parley card sign card.json --key card-key.json --jku http://localhost:4000/keys.json",
      ],
      arguments: [argument("<file>", "the card as JSON; - reads it from standard input")],
      options: [
        option("--key <file>", "a private key, as parley card key makes it; repeatable", collect).makeOptionMandatory(),
        option("--jku <url>", "URL of the public keys, as a hint for readers", agentUrl),
        option(
          "--reduced",
          "also sign what the SDKs of JavaScript and Python read, where they drop something of the card",
        ),
      ],
      load: async () => (await import("../card.ts")).sign,
    },
    {
      name: "key",
      summary: "Make a key that signs cards",
      description:
        "Writes the private key to a new file that only you may read, and the key set to publish to standard output.",
      examples: ["parley card key new-key.json > new-keys.json"],
      arguments: [argument("<file>", "the file for the private key; it must not exist")],
      options: [
        option("--algorithm <name>", "algorithm of the signatures")
          .choices(["ES256", "EdDSA", "RS256"])
          .default("ES256"),
      ],
      load: async () => (await import("../card.ts")).makeKey,
    },
  ],
};

export const send: CommandSpec = {
  name: "send",
  summary: "Send a message and show the answer",
  description:
    "The answer goes to standard output while it grows, progress to standard error. Exits with 1 if the task fails, is rejected or is canceled.",
  examples: [
    'parley send http://localhost:4000 "Hello"',
    'parley send http://localhost:4000 "chart temp_max by month" --file weather.csv --out charts',
    "parley send http://localhost:4000 --data form.json",
    'echo "Hello" | parley send http://localhost:4000 -',
    'parley send http://localhost:4000 "Hello" --json',
    'parley send http://localhost:4000 "Hello" --no-wait',
  ],
  arguments: [url, argument("[text]", "text of the message; - reads it from standard input")],
  options: [
    ...messageOptions,
    option("--context <id>", "id of the conversation that the message belongs to"),
    option("--task <id>", "id of the task that the message continues"),
    option("--accept <modes>", "media types to accept in the answer, separated by commas"),
    option("--no-stream", "wait for one answer, not for a stream"),
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
  arguments: [url, argument("<task>", "id of the task")],
  options: [...callOptions, ...resultOptions],
  load: async () => (await import("../send.ts")).watch,
};

export const listen: CommandSpec = {
  name: "listen",
  summary: "Receive the webhooks of a task, and show them",
  description:
    "Opens a receiver on this machine, registers it for the task, and shows each event that arrives, with what proved its sender. At the end of the task, or at Ctrl-C, the webhook is removed. Exits with 1 if the task fails, is rejected or is canceled.",
  examples: [
    'parley listen http://localhost:4000 --message "Hello"',
    "parley listen http://localhost:4000 TASK",
    'parley listen http://localhost:4000 --message "Hello" --json',
  ],
  arguments: [url, argument("[task]", "id of the task")],
  options: [
    option("--message <text>", "send this message, and listen to its task"),
    ...messageOptions,
    option("--port <port>", "port to listen on; 0 takes a free one", count(0, 65_535)).default(0),
    option(
      "--public-url <url>",
      "URL at which the agent reaches this receiver, through a tunnel to its port",
      agentUrl,
    ),
    ...callOptions,
    ...resultOptions,
  ],
  load: async () => (await import("../listen.ts")).listen,
};

export const tasks: CommandSpec = {
  name: "tasks",
  summary: "List your tasks",
  description: "The most recently changed come first.",
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
      "only tasks that changed since a time (2026-01-31T12:00Z) or within an age (30m, 2h, 7d)",
      timeOption,
    ),
    option("--limit <n>", "largest number of tasks", count(1)).default(50),
    option("--page <token>", "token of the page to begin with, as the end of a list shows it"),
    ...callOptions,
  ],
  load: async () => (await import("../tasks.ts")).tasks,
};

export const task: CommandSpec = {
  name: "task",
  summary: "Show a task",
  description: "Its state, messages and artifacts at this moment.",
  examples: [
    "parley task http://localhost:4000 TASK",
    "parley task http://localhost:4000 TASK --history 0 --out results",
  ],
  arguments: [url, argument("<id>", "id of the task")],
  options: [
    option("--history <n>", "number of messages to show, the newest; default: all", count(0)),
    ...callOptions,
    ...resultOptions,
  ],
  load: async () => (await import("../tasks.ts")).task,
};

export const cancel: CommandSpec = {
  name: "cancel",
  summary: "Cancel a task",
  examples: ["parley cancel http://localhost:4000 TASK"],
  arguments: [url, argument("<id>", "id of the task")],
  options: callOptions,
  load: async () => (await import("../tasks.ts")).cancel,
};

export const login: CommandSpec = {
  name: "login",
  summary: "Log in to an agent",
  description:
    "Reads the agent's card, asks for what its security schemes need, and tries it. Later commands use it for this address and what is below it. It is kept in the keychain of the operating system, or in a file that only you may read. Secrets are typed, or read from standard input, a line each.",
  examples: [
    "echo s3cret | parley login http://localhost:4000",
    "echo s3cret | parley login http://localhost:4000 --with-token",
    "parley login http://localhost:4000 --client-id native --scope offline_access",
  ],
  arguments: [url],
  options: [
    option("--scheme <name>", "the security scheme of the card; default: the first that can be used"),
    option("--with-token", "give a token that you have, for a scheme that takes bearer tokens"),
    option("--username <name>", "user name for HTTP Basic; default: it is asked for"),
    option(
      "--flow <flow>",
      "how to get a token of OAuth: in a browser here, with a code in any browser, or with the secret of a client; default: the first that the card has",
    ).choices(["browser", "device", "client"]),
    option("--client-id <id>", "id of this program at the authorization server; default: it is asked for"),
    option("--with-secret", "the client has a secret, which is asked for"),
    option("--issuer <url>", "the authorization server; default: the one that the card names", agentUrl),
    option("--scope <scope>", "a further scope to ask for, such as offline_access; repeatable", collect),
    option("--no-resource", "do not say which agent the token is for, where the server refuses that (RFC 8707)"),
    option("--dpop", "bind the token to a key of this login (RFC 9449)"),
    ...callOptions,
  ],
  load: async () => (await import("../login.ts")).login,
};

const someAgent = argument("[url]", url.description, agentUrl);

export const logout: CommandSpec = {
  name: "logout",
  summary: "Log out of an agent",
  description: "Deletes what is kept of the login, its secrets included.",
  examples: ["parley logout http://localhost:4000", "parley logout --all"],
  arguments: [someAgent],
  options: [option("--all", "log out of all agents")],
  load: async () => (await import("../login.ts")).logout,
};

export const whoami: CommandSpec = {
  name: "whoami",
  summary: "Show where you are logged in",
  description: "With a URL only what is used for that agent. Secrets are not shown.",
  examples: ["parley whoami", "parley whoami --json"],
  arguments: [someAgent],
  options: [json],
  load: async () => (await import("../login.ts")).whoami,
};

export const doctor: CommandSpec = {
  name: "doctor",
  summary: "Find out why an agent cannot be called, or not well",
  description:
    "Looks at a server as clients see it: its card, TLS, the addresses and versions on the card, streams, the clock. Says how to mend what is wrong. Changes nothing; only --message sends one. Exits with 1 if something is broken.",
  examples: [
    "parley doctor http://localhost:4000",
    'parley doctor http://localhost:4000 --message "count to 3"',
    "parley doctor http://localhost:4000 --binding JSONRPC --json",
  ],
  arguments: [url],
  options: [
    option(
      "--message <text>",
      "a message that takes the agent a second or more: shows whether a proxy holds streams back",
    ),
    ...callOptions,
  ],
  load: async () => (await import("../doctor/index.ts")).doctor,
};

export const conform: CommandSpec = {
  name: "conform",
  summary: "Test whether a server keeps to the protocol",
  description:
    "Runs declarative tests (ACTS) over each binding that the card names, and reports what does not hold: level, section, expected, got. By default it runs the tests that any agent can answer, in a few seconds. Other tests need an agent made for them, with the behaviors of ACTS §11: they run with --acts, or if the card offers the behavior as a skill. Exits with 0 if every MUST that was asked holds, with 1 if one does not or none was asked. The verdict counts what was not asked, with the reasons.",
  examples: [
    "parley conform http://localhost:4000",
    "parley conform http://localhost:4000 --level must --filter 'CARD-*'",
    "parley conform http://localhost:4000 --json --junit conform.xml",
  ],
  arguments: [url],
  options: [
    option("--acts [path]", "the agent is made for ACTS: run every test; with a path, those of this file or folder"),
    option("--protocol <version>", "only tests of this version of A2A, such as 1.0"),
    option("--level <level>", "only tests of this level and higher ones").choices(["must", "should", "may"]),
    option("--filter <pattern>", "only tests or suites with this id; * stands for any text; repeatable", collect),
    option("--tag <tag>", "only tests with this tag; repeatable", collect),
    option(
      "--behaviors <prefixes>",
      "test behaviors that the agent has, separated by commas, or all, or none; default: those that the card offers, with --acts all",
    ),
    option("--var <name=value>", "sets a variable of the tests; repeatable", collect),
    option("--other-token <token>", "bearer token of a second caller, to test that tasks are private"),
    option(
      "--webhook <url>",
      "URL at which the server reaches this machine; default: a free port of 127.0.0.1",
      receiverUrl,
    ),
    option("--client <file>", "a module whose default export is the client of a custom binding; repeatable", collect),
    option("--timeout <seconds>", "time limit of one step", count(1, 3600)).default(30),
    option("--time-limit <minutes>", "time limit of the whole run", count(1, 1440)).default(30),
    option("--concurrency <n>", "number of tests that run at a time", count(1, 64)).default(4),
    option("--junit <file>", "also write a JUnit report"),
    ...conformCallOptions,
  ],
  load: async () => (await import("../conform.ts")).conform,
};
