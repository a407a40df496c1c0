import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import type { Case, Measured } from "./case.ts";
import type { Result } from "./targets.ts";

/** The environment of a measurement, without the machine's name. */
export interface Setting {
  readonly date: string;
  /** The Node version. */
  readonly node: string;
  readonly machine: string;
  /** Whether it was a quick run, which the page rejects. */
  readonly quick: boolean;
  /** The load average per core over the minute before the measurement. More than a few tenths means other work. */
  readonly load?: number;
}

export function setting(quick: boolean): Setting {
  const model = cpus()[0]?.model.trim() ?? "";
  const processor = model === "" || model === "unknown" ? "an unnamed processor" : model;
  const system = process.platform === "linux" ? "Linux" : process.platform;
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    machine: `${processor}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, ${system} ${process.arch}`,
    quick,
    load: (loadavg()[0] ?? 0) / availableParallelism(),
  };
}

/** The results of all cases on one Node version. */
export interface Run {
  readonly setting: Setting;
  readonly results: readonly Result[];
}

type Line = Measured & Pick<Result, "measures"> & { readonly case: string; readonly setting: Setting };

/** The cases with results in a text. */
export function casesIn(text: string): ReadonlySet<string> {
  const lines = text.split("\n").filter((line) => line.startsWith("{"));
  return new Set(lines.map((line) => (JSON.parse(line) as Line).case));
}

/** A run from the output of `--json`, one line for each case. The last line of a case counts, so that a case can be measured again. */
export function runOf(text: string, cases: readonly Case[]): Run {
  const lines = text.split("\n").filter((line) => line.startsWith("{"));
  const measured = new Map(lines.map((line) => JSON.parse(line) as Line).map((line) => [line.case, line]));
  const [first] = measured.values();
  if (first === undefined) throw new Error("a file has no results; create it with npm run bench -- --json");
  if (first.setting.quick) throw new Error("a file has results of --quick, which the page does not accept");
  const results = cases.map((one): Result => {
    const line = measured.get(one.name);
    if (line === undefined) throw new Error(`the results of Node ${first.setting.node} lack the case ${one.name}`);
    if (line.setting.node !== first.setting.node) throw new Error("a file has results of one version of Node only");
    return { case: one, measured: line, measures: line.measures };
  });
  return { setting: first.setting, results };
}

/** Sorts by Node version, newest first. */
export function newestFirst(runs: readonly Run[]): readonly Run[] {
  const major = ({ setting }: Run): number => Number.parseInt(setting.node, 10);
  return [...runs].sort((one, other) => major(other) - major(one));
}
