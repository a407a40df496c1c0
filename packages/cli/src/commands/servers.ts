import { logFormats, logLevels } from "../output/text.ts";
import { agentUrl, argument, collect, count, defaultStore, json, option, type CommandSpec } from "../options.ts";

/* Commands for authors of agents. */

/** The options that `serve` and `dev` share. */
const serveOptions = (graceSeconds: number) => [
  option("--port <port>", "port to listen on; 0 picks a free one", count(0, 65_535)).default(4000),
  option("--host <host>", "host name or address to listen on").default("127.0.0.1"),
  option("--public-url <url>", "URL at which clients reach this server, for the card", agentUrl),
  option("--store <path>", "SQLite file for tasks, or memory").default(defaultStore),
  option("--token <token>", "accept this bearer token: TOKEN or TOKEN=SUBJECT; repeatable", collect),
  option("--api-key <key>", "the same for an API key in the header x-api-key; repeatable", collect),
  option("--issuer <url>", "accept tokens of this authorization server (OpenID Connect)", agentUrl),
  option("--audience <name>", "audience that its tokens must have; default: the URL of the agent; repeatable", collect),
  option("--scope <scope>", "scope that its tokens must have; repeatable", collect),
  option("--cors <origin>", "web origin that may call the server, or * for any; repeatable", collect),
  option("--grpc", "also serve gRPC; some clients, such as ADK for Python, reject a card that lists it"),
  option("--console", "serve the console at /console; default on a loopback address without credentials"),
  option("--no-console", "do not serve the console"),
  option("--push", "deliver webhooks; PARLEY_KEYS holds the keys that encrypt their secrets"),
  option("--card-key <file>", "sign the cards with a key from parley card key; repeatable", collect),
  option("--audit", "log rejected callers, the outcome of tasks, and operator actions"),
  option("--tls-cert <file>", "TLS certificate in PEM; reloaded when the file changes"),
  option("--tls-key <file>", "TLS key in PEM"),
  option("--trust-proxy <address>", "address or range of a proxy that terminates TLS; repeatable", collect),
  option("--insecure", "allow other machines to call without credentials, over plain HTTP"),
  option("--grace <seconds>", "time for running turns to finish after a signal to stop", count(0)).default(
    graceSeconds,
  ),
  option("--log-level <level>", "minimum level of the log on standard error; default: info").choices(logLevels),
  option("--log-format <format>", "log format; default: text on a terminal, otherwise JSON lines").choices(logFormats),
  option("--json", "print the URLs as one JSON document once the server is ready"),
  option("--verbose", "same as --log-level debug; also shows why the server cannot start"),
];

const module = argument("<file>", "module that exports the agents");

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
      "time to keep serving after a signal to stop, until load balancers notice that /readyz fails",
      count(0),
    ),
    option(
      "--processes <number>",
      "number of processes, on one port and one database, or cores",
      (text): number | "cores" => (text === "cores" ? text : count(1, 256)(text)),
    ),
  ],
  load: async () => (await import("../serve.ts")).serve,
};

export const dev: CommandSpec = {
  name: "dev",
  summary: "Serve a module and restart when it changes",
  description:
    "Restarts when a file in the folder of the module changes. Running tasks finish in their process, or continue in the new one if the agent is resumable. If the module does not load, the previous version keeps serving.",
  examples: ["parley dev agent.ts", "parley dev src/agent.ts --watch prompts --port 8080"],
  arguments: [module],
  options: [...serveOptions(60), option("--watch <path>", "file or folder to watch as well; repeatable", collect)],
  load: async () => (await import("../dev/index.ts")).dev,
};

export const key: CommandSpec = {
  name: "key",
  summary: "Generate an API key or token, or hash a secret",
  description:
    "A server needs only the hash, in apiKey(), bearer(), basic() or the environment of parley serve. Type the secret, or pass it on standard input.",
  examples: ["parley key", "echo s3cret | parley key --hash", "echo s3cret | parley key --password"],
  options: [
    option("--hash", "hash an existing key or token"),
    option("--password", "hash a password, for HTTP Basic"),
    json,
  ],
  load: async () => (await import("../callers.ts")).key,
};

export const init: CommandSpec = {
  name: "init",
  summary: "Create a small agent project",
  examples: ["parley init my-agent", "parley init ai-agent --with ai-sdk"],
  arguments: [argument("[folder]", "new or empty folder").default(".")],
  options: [
    option(
      "--with <framework>",
      "framework of the agent: ai-sdk, claude, langgraph, mastra, mcp or openai; default: none",
    ),
    option("--link <folder>", "use Parley's packages from this checkout instead of the registry"),
  ],
  load: async () => (await import("../init.ts")).init,
};
