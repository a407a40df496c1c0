import { parseArgs } from "node:util";
import { Bench } from "./bench.ts";
import type { Case } from "./case.ts";
import { cases } from "./cases/index.ts";
import { writePage } from "./page.ts";
import { jsonOf, textOf } from "./report.ts";
import { setting } from "./runs.ts";
import { resultOf, type Result } from "./targets.ts";

const usage = `npm run bench -- [CASE…] [options]
npm run bench -- --page FILE…

Measures Parley beside the official SDK and a bare node:http server. Cases: ${cases.map(({ name }) => name).join(", ")};
without one, all of them.

  --quick           less of everything: under a minute
  --json            one line a case, for programs and for --page
  --page            writes docs/benchmarks.md from files that --json made, one for each version of Node;
                    with the case cluster alone, only its part of the page
  --profile FOLDER  leaves CPU profiles of Parley's server there
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    page: { type: "boolean", default: false },
    profile: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});

function chosen(): readonly Case[] {
  const unknown = positionals.filter((wanted) => !cases.some(({ name }) => name === wanted));
  if (unknown.length === 0)
    return positionals.length === 0 ? cases : cases.filter(({ name }) => positionals.includes(name));
  throw new Error(`unknown case ${unknown.join(", ")}; the cases are ${cases.map(({ name }) => name).join(", ")}`);
}

async function measure(one: Case): Promise<Result> {
  const progress = (text: string): void => void process.stderr.write(`${one.name}: ${text}\n`);
  const started = performance.now();
  progress("measuring");
  const { quick, profile } = values;
  const bench = new Bench({ quick, progress, ...(profile !== undefined && { profile }) });
  try {
    return resultOf(one, await one.run(bench));
  } finally {
    await bench.close();
    progress(`done in ${((performance.now() - started) / 1000).toFixed(1)} s`);
  }
}

async function main(): Promise<void> {
  if (values.help) return void process.stdout.write(usage);
  if (values.page) return writePage(positionals, cases);
  const results: Result[] = [];
  for (const one of chosen()) {
    // Measured before the case adds its own load.
    const where = setting(values.quick);
    const result = await measure(one);
    // Printed immediately: a run of all cases takes minutes, and may be interrupted.
    if (values.json) process.stdout.write(`${jsonOf(result, where)}\n`);
    else results.push(result);
  }
  for (const result of results) process.stdout.write(`${textOf(result)}\n`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
