import type { Bench, Load, Server } from "../bench.ts";
import { send, sendStreaming } from "../calls.ts";
import { defined, ratio, type Case, type Figures } from "../case.ts";
import { short } from "../report.ts";
import { medians } from "../rounds.ts";
import { question } from "./message.ts";

const rate = 500;
const chunks = 20_000;

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [parley, load, streamer] = await Promise.all([bench.server("parley", "sqlite"), bench.load(), bench.load()]);
  // No target depends on the other servers, so a quick run omits them.
  const others = bench.quick ? [] : await Promise.all([bench.server("official"), bench.server("raw")]);
  const memory = bench.quick ? [] : [await bench.server("parley")];
  const seconds = bench.size(3, 0.4);
  const rounds = 3;
  /** Answered messages per second, the lowest of all rounds. */
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
  /** Chunks per second of the parallel stream, in the last round. */
  const flow: Record<string, number> = {};
  const busy = async (server: Server, name: string = server.name): Promise<Figures> => {
    const stop = streamsAlong(streamer, server, seconds);
    const figures = await messages(server);
    flow[name] = await stop();
    await idle(server);
    return figures;
  };
  const figures: Record<string, Figures[]> = {};
  const measure = async (name: string, once: () => Promise<Figures>): Promise<void> => {
    (figures[name] ??= []).push(await once());
  };
  for (const server of [parley, ...others, ...memory]) await messages(server);
  await busy(parley);
  for (let round = 0; round < rounds; round++) {
    await measure("parley idle", () => messages(parley));
    await measure("parley", () => busy(parley));
  }
  for (const server of others) {
    await measure(`${server.name} idle`, () => messages(server));
    await measure(server.name, () => busy(server));
  }
  for (const server of memory) {
    await measure("parley, in memory, idle", () => messages(server));
    await measure("parley, in memory", () => busy(server, "parley in memory"));
  }
  const of = (name: string): Figures => medians(figures[name] ?? []);
  return {
    parley: of("parley"),
    ...Object.fromEntries(others.map(({ name }) => [name, of(name)])),
    also: Object.fromEntries([
      ...[parley, ...others].map(({ name }) => [`${name}, idle`, of(`${name} idle`)] as const),
      ...memory.flatMap(() =>
        ["parley, in memory", "parley, in memory, idle"].map((name) => [name, of(name)] as const),
      ),
    ]),
    measures: defined({ p99ToIdle: ratio(of("parley").p99, of("parley idle").p99) }),
    notes: [
      "On SQLite a message waits for a commit, and so for the disk. In memory it waits for the event loop alone.",
      `${rate} messages a second are due. Answered in the worst round: ${listed(keptUp)}.`,
      `Chunks a second of the stream: ${listed(flow)}. The agent of the official SDK waits for the next turn of the event loop after each chunk.`,
    ],
  };
}

/**
 * Waits until a server is idle, for at most three seconds: if the reader of a stream disconnects, the stream's agent still continues to
 * its end.
 */
async function idle(server: Server): Promise<void> {
  let { cpu } = await server.usage();
  for (let time = 0; time < 15; time++) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    const before = cpu;
    ({ cpu } = await server.usage());
    // Idle: a twentieth of a core.
    if (cpu - before < 10_000) return;
  }
}

function listed(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([name, perSecond]) => `${name} ${short(perSecond)}`)
    .join(", ");
}

/** Runs consecutive streams until the returned function is called, which returns their chunks per second. */
function streamsAlong(load: Load, server: Server, seconds: number): () => Promise<number> {
  let on = true;
  const request = sendStreaming(server, `stream ${chunks} 0`);
  const running = (async () => {
    const sum = { chunks: 0, seconds: 0 };
    while (on) {
      const outcome = await load.stream({ request, chunks, seconds: seconds + 0.3, ends: true });
      sum.chunks += outcome.chunks;
      sum.seconds += outcome.seconds;
    }
    return sum.chunks / sum.seconds;
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
  why: "The load program reads the stream on the same two cores, so the raw server gets slower by more than Parley does; its two rows are the floor. Between two polls of the sockets, the stream gets one window of 256 events. They are made, checked, serialized, sent to the thread that writes, and written to the reader, which takes a few milliseconds. A smaller window slows the stream by more than it helps its neighbours. In memory no event waits for a commit, so the stream is faster and its neighbours wait longer.",
  run,
};
