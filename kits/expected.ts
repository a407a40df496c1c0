import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Reading } from "./report.ts";

/** This folder, whether this is the source or what was built of it. */
const here = dirname(fileURLToPath(import.meta.url));
export const folder: string = existsSync(join(here, "expected")) ? here : dirname(here);

/** Passed, failed, skipped. */
export type Figures = readonly [passed: number, failed: number, skipped: number];

/** A test whose steps leave the check to the runner. */
export interface ExpectedReading extends Reading {
  readonly level: string;
  /** What its own steps say, where they do not say nothing. */
  readonly words?: string;
}

/** How one run of a kit ends. */
export interface Run {
  readonly parley: Figures;
  /** The same with the default options of a server, where the run has others. */
  readonly defaults?: Figures;
  /** How many of Parley's verdicts rest on what the runner asked instead of the test's own steps. */
  readonly readings?: number;
  /** The official SDK for JavaScript in the same run. */
  readonly official?: Figures;
}

/** A test that fails because it wants something else than the specification, and where that says so. */
export interface Contradiction {
  /** How the names of the tests end. */
  readonly tests: readonly string[];
  readonly runs: readonly string[];
  readonly section: string;
  readonly why: string;
}

/** Tests that are skipped since they ask for something that Parley does not do yet, known by the reason that the kit gives. */
export interface Open {
  readonly reason: string;
  readonly runs: readonly string[];
  /** How many, in each of the runs. */
  readonly tests: number;
  readonly waitsFor: string;
}

/** What a kit is expected to say. */
export interface Expectation {
  readonly kit: string;
  /** That it was measured with; later ones have other tests. */
  readonly commit: string;
  /** Whether every run is one with the default options of a server. */
  readonly byDefault?: true;
  readonly runs: Readonly<Record<string, Run>>;
  readonly contradictions: readonly Contradiction[];
  readonly open: readonly Open[];
  /** What the runner asks where the steps of a test leave that to it. */
  readonly readings?: readonly ExpectedReading[];
}

/** What is expected of a run of Parley; `defaults` is the run `all` with the default options of a server. */
export function expectedOf({ runs }: Expectation, run: string): Figures | undefined {
  return run === "defaults" ? runs["all"]?.defaults : runs[run]?.parley;
}

export const kits = ["tck-1.0", "tck-0.3", "acts"] as const;
export type Kit = (typeof kits)[number];

export function expectationOf(kit: Kit): Expectation {
  return JSON.parse(readFileSync(join(folder, "expected", `${kit}.json`), "utf8")) as Expectation;
}
