import type { Bench, Load, Server } from "../bench.ts";
import { call, message, once, send, sendStreaming } from "../calls.ts";
import { defined, ratio, type Case, type Figures } from "../case.ts";
import type { Request } from "../load/http.ts";
import { median } from "../rounds.ts";

interface Crowded {
  readonly figures: Figures;
  /** Resident memory per stream, in KiB. */
  readonly each: number;
  /** Milliseconds until the last stream has received the event. */
  readonly last: number;
}

/** The request of each stream: a subscription to one waiting task. */
async function joining(server: Server): Promise<Request> {
  if (server.name === "raw") return sendStreaming(server, "hold");
  const { task } = await once<{ task: { id: string } }>(server, "SendMessage", {
    ...message("hold"),
    configuration: { returnImmediately: true },
  });
  return call(server.jsonRpc, "SubscribeToTask", { id: task.id });
}

/** Streams that open before the measurement, because the first ones have additional one-time costs. */
const founders = 500;

/** V8 grows its young generation by more than the streams of a short run need, so it starts at its full size. */
const youngGeneration = ["--min-semi-space-size=16", "--max-semi-space-size=16"];

async function crowded(server: Server, load: Load, streams: number, events: number): Promise<Crowded> {
  const request = await joining(server);
  await load.openCrowd({ request, streams: founders });
  await load.emitToCrowd({ request: send(server, "emit") });
  const before = await server.settled();
  await load.openCrowd({ request, streams });
  const idle = await server.settled();
  const served: number[] = [];
  let cpu = 0;
  for (let event = 0; event < events; event++) {
    const start = await server.usage();
    served.push((await load.emitToCrowd({ request: send(server, "emit") })).last);
    cpu += (await server.usage()).cpu - start.cpu;
  }
  await load.closeCrowd();
  return {
    figures: { cpu: cpu / events / (founders + streams), memory: idle.rss / 2 ** 20 },
    each: (idle.rss - before.rss) / 1024 / streams,
    last: median(served),
  };
}

async function run(bench: Bench): ReturnType<Case["run"]> {
  const streams = bench.size(10_000, 1_000);
  const fewer = bench.size(2_000, 500);
  const [load, parley, raw, official] = await Promise.all([
    bench.load(),
    bench.server("parley", "sqlite", youngGeneration),
    bench.server("raw", "memory", youngGeneration),
    bench.server("official", "memory", youngGeneration),
  ]);
  const measure = async (server: Server, count: number): Promise<Crowded> => {
    bench.progress(`${count} streams of ${server.name}`);
    const found = await crowded(server, load, count, 5);
    await server.stop();
    return found;
  };
  const ours = await measure(parley, streams);
  const floor = await measure(raw, streams);
  const theirs = await measure(official, fewer);
  const told = (who: string, count: number, { each, last }: Crowded): string =>
    `${who}: ${count} streams, ${each.toFixed(1)} KiB each, the last one served after ${last.toFixed(1)} ms.`;
  return {
    parley: ours.figures,
    official: theirs.figures,
    raw: floor.figures,
    measures: defined({
      memoryToRaw: ratio(ours.each, floor.each),
      lastToRaw: ratio(ours.last, floor.last),
      memoryToOfficial: ratio(ours.each, theirs.each),
      kibPerStream: ours.each,
      kibPerStreamOfficial: theirs.each,
      kibPerStreamRaw: floor.each,
    }),
    notes: [
      told("Parley", streams, ours),
      told("Raw", streams, floor),
      told("The official SDK", fewer, theirs),
      "Memory a stream is the growth of the resident memory after the first 500 streams, once it has settled; on all servers, the young generation of V8 has its full size from the start. The table has the memory of the whole server.",
    ],
  };
}

export const subscribersCase: Case = {
  name: "subscribers",
  what: "Open streams of one task, idle, then one event to all",
  operation: "one stream that gets the event",
  targets: [
    { measure: "memoryToRaw", says: "memory a stream to raw", atMost: 1.5 },
    { measure: "lastToRaw", says: "time until the last stream has the event, to raw", atMost: 2 },
  ],
  run,
};
