import { availableParallelism, cpus, totalmem } from "node:os";
import { defined, type Figures, type Target } from "./case.ts";
import { isMet, type Result } from "./targets.ts";

const columns = ["", "per second", "p50 ms", "p99 ms", "CPU µs", "MiB"] as const;

/** A figure with three significant digits. */
export function short(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  const digits = value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2;
  const [whole = "", rest] = value.toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

function rowsOf({ measured }: Result): readonly (readonly string[])[] {
  const { parley, official, raw, also = {} } = measured;
  const rows: [string, Figures | undefined][] = [
    ["parley", parley],
    ["official", official],
    ["raw", raw],
    ...Object.entries(also),
  ];
  return rows.flatMap(([name, figures]) =>
    figures === undefined
      ? []
      : [
          [
            name,
            short(figures.throughput),
            short(figures.p50),
            short(figures.p99),
            short(figures.cpu),
            short(figures.memory),
          ],
        ],
  );
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
  const rows = [columns, ...rowsOf(result)];
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const lines = rows.map((row) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  "),
  );
  const targets = result.case.targets.map(
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

/** The result of a case as one line of JSON. */
export function jsonOf(result: Result): string {
  const { parley, official, raw, also, notes } = result.measured;
  const { throughputToOfficial, cpuToOfficial, cpuToRaw } = result.measures;
  const answer = {
    case: result.case.name,
    parley,
    official,
    raw,
    ratio: defined({ throughputToOfficial, cpuToOfficial, cpuToRaw }),
    also,
    measures: result.measures,
    targets: result.case.targets.map(({ says, unit, measure, atLeast, atMost, ...rest }) => ({
      says,
      value: result.measures[measure],
      unit,
      atLeast,
      atMost,
      met: isMet({ says, measure, ...(unit && { unit }), ...defined({ atLeast, atMost }), ...rest }, result),
    })),
    notes,
  };
  return JSON.stringify(answer, rounded);
}

/** What the figures were measured on, without the name of the machine. */
export interface Setting {
  readonly date: string;
  readonly versions: Readonly<Record<string, string>>;
}

function machine(): string {
  const model = cpus()[0]?.model.trim() ?? "";
  const processor = model === "" || model === "unknown" ? "a processor that does not say its name" : model;
  const system = process.platform === "linux" ? "Linux" : process.platform;
  return `${processor}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, ${system} ${process.arch}`;
}

/** For the page: a table of all targets, then the figures of each case. */
export function markdownOf(results: readonly Result[], { date, versions }: Setting): string {
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const summary = results.flatMap((result) =>
    result.case.targets.map((target) => [
      `\`${result.case.name}\``,
      target.says,
      wanted(target),
      reached(target, result),
      isMet(target, result) ? "met" : "**missed**",
    ]),
  );
  const details = results.map((result) => {
    const rows = rowsOf(result);
    return [
      `### \`${result.case.name}\``,
      `${result.case.what}. One operation is ${result.case.operation}.`,
      table(["Server", ...columns.slice(1)], rows),
      ...(result.measured.notes ?? []),
    ].join("\n\n");
  });
  return [
    `Measured on ${date}: ${machine()}; ${named.join(", ")}.`,
    table(["Case", "What", "Target", "Reached", ""], summary),
    ...details,
  ].join("\n\n");
}

/** For the page: the targets that are not met, with figures and reasons. */
export function missedOf(results: readonly Result[]): string {
  const missed = results.flatMap((result) => {
    const { name, targets, why } = result.case;
    const lines = targets
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
