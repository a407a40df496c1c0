import type { Load, Server } from "../bench.ts";
import { sendStreaming } from "../calls.ts";
import { ratio, defined, type Case, type Figures } from "../case.ts";
import { costing, inTurn, median } from "../rounds.ts";

/** Reads one stream of this many chunks to its end, or until the time limit. */
export async function streaming(load: Load, server: Server, chunks: number, seconds = 60): Promise<Figures> {
  return costing(server, async () => {
    const request = sendStreaming(server, `stream ${chunks} 0`);
    const outcome = await load.stream({ request, chunks, seconds, ends: true });
    if (outcome.chunks < chunks) throw new Error(`A stream ended after ${outcome.chunks} of ${chunks} chunks`);
    return { operations: outcome.chunks, seconds: outcome.seconds };
  });
}

/**
 * The seconds that the official SDK needs for `chunks`. It copies and stores the whole task with each chunk, so the time is
 * a·n + b·n²: two shorter streams determine a and b.
 */
export function extrapolated(chunks: number, short: Timed, long: Timed): number {
  const b = (long.seconds / long.chunks - short.seconds / short.chunks) / (long.chunks - short.chunks);
  const a = short.seconds / short.chunks - b * short.chunks;
  return a * chunks + b * chunks ** 2;
}

interface Timed {
  readonly chunks: number;
  readonly seconds: number;
}

const length = 16_000;

export const streamCase: Case = {
  name: "stream",
  what: `One stream of ${length} chunks, on SQLite`,
  operation: "a chunk",
  targets: [
    {
      measure: "chunksPerSecond",
      says: "chunks end to end",
      unit: "chunks/s",
      atLeast: 25_000,
    },
    { measure: "throughputToOfficial", says: `throughput to official in memory at ${length} chunks`, atLeast: 500 },
  ],
  async run(bench) {
    const [parley, official, raw, load] = await Promise.all([
      bench.server("parley", "sqlite"),
      bench.server("official"),
      bench.server("raw"),
      bench.load(),
    ]);
    const rounds = bench.size(7, 2);
    const figures = await inTurn(rounds, {
      parley: () => streaming(load, parley, length),
      raw: () => streaming(load, raw, length),
    });
    const [short, long] = [bench.size(1_000, 400), bench.size(3_000, 1_000)];
    bench.progress(`the official SDK, ${short} and ${long} chunks`);
    const once = async (chunks: number): Promise<Timed & { figures: Figures }> => {
      const measured = await streaming(load, official, chunks);
      return { chunks, seconds: chunks / (measured.throughput ?? Number.NaN), figures: measured };
    };
    await once(short);
    const shorts = [await once(short), await once(short)];
    const longer = await once(long);
    const seconds = extrapolated(length, { chunks: short, seconds: median(shorts.map((one) => one.seconds)) }, longer);
    return {
      ...figures,
      official: { throughput: length / seconds },
      also: { [`official, ${short} chunks`]: shorts[0]?.figures ?? {}, [`official, ${long} chunks`]: longer.figures },
      measures: defined({
        chunksPerSecond: figures.parley.throughput,
        [`throughputToOfficialAt${long}`]: ratio(figures.parley.throughput, longer.figures.throughput),
      }),
      notes: [
        `The official SDK would need ${Math.round(seconds)} s for ${length} chunks: worked out as a·n + b·n² from its streams of ${short} and ${long}.`,
      ],
    };
  },
};
