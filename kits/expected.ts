import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Reading } from "./report.ts";

/** The folder `kits`, also if this runs as `kits/dist/expected.js`. */
const here = dirname(fileURLToPath(import.meta.url));
export const folder: string = existsSync(join(here, "expected")) ? here : dirname(here);

/** The numbers of tests by result. */
export type Figures = readonly [passed: number, failed: number, skipped: number];

/** A test whose steps leave the check to the runner. */
export interface ExpectedReading extends Reading {
  readonly level: string;
  /** The result of its own steps only. Default: they pass. */
  readonly words?: string;
}

/** The expected figures of one run of a kit. */
export interface Run {
  readonly parley: Figures;
  /** Parley with a server's default options. Only for runs that need other options. */
  readonly defaults?: Figures;
  /** Parley with `strictVersion`. */
  readonly strict?: Figures;
  /** How many of Parley's verdicts come from the runner's own check instead of the test's steps. */
  readonly readings?: number;
  /** The official JavaScript SDK in the same run. */
  readonly official?: Figures;
}

/** Tests that contradict the specification. Parley fails them. */
export interface Contradiction {
  /** The tests, each by the end of its name. */
  readonly tests: readonly string[];
  readonly runs: readonly string[];
  readonly section: string;
  readonly why: string;
}

/** A test that Parley passes by deviating from the specification. */
export interface Deviation {
  readonly test: string;
  readonly runs: readonly string[];
  readonly section: string;
  readonly why: string;
}

/** Tests that a kit skips because Parley lacks a feature. The reason that the kit prints identifies them. */
export interface Open {
  readonly reason: string;
  readonly runs: readonly string[];
  /** Number of these tests in each of the runs. */
  readonly tests: number;
  readonly waitsFor: string;
}

/** The expected results of a kit. */
export interface Expectation {
  readonly kit: string;
  /** The commit of the measured kit. */
  readonly commit: string;
  /** Whether every run uses a server's default options. */
  readonly byDefault?: true;
  readonly runs: Readonly<Record<string, Run>>;
  readonly contradictions: readonly Contradiction[];
  readonly deviations?: readonly Deviation[];
  readonly open: readonly Open[];
  /** The runner's own checks, for tests whose steps leave the check to the runner. */
  readonly readings?: readonly ExpectedReading[];
}

/** The expected figures of a run of Parley. `defaults` and `strict` are the run `all` with other server options. */
export function expectedOf(expected: Expectation, run: string): Figures | undefined {
  const row = expected.runs[rowOf(expected, run)];
  if (run === "defaults") return row?.defaults;
  return isStrict(run) ? row?.strict : row?.parley;
}

/** The run whose row on the page a run shares: a `strict` run shares the row of the same run without `strictVersion`. */
export function rowOf({ runs }: Expectation, run: string): string {
  if (run === "defaults") return "all";
  if (!isStrict(run)) return run;
  const rest = run.replace(/^strict-?/, "");
  return [rest, `all-${rest}`].find((name) => name in runs) ?? "all";
}

function isStrict(run: string): boolean {
  return /^strict(?:-|$)/.test(run);
}

export const kits = ["tck-1.0", "tck-0.3", "acts"] as const;
export type Kit = (typeof kits)[number];

export function expectationOf(kit: Kit): Expectation {
  return JSON.parse(readFileSync(join(folder, "expected", `${kit}.json`), "utf8")) as Expectation;
}
