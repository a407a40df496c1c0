import { logFormats, logLevels } from "../output/text.ts";
import { agentUrl, argument, collect, count, defaultStore, json, option, type CommandSpec } from "../options.ts";

/* Commands for whoever writes an agent and serves it. */

/** Options of a server, without those that differ between `serve` and `dev`. */
const serveOptions = (graceSeconds: number) => [
  option("--port <port>", "port to listen on; 0 takes a free one", count(0, 65_535)).default(4000),
  option("--host <host>", "name or address to listen on").default("127.0.0.1"),
  option("--public-url <url>", "URL at which clients reach this server; it goes into the card", agentUrl),
  option("--store <path>", "SQLite file for the tasks, or the word memory").default(defaultStore),
  option("--token <token>", "a bearer token that callers must present: TOKEN or TOKEN=SUBJECT; repeatable", collect),
  option("--api-key <key>", "the same for an API key, which is sent in x-api-key; repeatable", collect),
  option("--issuer <url>", "take tokens of this authorization server (OpenID Connect)", agentUrl),
  option("--audience <name>", "whom its tokens must be for; default: the URL of the agent; repeatable", collect),
  option("--scope <scope>", "a scope that its tokens must have; repeatable", collect),
  option("--cors <origin>", "a web origin whose pages may call the server, or * for any; repeatable", collect),
  option("--grpc", "speak gRPC too; some clients refuse a card that lists it, such as ADK for Python"),
  option("--push", "deliver webhooks; PARLEY_KEYS has the keys that protect their secrets"),
  option("--card-key <file>", "a key that signs the cards, as parley card key makes it; repeatable", collect),
  option("--audit", "log who is refused, what becomes of tasks, and what operators do"),
  option("--tls-cert <file>", "certificate in PEM; it is loaded again when the file changes"),
  option("--tls-key <file>", "its key in PEM"),
  option("--trust-proxy <address>", "address or range of a proxy that encrypts for clients; repeatable", collect),
  option("--insecure", "serve other machines without credentials, over plain HTTP"),
  option("--grace <seconds>", "how long running turns may continue after a signal to stop", count(0)).default(
    graceSeconds,
  ),
  option("--log-level <level>", "lowest level that is logged to standard error; default: info").choices(logLevels),
  option("--log-format <format>", "format of the log; default: text on a terminal, JSON lines elsewhere").choices(
    logFormats,
  ),
  option("--json", "print one JSON document with the URLs once the server is ready"),
  option("--verbose", "the same as --log-level debug; also shows why the server cannot start"),
];

const module = argument("<file>", "the module");

export const serve: CommandSpec = {
  name: "serve",
  summary: "Serve the agents of a module",
  description:
    "The module is JavaScript or TypeScript. Its default export is an agent, or a list of mounts: { agent, path?, tenant? }.",
  examples: [
    "parley serve agent.ts",
    "parley serve agent.ts --port 8080 --store memory",
    "parley serve agent.ts --processes cores",
    "parley serve agent.ts --push",
    "parley serve agent.ts --issuer https://login.example --scope chat",
    "parley serve agent.ts --card-key card-key.json --audit",
    "parley serve agent.ts --host 0.0.0.0 --public-url https://agent.example --token s3cret=alice --trust-proxy 10.0.0.0/8",
  ],
  arguments: [module],
  options: [
    ...serveOptions(10),
    option(
      "--drain-delay <seconds>",
      "how long everything is still served after a signal to stop, until load balancers have seen that /readyz fails",
      count(0),
    ),
    option(
      "--processes <number>",
      "how many processes serve, on one port and one database, or the word cores",
      (text): number | "cores" => (text === "cores" ? text : count(1, 256)(text)),
    ),
  ],
  load: async () => (await import("../serve.ts")).serve,
};

export const dev: CommandSpec = {
  name: "dev",
  summary: "Serve the agents of a module while you write it",
  description:
    "Serves the module again when a file of its folder changes. Tasks that run go on: they finish in the process in which they began, or continue in the new one where the agent is resumable. A module that cannot be loaded leaves the server before in place.",
  examples: ["parley dev agent.ts", "parley dev src/agent.ts --watch prompts --port 8080"],
  arguments: [module],
  options: [
    ...serveOptions(60),
    option("--watch <path>", "also restart when this file changes, or a file of this folder; repeatable", collect),
  ],
  load: async () => (await import("../dev/index.ts")).dev,
};

export const key: CommandSpec = {
  name: "key",
  summary: "Make an API key or a token, or the hash of a secret",
  description:
    "A server needs the hash alone: in apiKey(), bearer() and basic(), and in the environment of parley serve. Secrets are typed, or read from standard input.",
  examples: ["parley key", "echo s3cret | parley key --hash", "echo s3cret | parley key --password"],
  options: [
    option("--hash", "the hash of a key or a token that you have"),
    option("--password", "the hash of a password, for HTTP Basic"),
    json,
  ],
  load: async () => (await import("../callers.ts")).key,
};

export const init: CommandSpec = {
  name: "init",
  summary: "Write a small agent project that runs",
  examples: ["parley init my-agent"],
  arguments: [argument("[folder]", "a new or empty folder").default(".")],
  options: [option("--link <folder>", "take Parley's packages from this checkout, not from the registry")],
  load: async () => (await import("../init.ts")).init,
};
