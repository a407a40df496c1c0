import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { testClient } from "./clients.ts";
import { configurations } from "./agents/tck-1.0.ts";
import { expectationOf, kits, type Kit } from "./expected.ts";
import { differences, figuresOf, inWords } from "./judge.ts";
import { start } from "./serve.ts";
import { readActs, readPytest, type Outcome } from "./report.ts";
import { writePage } from "./page.ts";

const help = `npm run kits -- serve KIT [--configuration NAME] [--port N]
npm run kits -- clients FILE
npm run kits -- judge KIT RUN REPORT
npm run kits -- page

serve   runs the agent that a kit tests, until a signal stops it
clients runs the client tests of an ACTS file, and prints a report
judge   compares the report of a kit with the expected results of that run; exits with 1 if they differ
page    writes the expected results into docs/kits.md

KIT is ${kits.join(", ")}. kits/README.md describes how to run the kits.

  --configuration  of tck-1.0: ${[...Object.keys(configurations), "guarded", "defaults", "strict"].join(", ")}; of tck-0.3: all,
                   guarded, strict; of acts: all, none, guarded, strict; default all
  --port           default 41241
`;

class UsageError extends Error {}

function judge(kit: Kit, run: string, report: string): boolean {
  const text = readFileSync(report, "utf8");
  const outcomes: ReadonlyMap<string, Outcome> =
    kit === "acts"
      ? new Map([...readActs(text)].map(([part, outcome]) => [`${run}-${part}`, outcome]))
      : new Map([[run, readPytest(text)]]);
  const expected = expectationOf(kit);
  return [...outcomes]
    .map(([name, outcome]) => {
      const wrong = differences(outcome, expected, name);
      process.stdout.write([...wrong, `${kit}, ${name}: ${inWords(figuresOf(outcome))}`].join("\n") + "\n");
      return wrong.length === 0;
    })
    .every(Boolean);
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h" },
      port: { type: "string", default: "41241" },
      configuration: { type: "string", default: "all" },
    },
  });
  const [command, name, run, report] = positionals;
  const kit = kits.find((one) => one === name);
  if (values.help === true || command === undefined) {
    process.stdout.write(help);
    return values.help === true ? 0 : 2;
  }
  if (command === "clients" && name !== undefined) {
    process.stdout.write(`${JSON.stringify(await testClient(readFileSync(name, "utf8")))}\n`);
    return 0;
  }
  if (command === "page") {
    writePage();
    return 0;
  }
  if (kit === undefined) throw new UsageError(`name a kit: ${kits.join(", ")}`);
  if (command === "serve") {
    const server = await start(kit, values.configuration, Number(values.port));
    if (server === undefined) throw new UsageError(`${kit} has no configuration ${values.configuration}`);
    process.stdout.write(`${kit} at ${server.url}\n`);
    return 0;
  }
  if (command === "judge" && run !== undefined && report !== undefined) return judge(kit, run, report) ? 0 : 1;
  throw new UsageError("name a command: serve, clients, judge or page");
}

try {
  process.exitCode = await main();
} catch (error) {
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(error instanceof UsageError ? `${text}\n\n${help}` : `${text}\n`);
  process.exitCode = 2;
}
