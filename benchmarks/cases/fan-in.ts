import type { Load, Server } from "../bench.ts";
import { send, sendStreaming } from "../calls.ts";
import { defined, type Case, type Figures } from "../case.ts";
import { short } from "../report.ts";
import { costing, median } from "../rounds.ts";

const tasks = 1_000;
/** Chunks per second over all tasks: slightly more than the target requires. */
const rate = 26_000;

async function flood(load: Load, server: Server, chunks: number): Promise<Figures> {
  const gap = (tasks * 1000) / rate;
  const request = sendStreaming(server, `pace ${chunks} ${gap.toFixed(3)}`);
  // The official SDK would take minutes, so its streams end after this time.
  const seconds = ((chunks * gap) / 1000) * 1.3 + 0.3;
  return costing(server, async () => {
    const begin = send(server, "emit");
    const { chunks: operations, ...rest } = await load.fanIn({ request, begin, streams: tasks, chunks, seconds });
    return { operations, ...rest };
  });
}

/** Milliseconds in which a bare server writes one event to the same number of streams: the reference for a delay. */
async function rawWave(load: Load, raw: Server): Promise<number> {
  await load.openCrowd({ request: sendStreaming(raw, "hold"), streams: tasks });
  const waves: number[] = [];
  for (let time = 0; time < 7; time++) waves.push((await load.emitToCrowd({ request: send(raw, "emit") })).last);
  await load.closeCrowd();
  return median(waves);
}

export const fanInCase: Case = {
  name: "fan-in",
  what: `${tasks} tasks that stream at once, ${rate} chunks a second together, on SQLite`,
  operation: "a chunk",
  targets: [
    {
      measure: "chunksPerSecond",
      says: "chunks at the clients",
      unit: "chunks/s",
      atLeast: 25_000,
    },
    {
      measure: "p99",
      says: "p99 from append to client",
      unit: "ms",
      atMost: 50,
    },
  ],
  why: "At this rate the server, its writing thread and the load program share two cores, and all are busy most of the time. In memory the 99th percentile is about the same, so the disk does not decide it. On SQLite each chunk is also a change to another page of the database: one page in its log for each chunk, and the last page of each task in the file at each checkpoint. These did not help: batches of 64 and of 256 tasks, a larger cache, a mapped file, other page sizes, fewer records in memory for readers.",
  async run(bench) {
    const [parley, memory, official, raw, load] = await Promise.all([
      bench.server("parley", "sqlite"),
      bench.server("parley"),
      bench.quick ? undefined : bench.server("official"),
      bench.server("raw"),
      bench.load(),
    ]);
    const chunks = bench.size(100, 20);
    for (const server of [parley, memory]) await flood(load, server, bench.size(25, 5));
    const figures = {
      parley: await flood(load, parley, chunks),
      raw: await flood(load, raw, chunks),
      // This takes seconds, and no target depends on it.
      ...(official !== undefined && { official: await flood(load, official, chunks) }),
    };
    const also = { "parley, in memory": await flood(load, memory, chunks) };
    const wave = await rawWave(load, raw);
    return {
      ...figures,
      also,
      measures: defined({
        chunksPerSecond: figures.parley.throughput,
        p99: figures.parley.p99,
      }),
      notes: [
        `Raw needs ${short(wave)} ms to write one event to each of ${tasks} streams.`,
        `Each task makes ${chunks} chunks. All servers get the same load; the official SDK keeps it in memory.`,
      ],
    };
  },
};
