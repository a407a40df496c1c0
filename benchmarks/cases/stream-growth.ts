import type { Bench, Load, Server } from "../bench.ts";
import { sendStreaming } from "../calls.ts";
import { defined, ratio, type Case } from "../case.ts";
import { inTurn } from "../rounds.ts";
import { streaming } from "./stream.ts";

/** Memory in use just before the end of a stream with this many chunks, in MiB. */
async function held(load: Load, server: Server, chunks: number): Promise<number> {
  await load.stream({ request: sendStreaming(server, `stream ${chunks} 1`), chunks, seconds: 60, ends: false });
  return (await server.settled()).live / 2 ** 20;
}

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [parley, raw, load] = await Promise.all([bench.server("parley", "sqlite"), bench.server("raw"), bench.load()]);
  const [short, middle, long] = [1_000, 10_000, bench.size(100_000, 20_000)];
  /** Runs short streams in sequence, with the same total number of chunks in every round. */
  const streams = (chunks: number) => () => {
    const count = long / chunks;
    return repeated(count, () => streaming(load, parley, chunks));
  };
  const figures = await inTurn(bench.size(3, 1), {
    parley: streams(short),
    middle: streams(middle),
    long: streams(long),
    raw: () => streaming(load, raw, long),
  });
  const atShort = await held(load, parley, short);
  const atLong = await held(load, parley, long);
  return {
    parley: figures.parley,
    raw: figures.raw,
    also: { [`parley, ${middle} chunks`]: figures.middle, [`parley, ${long} chunks`]: figures.long },
    measures: defined({
      growth: ratio(figures.long.cpu, figures.parley.cpu),
      memoryGrowth: ratio(atLong, atShort),
      bytesPerChunk: ((atLong - atShort) * 2 ** 20) / (long - short),
    }),
    notes: [
      `The rows are streams of ${short} (parley), ${middle} and ${long} chunks; raw has ${long}.`,
      `In use just before the end of a stream: ${atShort.toFixed(1)} MiB at ${short} chunks, ${atLong.toFixed(1)} MiB at ${long}.`,
    ],
  };
}

/** The mean of several runs. */
async function repeated(count: number, once: () => ReturnType<typeof streaming>): ReturnType<typeof streaming> {
  let cpu = 0;
  let seconds = 0;
  let memory = 0;
  for (let at = 0; at < count; at++) {
    const figures = await once();
    cpu += figures.cpu ?? Number.NaN;
    seconds += 1 / (figures.throughput ?? Number.NaN);
    memory = figures.memory ?? Number.NaN;
  }
  return { throughput: count / seconds, cpu: cpu / count, memory };
}

export const streamGrowthCase: Case = {
  name: "stream-growth",
  what: "What a chunk costs in short and in long streams, on SQLite",
  operation: "a chunk",
  targets: [
    { measure: "growth", says: "CPU a chunk in the longest stream to that in one of 1,000", atMost: 1.25 },
    { measure: "memoryGrowth", says: "memory in use at the end of the longest stream to that of 1,000", atMost: 1.1 },
  ],
  run,
};
