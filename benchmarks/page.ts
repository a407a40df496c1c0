import { readFileSync, writeFileSync } from "node:fs";
import { format } from "oxfmt";
import type { Case } from "./case.ts";
import { markdownOf, missedOf } from "./report.ts";
import { casesIn, newestFirst, runOf, type Run } from "./runs.ts";

// Generates docs/benchmarks.md from the output of --json.

interface Manifest {
  readonly version: string;
  /** Exact versions. */
  readonly devDependencies: Readonly<Record<string, string>>;
}

type Runs = readonly [Run, ...Run[]];

/** Rejects if a case is missing. A separately measured case may be missing: its part of the page then stays the same. */
export async function writePage(files: readonly string[], cases: readonly Case[]): Promise<void> {
  const texts = files.map((file) => readFileSync(file, "utf8"));
  const at = new URL("../../docs/benchmarks.md", import.meta.url);
  const page = pageOf(texts, cases, {
    before: readFileSync(at, "utf8"),
    template: read("../page.md"),
    versions: versions(),
  });
  writeFileSync(at, (await format("benchmarks.md", page, { printWidth: 120 })).code);
}

interface Page {
  /** The current page. */
  readonly before: string;
  readonly template: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** The page with new results. If all of them are results of separately measured cases, only their parts change. */
export function pageOf(
  texts: readonly string[],
  cases: readonly Case[],
  { before, template, versions: own }: Page,
): string {
  const common = cases.filter(({ apart }) => apart !== true);
  const has = (text: string, some: readonly Case[]): boolean => some.some(({ name }) => casesIn(text).has(name));
  const whole = texts.filter((text) => has(text, common));
  const runs = newestFirst(whole.map((text) => runOf(text, common)));
  let page = before;
  if (isSome(runs)) {
    page = template
      .replace("<!-- figures -->", () => markdownOf(runs, own))
      .replace("<!-- missed -->", () => missedOf(runs));
  }
  for (const one of cases.filter(({ apart }) => apart === true)) {
    const measured = newestFirst(texts.filter((text) => has(text, [one])).map((text) => runOf(text, [one])));
    if (!isSome(measured) && !isSome(runs)) continue;
    const { Parley = "" } = own;
    const part = isSome(measured)
      ? `\n${[markdownOf(measured, { Parley }), "Targets that are not met:", missedOf(measured)].join("\n\n")}\n`
      : partOf(before, one.name);
    page = page.replace(pattern(one.name), () => `${begin(one.name)}${part}${end(one.name)}`);
  }
  if (page === before && texts.length === 0) throw new Error("--page needs the files of results");
  return page;
}

const begin = (name: string): string => `<!-- ${name} -->\n`;
const end = (name: string): string => `\n<!-- end of ${name} -->`;
const pattern = (name: string): RegExp => new RegExp(`<!-- ${name} -->\\n([^]*?)\\n<!-- end of ${name} -->`);

function partOf(page: string, name: string): string {
  return pattern(name).exec(page)?.[1] ?? "";
}

function isSome(runs: readonly Run[]): runs is Runs {
  return runs.length > 0;
}

function read(file: string): string {
  return readFileSync(new URL(file, import.meta.url), "utf8");
}

function versions(): Readonly<Record<string, string>> {
  const { version, devDependencies } = JSON.parse(read("../package.json")) as Manifest;
  const measuredWith = ["@a2a-js/sdk", "express", "libsql", "@grpc/grpc-js", "protobufjs"].map(
    (name) => [name, devDependencies[name] ?? ""] as const,
  );
  return { Parley: version, ...Object.fromEntries(measuredWith) };
}
