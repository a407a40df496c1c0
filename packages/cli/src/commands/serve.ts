import { Option, type Command } from "commander";
import { logFormats, logLevels } from "../log.ts";
import { agentUrl, collect, count, type Program } from "../options.ts";
import type { ServeOptions } from "../serve.ts";
import { defaultFile } from "../stored.ts";

export function addServe({ io, command, finish }: Program): void {
  const serving = command("serve", {
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
  });
  serveOptions(serving, 10)
    .option(
      "--drain-delay <seconds>",
      "how long everything is still served after a signal to stop, until load balancers have seen that /readyz fails",
      count(0),
    )
    .option(
      "--processes <number>",
      "how many processes serve, on one port and one database, or the word cores",
      processes,
    )
    .action(async (file: string, options: ServeOptions) => {
      // Loaded here, so that other commands start without the server and its database.
      const { serve } = await import("../serve.ts");
      finish(await serve(io, file, options));
    });
}

/** Reads `--processes`. */
function processes(text: string): number | "cores" {
  return text === "cores" ? text : count(1, 256)(text);
}

/** Adds the module and the options of a server. `grace`: how long running turns get by default, in seconds. */
export function serveOptions(command: Command, grace: number): Command {
  return command
    .argument("<file>", "the module")
    .option("--port <port>", "port to listen on; 0 takes a free one", count(0, 65_535), 4000)
    .option("--host <host>", "name or address to listen on", "127.0.0.1")
    .option("--public-url <url>", "URL at which clients reach this server; it goes into the card", agentUrl)
    .option("--store <path>", "SQLite file for the tasks, or the word memory", defaultFile)
    .option("--token <token>", "a bearer token that callers must present: TOKEN or TOKEN=SUBJECT; repeatable", collect)
    .option("--api-key <key>", "the same for an API key, which is sent in x-api-key; repeatable", collect)
    .option("--issuer <url>", "take tokens of this authorization server (OpenID Connect)", agentUrl)
    .option("--audience <name>", "whom its tokens must be for; default: the URL of the agent; repeatable", collect)
    .option("--scope <scope>", "a scope that its tokens must have; repeatable", collect)
    .option("--cors <origin>", "a web origin whose pages may call the server, or * for any; repeatable", collect)
    .option("--grpc", "speak gRPC too; some clients refuse a card that lists it, such as ADK for Python")
    .option("--push", "deliver webhooks; PARLEY_KEYS has the keys that protect their secrets")
    .option("--card-key <file>", "a key that signs the cards, as parley card key makes it; repeatable", collect)
    .option("--audit", "log who is refused, what becomes of tasks, and what operators do")
    .option("--tls-cert <file>", "certificate in PEM; it is loaded again when the file changes")
    .option("--tls-key <file>", "its key in PEM")
    .option("--trust-proxy <address>", "address or range of a proxy that encrypts for clients; repeatable", collect)
    .option("--insecure", "serve other machines without credentials, over plain HTTP")
    .option("--grace <seconds>", "how long running turns may continue after a signal to stop", count(0), grace)
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
    .option("--verbose", "the same as --log-level debug; also shows why the server cannot start");
}
