import type { Bench, Load, Server } from "../bench.ts";
import { send, sendStreaming } from "../calls.ts";
import { defined, ratio, type Case, type Figures } from "../case.ts";
import { medians } from "../rounds.ts";
import { question } from "./message.ts";

const rate = 500;
const chunks = 20_000;

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [parley, official, raw, load, streamer] = await Promise.all([
    bench.server("parley", "sqlite"),
    bench.server("official"),
    bench.server("raw"),
    bench.load(),
    bench.load(),
  ]);
  const seconds = bench.size(3, 0.5);
  const rounds = bench.size(3, 1);
  /** Messages answered a second, the least of all rounds. */
  const keptUp: Partial<Record<Server["name"], number>> = {};
  const messages = async (server: Server): Promise<Figures> => {
    const request = send(server, `reply ${question}`);
    const {
      operations,
      seconds: took,
      p50,
      p99,
    } = await load.paced({
      request,
      expect: "forty-two",
      connections: 64,
      seconds,
      most: 100_000,
      rate,
    });
    keptUp[server.name] = Math.min(keptUp[server.name] ?? Infinity, operations / took);
    return { p50, p99 };
  };
  const busy = async (server: Server): Promise<Figures> => {
    const stop = streamsAlong(streamer, server, seconds);
    const figures = await messages(server);
    await stop();
    return figures;
  };
  const figures: Record<string, Figures[]> = {};
  const measure = async (name: string, once: () => Promise<Figures>): Promise<void> => {
    (figures[name] ??= []).push(await once());
  };
  for (const server of [parley, official, raw]) await messages(server);
  await busy(parley);
  for (let round = 0; round < rounds; round++) {
    for (const server of [parley, raw]) {
      await measure(`${server.name} idle`, () => messages(server));
      await measure(server.name, () => busy(server));
    }
  }
  await measure("official idle", () => messages(official));
  await measure("official", () => busy(official));
  const of = (name: string): Figures => medians(figures[name] ?? []);
  return {
    parley: of("parley"),
    official: of("official"),
    raw: of("raw"),
    also: { "parley, idle": of("parley idle"), "official, idle": of("official idle"), "raw, idle": of("raw idle") },
    measures: defined({ p99ToIdle: ratio(of("parley").p99, of("parley idle").p99) }),
    notes: [
      `${rate} messages a second are due. Answered in the worst round: ${Object.entries(keptUp)
        .map(([name, perSecond]) => `${name} ${Math.round(perSecond)}`)
        .join(", ")}.`,
    ],
  };
}

/** Lets one stream follow the other until the returned function is called. */
function streamsAlong(load: Load, server: Server, seconds: number): () => Promise<void> {
  let on = true;
  const request = sendStreaming(server, `stream ${chunks} 0`);
  const running = (async () => {
    while (on) await load.stream({ request, chunks, seconds: seconds + 0.3, ends: true });
  })();
  return () => {
    on = false;
    return running;
  };
}

export const neighbourCase: Case = {
  name: "neighbour",
  what: `Messages at ${rate} a second beside one stream of ${chunks} chunks at full speed`,
  operation: "a message",
  targets: [{ measure: "p99ToIdle", says: "p99 beside the stream to that of an idle server", atMost: 2 }],
  run,
};
