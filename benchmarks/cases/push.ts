import type { Bench, Server } from "../bench.ts";
import { message, once } from "../calls.ts";
import { defined, ratio, type Case, type Figures } from "../case.ts";
import type { Child } from "../ipc.ts";
import type { Posted, Posting } from "../load/posts.ts";
import type { Arrived, Receivers, Sample } from "../load/receivers.ts";
import { inTurn, medians } from "../rounds.ts";

const receiversCount = 100;
const deadCount = 10;

/** Starts a task with a webhook for each URL. For `undefined`, starts a task without a webhook. */
async function reporting(server: Server, command: string, urls: readonly (string | undefined)[]): Promise<void> {
  for (const url of urls) {
    const configuration = {
      returnImmediately: true,
      ...(url !== undefined && { taskPushNotificationConfig: { url, token: "a-token-of-the-receiver" } }),
    };
    await once(server, "SendMessage", { ...message(command), configuration });
  }
}

const emit = (server: Server): Promise<unknown> => once(server, "SendMessage", message("emit"));

/** Waits until a server is idle, for at most three seconds. Returns its CPU time in microseconds. */
async function still(server: Server): Promise<number> {
  let { cpu } = await server.usage();
  for (let time = 0; time < 15; time++) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    const before = cpu;
    ({ cpu } = await server.usage());
    // Idle: a twentieth of a core.
    if (cpu - before < 10_000) break;
  }
  return cpu;
}

/** One burst of events, and its cost for the server. Without receivers, `wanted` is 0. */
async function burst(server: Server, receivers: Child, wanted: number): Promise<Arrived & { readonly cpu: number }> {
  const before = await still(server);
  await emit(server);
  const arrived = await receivers.ask<Arrived>("take", { wanted });
  return { ...arrived, cpu: (await still(server)) - before };
}

interface Sender {
  readonly server: Server;
  /** The CPU time of the same events without receivers, in microseconds. */
  readonly events: number;
}

/** A server whose tasks report to the receivers, and the cost of its events alone. */
async function sender(
  bench: Bench,
  store: "memory" | "sqlite",
  { urls, receivers, each }: { readonly urls: readonly string[]; readonly receivers: Child; readonly each: number },
): Promise<Sender> {
  const command = `report ${each} 0`;
  const alone = await bench.server("push", store);
  await reporting(
    alone,
    command,
    urls.map(() => undefined),
  );
  for (let time = 0; time < 2; time++) await burst(alone, receivers, 0);
  const { cpu: events } = await burst(alone, receivers, 0);
  await alone.stop();
  const server = await bench.server("push", store);
  await reporting(server, command, urls);
  await still(server);
  await receivers.ask("take", { wanted: 0 });
  return { server, events };
}

function posting(posts: Child, input: () => Posting): () => Promise<Figures> {
  return async () => {
    const { operations, seconds, cpu } = await posts.ask<Posted>("post", input());
    return { throughput: operations / seconds, cpu: cpu / operations };
  };
}

/** Reports at a rate below the server's capacity, with and without additional dead receivers. */
async function besideDead(bench: Bench, receivers: Child, { live, dead }: Receivers): Promise<Record<string, Figures>> {
  const server = await bench.server("push", "sqlite");
  const each = bench.size(8, 4);
  await reporting(server, `report ${each} 250`, live);
  await still(server);
  const round = async (): Promise<Figures> => {
    await receivers.ask("take", { wanted: 0 });
    await emit(server);
    const { p50, p99 } = await receivers.ask<Arrived>("take", { wanted: live.length * each });
    return { p50, p99 };
  };
  const rounds = async (): Promise<Figures> => medians([await round(), await round(), await round()]);
  await round();
  const alone = await rounds();
  // The server waits for each dead receiver until the timeout, and retries its event.
  await reporting(server, `report ${each} 250`, dead);
  return { alone, beside: await rounds() };
}

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [receivers, posts] = await Promise.all([bench.child("load/receivers"), bench.child("load/posts")]);
  const open = await receivers.ask<Receivers>("open", { live: receiversCount, dead: deadCount });
  const urls = open.live;
  const each = bench.size(40, 10);
  bench.progress("bursts");
  const setting = { urls, receivers, each };
  const [memory, sqlite] = [await sender(bench, "memory", setting), await sender(bench, "sqlite", setting)];
  let sample: Sample = { headers: [], body: "" };
  const delivering =
    ({ server, events }: Sender) =>
    async (): Promise<Figures> => {
      const { operations, seconds, cpu, sample: newest } = await burst(server, receivers, urls.length * each);
      sample = newest;
      return { throughput: operations / seconds, cpu: (cpu - events) / operations };
    };
  const floor = (client: Posting["client"]) => async (): Promise<Figures> => {
    const figures = await posting(posts, () => ({ ...sample, urls, each, client }))();
    await receivers.ask("take", { wanted: 0 });
    return figures;
  };
  const figures = await inTurn(bench.size(3, 2), {
    parley: delivering(sqlite),
    memory: delivering(memory),
    fetch: floor("fetch"),
    raw: floor("http"),
  });
  await Promise.all([memory.server.stop(), sqlite.server.stop()]);
  bench.progress("dead receivers");
  const { alone, beside } = await besideDead(bench, receivers, open);
  return {
    parley: figures.parley,
    raw: figures.raw,
    also: {
      "parley, in memory": figures.memory,
      fetch: figures.fetch,
      [`parley, at a low rate`]: alone ?? {},
      [`the same, beside ${deadCount} dead receivers`]: beside ?? {},
    },
    measures: defined({
      cpuToFetch: ratio(figures.parley.cpu, figures.fetch.cpu),
      memoryCpuToRaw: ratio(figures.memory.cpu, figures.raw.cpu),
      p99ToAlone: ratio(beside?.p99, alone?.p99),
      perSecond: figures.parley.throughput,
    }),
    notes: [
      "CPU is only that of the deliveries: the cost of the same events without webhooks is subtracted.",
      `Raw is \`node:http\` with keep-alive connections, in a loop that posts the bytes of one of these deliveries, one request at a time to each of ${receiversCount} receivers. Fetch is the same with \`fetch\`.`,
      `Milliseconds are from the event of the agent to its arrival, at ${receiversCount * 4} deliveries a second. The dead receivers accept a connection and never answer.`,
    ],
  };
}

export const pushCase: Case = {
  name: "push",
  what: `Webhooks to ${receiversCount} receivers, signed and in order, on SQLite`,
  operation: "a delivery",
  targets: [
    { measure: "cpuToFetch", says: "CPU a delivery to fetch", atMost: 2 },
    { measure: "cpuToRaw", says: "CPU a delivery to raw", atMost: 2 },
    { measure: "p99ToAlone", says: `p99 beside ${deadCount} dead receivers to that without them`, atMost: 2 },
  ],
  why: "Against `node:http` the signature alone is half of the floor: Ed25519 takes about 50 µs, in a thread of WebCrypto. The check of the address, the time limit and a `Response` of the Fetch API take about as much as the request. The rest is what makes a delivery durable: the log is read, the row is claimed, and the cursor is stored after each answer, in transactions that configs share. On SQLite the writing thread waits for the disk.",
  run,
};
