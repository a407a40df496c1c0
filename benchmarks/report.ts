import { defined, type Figures, type Target } from "./case.ts";
import { besideOlder, isMet, targetsOf, type Result } from "./targets.ts";
import type { Run, Setting } from "./runs.ts";

const columns = ["", "per second", "p50 ms", "p99 ms", "CPU µs", "MiB"] as const;

/** A figure with three significant digits. */
export function short(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  const digits = value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2;
  const [whole = "", rest] = value.toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

/** The rows of a case: each row's name and figures. */
function rowsOf({ measured }: Result): readonly (readonly [string, readonly string[]])[] {
  const { parley, official, raw, also = {} } = measured;
  const rows: [string, Figures | undefined][] = [
    ["parley", parley],
    ["official", official],
    ["raw", raw],
    ...Object.entries(also),
  ];
  return rows.flatMap(([name, figures]) => (figures === undefined ? [] : [[name, cellsOf(figures)] as const]));
}

function cellsOf({ throughput, p50, p99, cpu, memory }: Figures): readonly string[] {
  return [throughput, p50, p99, cpu, memory].map(short);
}

function wanted({ atLeast, atMost, unit }: Target): string {
  const bound = atLeast === undefined ? `≤ ${short(atMost)}` : `≥ ${short(atLeast)}`;
  return unit === undefined ? `${bound} ×` : `${bound} ${unit}`;
}

function reached({ measure, unit }: Target, { measures }: Result): string {
  return `${short(measures[measure])} ${unit ?? "×"}`;
}

/** The report for a terminal. */
export function textOf(result: Result): string {
  const rows = [columns, ...rowsOf(result).map(([name, cells]) => [name, ...cells])];
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const lines = rows.map((row) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  "),
  );
  const targets = targetsOf(result).map(
    (target) =>
      `${isMet(target, result) ? "met   " : "missed"}  ${target.says}: ${reached(target, result)} (${wanted(target)})`,
  );
  const { name, what, operation } = result.case;
  return [
    `${name}: ${what}; one operation is ${operation}`,
    ...lines.map((line) => `  ${line}`),
    ...targets.map((line) => `  ${line}`),
    ...(result.measured.notes ?? []).map((note) => `  ${note}`),
    "",
  ].join("\n");
}

/** Rounded to four significant digits: one run is not more precise. */
function rounded(_name: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(4)) : value;
}

/** The result of a case as one line of JSON, which `runOf` parses. */
export function jsonOf(result: Result, setting: Setting): string {
  const { parley, official, raw, also, notes } = result.measured;
  const answer = {
    case: result.case.name,
    setting,
    parley,
    official,
    raw,
    also,
    measures: result.measures,
    targets: targetsOf(result).map((target) => {
      const { says, unit, measure, atLeast, atMost } = target;
      const bounds = defined({ value: result.measures[measure], atLeast, atMost });
      return { says, unit, ...bounds, met: isMet(target, result) };
    }),
    notes,
  };
  return JSON.stringify(answer, rounded);
}

/**
 * The text for the page: a table of all targets, then the figures of each case, by Node version. Targets apply to the first run; the others
 * are for comparison.
 */
export function markdownOf(runs: readonly [Run, ...Run[]], versions: Readonly<Record<string, string>>): string {
  const [{ setting }] = runs;
  const nodes = runs.map((run) => `Node ${run.setting.node}`);
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const results = resultsOf(runs);
  const summary = results.flatMap((result) =>
    targetsOf(result).map((target) => [
      `\`${result.case.name}\``,
      target.says,
      wanted(target),
      ...runs.map((run, at) => (at === 0 ? reached(target, result) : reachedBy(target, run, result))),
      isMet(target, result) ? "met" : "**missed**",
    ]),
  );
  const details = results.map(({ case: { name, what, operation } }) => {
    const seen = runs.map((run) => run.results.find((result) => result.case.name === name));
    return [
      `### \`${name}\``,
      `${what}. One operation is ${operation}.`,
      table(["Server", "Node", ...columns.slice(1)], besideOneAnother(runs, seen)),
      ...notesOf(runs, seen),
    ].join("\n\n");
  });
  return [
    `Measured on ${setting.date}: ${setting.machine}; ${[...nodes, ...named].join(", ")}.${besideOthers(setting)}`,
    table(["Case", "What", "Target", ...runs.map(majorOf), ""], summary),
    ...details,
  ].join("\n\n");
}

/** Mentions that a machine was also busy with other work. */
function besideOthers({ load = 0 }: Setting): string {
  if (load < 0.5) return "";
  return ` **The machine was busy with other work**: ${short(load)} processes for each core when this began. Times are far above those of a quiet machine.`;
}

/** The results of the first run, including measures that compare it with the last run. */
function resultsOf(runs: readonly [Run, ...Run[]]): readonly Result[] {
  const [first, ...others] = runs;
  return besideOlder(first.results, others.at(-1)?.results ?? []);
}

function majorOf({ setting }: Run): string {
  return `Node ${setting.node.split(".")[0] ?? ""}`;
}

function reachedBy(target: Target, run: Run, { case: { name } }: Result): string {
  const same = run.results.find((result) => result.case.name === name);
  return same === undefined || target.acrossNodes === true ? "–" : reached(target, same);
}

/** The rows of all versions, grouped by server. */
function besideOneAnother(runs: readonly Run[], seen: readonly (Result | undefined)[]): string[][] {
  const all = seen.map((result) => new Map(result === undefined ? [] : rowsOf(result)));
  const names = new Set(all.flatMap((rows) => [...rows.keys()]));
  return [...names].flatMap((name) =>
    all.flatMap((rows, at) => {
      const cells = rows.get(name);
      return cells === undefined ? [] : [[name, runs[at]?.setting.node.split(".")[0] ?? "", ...cells]];
    }),
  );
}

/** Notes that all versions share, once, and other notes with their version. */
function notesOf(runs: readonly Run[], seen: readonly (Result | undefined)[]): readonly string[] {
  const notes = seen.map((result) => result?.measured.notes ?? []);
  const [first = []] = notes;
  return first.flatMap((note, at) => {
    if (notes.every((others) => others[at] === note)) return [note];
    return notes.flatMap((others, of) => {
      const [run, text] = [runs[of], others[at]];
      return run === undefined || text === undefined ? [] : [`${majorOf(run)}: ${text}`];
    });
  });
}

/** The text for the page about missed targets, with figures and reasons. */
export function missedOf(runs: readonly [Run, ...Run[]]): string {
  const missed = resultsOf(runs).flatMap((result) => {
    const { name, why } = result.case;
    const lines = targetsOf(result)
      .filter((target) => !isMet(target, result))
      .map((target) => `- \`${name}\`, ${target.says}: ${reached(target, result)}, wanted ${wanted(target)}`);
    return lines.length === 0 ? [] : [...lines, ...(why === undefined ? [] : [`\n  ${why}\n`])];
  });
  return missed.length === 0 ? "None in this run." : missed.join("\n");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
