import type { Server } from "./bench.ts";
import { defined, type Figures } from "./case.ts";
import { quantile } from "./load/latencies.ts";

/** The figures of one round of load. */
export interface Round {
  readonly operations: number;
  readonly seconds: number;
  readonly p50?: number;
  readonly p99?: number;
}

const mebibyte = 1 << 20;

/** A round, including its cost for the server. */
export async function costing(server: Pick<Server, "usage">, round: () => Promise<Round>): Promise<Figures> {
  const before = await server.usage();
  const { operations, seconds, p50, p99 } = await round();
  const after = await server.usage();
  return defined({
    throughput: operations / seconds,
    p50,
    p99,
    cpu: (after.cpu - before.cpu) / operations,
    memory: after.rss / mebibyte,
  });
}

/** Something that is measured in rounds. */
export interface Subject {
  /** One round. */
  measure(): Promise<Figures>;
  /**
   * Runs before the first round. Default: one round that does not count. Subjects with short rounds run a number of
   * operations instead: V8 optimizes a function after a number of calls, on Node 24 only after some thousands.
   */
  warmUp?(): Promise<unknown>;
}

/**
 * Warms up all subjects, then runs them in turn (A B C A B C …), so that other work on the machine affects all of them. Returns the
 * median of each figure.
 */
export async function inTurn<Name extends string>(
  rounds: number,
  subjects: Readonly<Record<Name, Subject | Subject["measure"]>>,
): Promise<Record<Name, Figures>> {
  const all = Object.entries<Subject | Subject["measure"]>(subjects).map(([name, given]) => {
    const subject: Subject = typeof given === "function" ? { measure: given } : given;
    return { name, subject, seen: [] as Figures[] };
  });
  for (const { subject } of all) await (subject.warmUp ?? subject.measure)();
  for (let round = 0; round < rounds; round++) {
    for (const { subject, seen } of all) seen.push(await subject.measure());
  }
  return Object.fromEntries(all.map(({ name, seen }) => [name, medians(seen)])) as Record<Name, Figures>;
}

/** The median of each figure. */
export function medians(all: readonly Figures[]): Figures {
  const of = (name: keyof Figures): number | undefined => {
    const values = all.map((figures) => figures[name]).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : median(values);
  };
  return defined({
    throughput: of("throughput"),
    p50: of("p50"),
    p99: of("p99"),
    cpu: of("cpu"),
    memory: of("memory"),
  });
}

export function median(values: readonly number[]): number {
  return quantile(Float64Array.from(values).sort(), 0.5);
}
