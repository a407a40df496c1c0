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

/** A round with what it cost the server. */
export async function costing(server: Server, round: () => Promise<Round>): Promise<Figures> {
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

/**
 * Runs all subjects in turn, A B C A B C …, so that other work of the machine affects all of them, and returns the median of each
 * figure. The first rounds are for warming up and do not count.
 */
export async function inTurn<Name extends string>(
  rounds: number,
  subjects: Readonly<Record<Name, () => Promise<Figures>>>,
  warmups = 1,
): Promise<Record<Name, Figures>> {
  const names = Object.keys(subjects) as Name[];
  const seen = new Map<Name, Figures[]>(names.map((name) => [name, []]));
  for (let round = -warmups; round < rounds; round++) {
    for (const name of names) {
      const figures = await subjects[name]();
      if (round >= 0) seen.get(name)?.push(figures);
    }
  }
  return Object.fromEntries(names.map((name) => [name, medians(seen.get(name) ?? [])])) as Record<Name, Figures>;
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
