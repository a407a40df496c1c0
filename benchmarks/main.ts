import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { format } from "prettier";
import { Bench } from "./bench.ts";
import type { Case } from "./case.ts";
import { cases } from "./cases/index.ts";
import { jsonOf, markdownOf, missedOf, textOf, type Setting } from "./report.ts";
import { resultOf, type Result } from "./targets.ts";

const usage = `npm run bench -- [CASE…] [options]

Measures Parley beside the official SDK and a bare node:http server. Cases: ${cases.map(({ name }) => name).join(", ")};
without one, all of them.

  --quick           less of everything: under a minute
  --json            one line a case, for programs
  --write           writes docs/benchmarks.md
  --profile FOLDER  leaves CPU profiles of Parley's server there
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
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

interface Manifest {
  readonly version: string;
  /** Exact versions. */
  readonly devDependencies: Readonly<Record<string, string>>;
}

async function writePage(results: readonly Result[]): Promise<void> {
  const { version, devDependencies } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  ) as Manifest;
  const others = ["@a2a-js/sdk", "express", "libsql", "@grpc/grpc-js", "protobufjs"].map(
    (name) => [name, devDependencies[name] ?? ""] as const,
  );
  const setting: Setting = {
    date: new Date().toISOString().slice(0, 10),
    versions: { Node: process.versions.node, Parley: version, ...Object.fromEntries(others) },
  };
  const template = readFileSync(new URL("../page.md", import.meta.url), "utf8");
  const page = template
    .replace("<!-- figures -->", () => markdownOf(results, setting))
    .replace("<!-- missed -->", () => missedOf(results));
  const file = new URL("../../docs/benchmarks.md", import.meta.url);
  writeFileSync(file, await format(page, { parser: "markdown", printWidth: 120 }));
}

async function main(): Promise<void> {
  if (values.help) return void process.stdout.write(usage);
  const wanted = chosen();
  if (values.write && (values.quick || wanted.length < cases.length))
    throw new Error("--write needs all cases, without --quick");
  const results: Result[] = [];
  for (const one of wanted) results.push(await measure(one));
  for (const result of results) process.stdout.write(`${values.json ? jsonOf(result) : textOf(result)}\n`);
  if (values.write) await writePage(results);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
