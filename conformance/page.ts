import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectationOf, folder, kits, type Expectation, type Figures } from "./expected.ts";
import { readRequirements } from "./requirements.ts";

const page = join(folder, "..", "docs", "conformance.md");

/** What stands between `<!-- NAME -->` and `<!-- /NAME -->` of the page, by name. */
function tables(): Readonly<Record<string, string>> {
  const ofKits = kits.flatMap((kit) => {
    const expected = expectationOf(kit);
    return [
      [kit, kit === "acts" ? resultsByLevel(expected) : results(expected)],
      [`${kit} exceptions`, exceptions(expected)],
      [`${kit} open`, open(expected)],
    ] as const;
  });
  return Object.fromEntries([...ofKits, ["requirements", requirements()]]);
}

/** The page with its tables as they are expected now. */
export function withTables(text: string): string {
  return Object.entries(tables()).reduce(
    (before, [name, table]) =>
      before.replace(
        new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- /${name} -->)`),
        (_, first: string, last: string) => `${first}\n${table}\n${last}`,
      ),
    text,
  );
}

export function readPage(): string {
  return readFileSync(page, "utf8");
}

export function writePage(): void {
  writeFileSync(page, withTables(readPage()));
}

function results({ runs }: Expectation): string {
  return table(
    ["run", "official SDK 1.3.0", "Parley"],
    Object.entries(runs).map(([name, { official, parley }]) => [`\`${name}\``, figures(official), figures(parley)]),
  );
}

/** A run of ACTS is a level of a binding of a configuration: one line for its three levels. */
function resultsByLevel({ runs }: Expectation): string {
  const lines = new Map<string, (string | undefined)[]>();
  for (const [name, { official, parley }] of Object.entries(runs)) {
    const [configuration, , binding] = name.split("-");
    const key = `\`${configuration}\`, ${binding}`;
    lines.set(key, [...(lines.get(key) ?? []), figures(official), figures(parley)]);
  }
  return table(
    ["run", ...["MUST", "SHOULD", "MAY"].flatMap((level) => [`${level}, official`, `${level}, Parley`])],
    [...lines].map(([key, cells]) => [key, ...cells.map(String)]),
  );
}

function figures(all: Figures | undefined): string {
  return all === undefined ? "–" : all.join(" / ");
}

function exceptions({ contradictions, runs }: Expectation): string {
  return table(
    ["test", "runs", "what it wants", "the specification"],
    contradictions.map(({ tests, runs: of, why, section }) => [
      tests.map((test) => `\`${test}\``).join(", "),
      those(of, Object.keys(runs)),
      why,
      section,
    ]),
  );
}

function open({ open: all, runs }: Expectation): string {
  return table(
    ["tests", "runs", "the kit's reason for leaving them out", "wait for"],
    all.map(({ tests, runs: of, reason, waitsFor }) => [String(tests), those(of, Object.keys(runs)), reason, waitsFor]),
  );
}

function requirements(): string {
  const rows = readRequirements();
  const chapters = [...new Set(rows.map(({ id }) => id.split(/[.-]/)[0] ?? ""))];
  return table(
    ["section", "requirements", "proven", "not yet"],
    chapters.map((chapter) => {
      const of = rows.filter(({ id }) => id.split(/[.-]/)[0] === chapter);
      const waiting = of.flatMap(({ id, waitsFor }) => (waitsFor === undefined ? [] : [`${id} (${waitsFor})`]));
      return [`§${chapter}`, String(of.length), String(of.length - waiting.length), waiting.join(", ") || "–"];
    }),
  );
}

/** The names of runs, or in which way they are alike. Runs of ACTS are a level of a binding of a configuration. */
function those(names: readonly string[], all: readonly string[]): string {
  const parts = (of: readonly string[]): string[][] => of.map((name) => name.split("-"));
  if (names.length === all.length) return "all";
  if (!parts(names).every(({ length }) => length === 3)) return names.map((name) => `\`${name}\``).join(", ");
  const alike = [0, 1, 2].map((at) => [
    [...new Set(parts(names).map((each) => each[at]))].join(" "),
    new Set(parts(all).map((each) => each[at])).size,
  ]);
  return alike
    .filter(([some, count]) => String(some).split(" ").length < Number(count))
    .map(([some]) => some)
    .join(", ");
}

/** A table as prettier writes it: columns of equal width. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) => Math.max(title.length, 3, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |\n`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("");
}
