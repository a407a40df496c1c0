import { parseArgs } from "node:util";
import { memoryStore, type Logger } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { configurations, tck10 } from "./agents/tck-1.0.ts";
import { tck03 } from "./agents/tck-0.3.ts";
import { judge } from "./judge.ts";

const help = `npm run conformance -- serve KIT [--port N] [--configuration NAME]
npm run conformance -- judge KIT REPORT… [--configuration NAME]

serve   runs the agent that a kit tests, until it is told to stop
judge   compares what a kit printed (pytest -rA) with what is expected of it; exits with 1 where they differ

KIT is tck-1.0 or tck-0.3. conformance/README.md says how the kits are run.

  --port           default 41241
  --configuration  of tck-1.0: ${Object.keys(configurations).join(", ")}; default all
`;

const logger: Logger = {
  debug() {},
  info() {},
  warn: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
  error: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
};

function start(kit: string, port: number, configuration: string): Promise<Server> {
  // Both kits use one messageId for many messages, which a server that retries safely takes for one (D8).
  const options = { port, logger, store: memoryStore(), dedupe: false } as const;
  if (kit === "tck-0.3") return serve(tck03(), options);
  const capabilities = configurations[configuration];
  if (kit !== "tck-1.0" || capabilities === undefined) throw new UsageError(`There is no ${kit} ${configuration}`);
  // Its schema of the card is closed: the fields of 0.3 beside those of 1.0 fail it.
  return serve(tck10(capabilities), { ...options, versions: ["1.0"] });
}

class UsageError extends Error {}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h" },
      port: { type: "string", default: "41241" },
      configuration: { type: "string", default: "all" },
    },
  });
  const [command, kit, ...reports] = positionals;
  if (values.help === true || command === undefined) {
    process.stdout.write(help);
    return values.help === true ? 0 : 2;
  }
  if (command === "serve" && kit !== undefined) {
    const server = await start(kit, Number(values.port), values.configuration);
    process.stdout.write(`${kit} at ${server.url}\n`);
    return 0;
  }
  if (command === "judge" && kit !== undefined && reports.length > 0) {
    return judge(kit, values.configuration, reports) ? 0 : 1;
  }
  throw new UsageError("What is to be done?");
}

try {
  process.exitCode = await main();
} catch (error) {
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(error instanceof UsageError ? `${text}\n\n${help}` : `${text}\n`);
  process.exitCode = 2;
}
