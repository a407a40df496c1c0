import type { Load, Server } from "../bench.ts";
import { send, sendStreaming } from "../calls.ts";
import { defined, type Case, type Figures } from "../case.ts";
import { short } from "../report.ts";
import { costing, median } from "../rounds.ts";

const tasks = 1_000;
/** Chunks a second over all tasks: slightly more than the target asks for. */
const rate = 26_000;

async function flood(load: Load, server: Server, chunks: number): Promise<Figures> {
  const gap = (tasks * 1000) / rate;
  const request = sendStreaming(server, `pace ${chunks} ${gap.toFixed(3)}`);
  // The official SDK would take minutes, so its streams are cut off after this time.
  const seconds = ((chunks * gap) / 1000) * 1.3 + 0.3;
  return costing(server, async () => {
    const begin = send(server, "emit");
    const { chunks: operations, ...rest } = await load.fanIn({ request, begin, streams: tasks, chunks, seconds });
    return { operations, ...rest };
  });
}

/** Milliseconds that a bare server takes to write one event to as many streams: the measure for a delay. */
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
  why: "Each chunk of a thousand streams is a write to a socket of its own, which the bare server pays as well, and goes to the end of its task, a page of its own: SQLite writes a page a chunk into its log, and the last one of each task into the file at every checkpoint. That is two thirds of the 25 µs that the writing thread takes for a chunk; the main thread takes 30, half of it the socket. At this rate both are busy three quarters of the time, before the disk is waited for, and the batches that come together wait for each other and for a checkpoint, 20 ms. Without an index of artifacts, with many tasks in one statement and a checkpoint after 4,000 pages the writing thread takes 24 instead of 35 µs. Tried without a gain: batches of 64 and 256, a larger cache, a mapped file, other pages, fewer records at hand for readers.",
  async run(bench) {
    const [parley, official, raw, load] = await Promise.all([
      bench.server("parley", "sqlite"),
      bench.quick ? undefined : bench.server("official"),
      bench.server("raw"),
      bench.load(),
    ]);
    const chunks = bench.size(100, 20);
    await flood(load, parley, bench.size(25, 5));
    const figures = {
      parley: await flood(load, parley, chunks),
      raw: await flood(load, raw, chunks),
      // It takes seconds, and no target depends on it.
      ...(official !== undefined && { official: await flood(load, official, chunks) }),
    };
    const wave = await rawWave(load, raw);
    return {
      ...figures,
      measures: defined({
        chunksPerSecond: figures.parley.throughput,
        p99: figures.parley.p99,
      }),
      notes: [
        `Raw needs ${short(wave)} ms to write one event to each of ${tasks} streams.`,
        `Each task makes ${chunks} chunks. All servers are offered the same; the official SDK keeps it in memory.`,
      ],
    };
  },
};
