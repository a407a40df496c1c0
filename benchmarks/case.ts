import type { Bench } from "./bench.ts";

/** What was measured of one server under one load. Absent: it has no meaning there. */
export interface Figures {
  /** Operations a second: of messages, requests, or chunks, as the case says. */
  readonly throughput?: number;
  /** Milliseconds. */
  readonly p50?: number;
  readonly p99?: number;
  /** Microseconds of CPU in the measured process an operation. */
  readonly cpu?: number;
  /** MiB resident. */
  readonly memory?: number;
}

export interface Measured {
  readonly parley: Figures;
  readonly official?: Figures;
  readonly raw?: Figures;
  /** Further rows of the table, by what they are: another binding, another store. */
  readonly also?: Readonly<Record<string, Figures>>;
  /** Figures and ratios that only this case has. Those of the table's rows are added to them: `throughputToOfficial` … */
  readonly measures?: Readonly<Record<string, number>>;
  /** What a reader of the figures must know of how they came about. */
  readonly notes?: readonly string[];
}

export interface Target {
  /** Name of a measure. */
  readonly measure: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  /** What it says, for the table. */
  readonly says: string;
  /** Of figures that are no ratios: such as `ms`. */
  readonly unit?: string;
}

export interface Case {
  readonly name: string;
  /** In one line. */
  readonly what: string;
  /** What one operation is. */
  readonly operation: string;
  readonly targets: readonly Target[];
  /** For the page, where a target is not met: what the profile says of it, and what was tried. */
  readonly why?: string;
  run(this: void, bench: Bench): Promise<Measured>;
}

/** Measures of the kind that every case with such rows has. */
export function commonMeasures({ parley, official, raw }: Measured): Record<string, number> {
  return defined({
    throughputToOfficial: ratio(parley.throughput, official?.throughput),
    cpuToOfficial: ratio(parley.cpu, official?.cpu),
    throughputToRaw: ratio(parley.throughput, raw?.throughput),
    cpuToRaw: ratio(parley.cpu, raw?.cpu),
    p99ToRaw: ratio(parley.p99, raw?.p99),
  });
}

export function ratio(value: number | undefined, to: number | undefined): number | undefined {
  return value === undefined || to === undefined || to === 0 ? undefined : value / to;
}

/** Without what is not there. */
export function defined(values: Readonly<Record<string, number | undefined>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, number] => entry[1] !== undefined),
  );
}
