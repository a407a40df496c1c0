import type { Bench } from "./bench.ts";

/** The figures of one server under one load. Figures that do not apply to the case are absent. */
export interface Figures {
  /** Operations per second. The case defines an operation. */
  readonly throughput?: number;
  /** Milliseconds. */
  readonly p50?: number;
  readonly p99?: number;
  /** CPU time of the measured process per operation, in microseconds. */
  readonly cpu?: number;
  /** Resident memory in MiB. */
  readonly memory?: number;
}

export interface Measured {
  readonly parley: Figures;
  readonly official?: Figures;
  readonly raw?: Figures;
  /** Additional rows of the table, by name, such as another binding or another store. */
  readonly also?: Readonly<Record<string, Figures>>;
  /** Figures and ratios that only this case has. Ratios between rows, such as `throughputToOfficial`, are added automatically. */
  readonly measures?: Readonly<Record<string, number>>;
  /** How the figures were obtained, for readers of the page. */
  readonly notes?: readonly string[];
}

export interface Target {
  /** The name of a measure. */
  readonly measure: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  /** Its description, for the table. */
  readonly says: string;
  /** The unit of a figure that is not a ratio, such as `ms`. */
  readonly unit?: string;
  /** The measure compares two Node versions, so only the page can compute it. */
  readonly acrossNodes?: true;
}

export interface Case {
  readonly name: string;
  /** Description in one line. */
  readonly what: string;
  /** The definition of one operation. */
  readonly operation: string;
  readonly targets: readonly Target[];
  /** Text for the page if a target is missed: the reason according to the profile, and what was tried. */
  readonly why?: string;
  /** Whether it is measured separately, with its own part of the page. */
  readonly apart?: true;
  run(this: void, bench: Bench): Promise<Measured>;
}

/** The common measures, computed from the rows of a case. */
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

/** The object without its undefined members. */
export function defined(values: Readonly<Record<string, number | undefined>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, number] => entry[1] !== undefined),
  );
}
