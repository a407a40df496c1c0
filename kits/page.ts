import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectationOf, folder, kits, type Expectation, type Figures } from "./expected.ts";
import { readRequirements } from "./requirements.ts";

const page = join(folder, "..", "docs", "kits.md");

/** The page's tables by name. On the page, each table is between `<!-- NAME -->` and `<!-- /NAME -->`. */
function tables(): Readonly<Record<string, string>> {
  const ofKits = kits.flatMap((kit) => {
    const expected = expectationOf(kit);
    return [
      [kit, kit === "acts" ? resultsByLevel(expected) : results(expected)],
      [`${kit} exceptions`, exceptions(expected)],
      [`${kit} open`, open(expected)],
      ...(expected.deviations === undefined ? [] : [[`${kit} deviations`, deviations(expected)] as const]),
      ...(expected.readings === undefined ? [] : [[`${kit} readings`, readings(expected)] as const]),
    ] as const;
  });
  return Object.fromEntries([["summary", summary()], ...ofKits, ["requirements", requirements()]]);
}

/** The text of the page, with tables of the current expected results. */
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

/** One row for each group of runs that differ only in the binding, with passed / failed. */
function summary(): string {
  const brief = (all: Figures | undefined): string => (all === undefined ? "–" : `${all[0]} / ${all[1]}`);
  const together = (cells: readonly string[], nothing: string): string =>
    cells.every((cell) => cell === nothing) ? "–" : cells.join(", ");
  const rows = kits.flatMap((kit) => {
    const { kit: name, runs, byDefault, open: waiting } = expectationOf(kit);
    const openOf = (run: string): number =>
      waiting.filter(({ runs: of }) => of.includes(run)).reduce((sum, { tests }) => sum + tests, 0);
    const groups = new Map<string, string[]>();
    for (const run of Object.keys(runs)) {
      const group = run
        .replace(/-(?:jsonrpc|rest|grpc)$/, "")
        .replace(/-(must|should|may)$/, (_, level: string) => `, ${level.toUpperCase()}`);
      groups.set(group, [...(groups.get(group) ?? []), run]);
    }
    return [...groups].map(([group, of]) => [
      name,
      group,
      together(
        of.map((run) => brief(runs[run]?.official)),
        "–",
      ),
      together(
        of.map((run) => brief(runs[run]?.parley)),
        "–",
      ),
      byDefault === true
        ? "the same"
        : together(
            of.map((run) => brief(runs[run]?.defaults)),
            "–",
          ),
      together(
        of.map((run) => brief(runs[run]?.strict)),
        "–",
      ),
      together(
        of.map((run) => String(openOf(run))),
        "0",
      ),
    ]);
  });
  return table(
    ["kit", "run", "official SDK 1.3.0", "Parley", "Parley, default options", "Parley, strictVersion", "waiting"],
    rows,
  );
}

function results({ runs }: Expectation): string {
  return table(
    ["run", "official SDK 1.3.0", "Parley", "Parley, default options", "Parley, strictVersion"],
    Object.entries(runs).map(([name, { official, parley, defaults, strict }]) => [
      `\`${name}\``,
      figures(official),
      figures(parley),
      figures(defaults),
      figures(strict),
    ]),
  );
}

/** ACTS runs are named CONFIGURATION-LEVEL-BINDING: one row for each configuration and binding, with its three levels. */
function resultsByLevel({ runs }: Expectation): string {
  const lines = new Map<string, (string | undefined)[]>();
  const readings = new Map<string, number[]>();
  const strictly = new Map<string, string[]>();
  for (const [name, { official, parley, strict, readings: count = 0 }] of Object.entries(runs)) {
    const [configuration, , binding] = name.split("-");
    const key = `\`${configuration}\`, ${binding}`;
    lines.set(key, [...(lines.get(key) ?? []), figures(official), figures(parley)]);
    readings.set(key, [...(readings.get(key) ?? []), count]);
    strictly.set(key, [...(strictly.get(key) ?? []), ...(strict === undefined ? [] : [figures(strict)])]);
  }
  const levels = ["MUST", "SHOULD", "MAY"];
  return table(
    [
      "run",
      ...levels.flatMap((level) => [`${level}, official`, `${level}, Parley`]),
      "readings",
      "Parley, strictVersion: MUST, SHOULD, MAY",
    ],
    [...lines].map(([key, cells]) => [
      key,
      ...cells.map(String),
      (readings.get(key) ?? []).join(", "),
      strictly.get(key)?.join(", ") || "–",
    ]),
  );
}

function figures(all: Figures | undefined): string {
  return all === undefined ? "–" : all.join(" / ");
}

function exceptions({ contradictions }: Expectation): string {
  const all = contradictions.flatMap(({ runs }) => runs);
  return table(
    ["test", "runs", "what it wants", "the specification"],
    contradictions.map(({ tests, runs, why, section }) => [
      tests.map((test) => `\`${test}\``).join(", "),
      those(runs, all),
      why,
      section,
    ]),
  );
}

function open({ open: waiting }: Expectation): string {
  const all = waiting.flatMap(({ runs }) => runs);
  return table(
    ["tests", "runs", "the kit's reason for leaving them out", "wait for"],
    waiting.map(({ tests, runs, reason, waitsFor }) => [String(tests), those(runs, all), reason, waitsFor]),
  );
}

/** Tests that Parley passes against the wording of the specification. */
function deviations({ deviations: all = [], runs: every }: Expectation): string {
  return table(
    ["test", "runs", "what Parley does", "the specification"],
    all.map(({ test, runs, why, section }) => [`\`${test}\``, those(runs, Object.keys(every)), why, section]),
  );
}

/** Tests whose verdict comes from the runner's own check. */
function readings({ readings: all = [] }: Expectation): string {
  return table(
    ["test", "level", "what the runner asks", "its steps alone, on Parley"],
    all.map(({ test, level, asks, words = "pass" }) => [`\`${test}\``, level.toUpperCase(), asks, words]),
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

/** The names of runs. An ACTS run (CONFIGURATION-LEVEL-BINDING) is shortened to the parts in which it differs from all `others`. */
function those(names: readonly string[], others: readonly string[]): string {
  const parts = (of: readonly string[]): string[][] => of.map((name) => name.split("-"));
  if (!parts(names).every(({ length }) => length === 3)) return names.map((name) => `\`${name}\``).join(", ");
  return [0, 1, 2]
    .map((at) => [names, others].map((of) => [...new Set(parts(of).map((each) => each[at]))].join(" ")))
    .flatMap(([own = "", all]) => (own === all ? [] : [own]))
    .join(", ");
}

/** A table in oxfmt's format: columns of equal width. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) => Math.max(title.length, 3, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |\n`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("");
}
