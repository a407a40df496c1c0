import type { Bench, Load, Server } from "../bench.ts";
import { defined, ratio, type Case, type Figures, type Measured } from "../case.ts";
import { startDatabase } from "../database.ts";
import { pythonNodes, type Peer } from "../peers.ts";
import { short } from "../report.ts";
import { inTurn } from "../rounds.ts";
import { flow, making, takeover, timesOf, type Flow, type Takeover, type Tally } from "./cluster-parts.ts";

type Rows = Record<string, Figures>;

/** A rate of events, per second, that keeps no server busy, so that it measures how a node learns of an event. */
const calm = 20;

class Cluster {
  readonly #bench: Bench;
  readonly #url: string;
  readonly load: Load;
  /** Counts the events of Parley's nodes. */
  readonly tally: Tally = { due: 0, heard: 0 };

  constructor(bench: Bench, url: string, load: Load) {
    this.#bench = bench;
    this.#url = url;
    this.load = load;
  }

  /** Starts a node. `alone`: it behaves as the only process of its machine. */
  node(schema: string, where: "alone" | "together"): Promise<Server> {
    return this.#bench.parley("node", [this.#url, schema, where]);
  }
}

/** Latencies from one node to another node's clients. */
async function latencies(bench: Bench, { load, tally }: Cluster, [a, b]: readonly [Server, Server]): Promise<Rows> {
  const wanted: Flow = {
    tasks: bench.size(100, 10),
    rate: bench.size(2_000, 100),
    seconds: bench.size(3, 0.3),
  };
  const few: Flow = { tasks: bench.size(10, 5), rate: bench.size(calm, 50), seconds: wanted.seconds };
  const subject = (from: Server, to: Server, what: Flow, warmUp = 0) => ({
    measure: () => flow(load, [from, to], what, tally),
    warmUp: () => (warmUp === 0 ? Promise.resolve() : flow(load, [from, to], { ...what, seconds: warmUp })),
  });
  return inTurn(bench.size(5, 1), {
    parley: subject(a, b, wanted, bench.size(4, 0)),
    "parley, client of the same node": subject(a, a, wanted),
    [`parley, ${few.rate} events a second`]: subject(a, b, few),
  });
}

/** Tasks per second with one, two and three nodes, and on SQLite with one and two processes. */
async function throughputs(bench: Bench, { load }: Cluster, nodes: readonly Server[]): Promise<Rows> {
  const processes = (count: number): Promise<Server> => bench.parley("processes", [bench.file(".db"), String(count)]);
  const [one, two] = [await processes(1), await processes(2)];
  const seconds = bench.size(2, 0.2);
  const warmUp = (subject: readonly Server[]) => () => making(load, subject, bench.size(3, 0.1));
  const of = (subject: readonly Server[]) => ({
    measure: () => making(load, subject, seconds),
    warmUp: warmUp(subject),
  });
  const rows = await inTurn(bench.size(3, 1), {
    "parley, tasks on 1 node": of(nodes.slice(0, 1)),
    "parley, tasks on 2 nodes": of(nodes.slice(0, 2)),
    "parley, tasks on 3 nodes": of(nodes.slice(0, 3)),
    "parley, tasks on SQLite, 1 process": of([one]),
    "parley, tasks on SQLite, 2 processes": of([two]),
  });
  await Promise.all([one.stop(), two.stop()]);
  // With several processes, the first one does not serve, and does not know the usage of the others.
  const { throughput, p50, p99 } = rows["parley, tasks on SQLite, 2 processes"];
  return { ...rows, "parley, tasks on SQLite, 2 processes": defined({ throughput, p50, p99 }) };
}

async function takeovers(
  bench: Bench,
  cluster: Cluster,
  where: "alone" | "together",
  rounds: number,
): Promise<readonly Takeover[]> {
  const survivor = await cluster.node(`takeover_${where}`, where);
  const all: Takeover[] = [];
  for (let round = 0; round < rounds; round++) {
    const victim = await cluster.node(`takeover_${where}`, where);
    const what = { tasks: bench.size(20, 3), path: "/resumable", seconds: 30, command: "hold" };
    all.push(await takeover(cluster.load, victim, survivor, what));
  }
  await survivor.stop();
  return all;
}

interface Others {
  readonly rows: Rows;
  readonly notes: readonly string[];
}

/** The time limit for the Python SDK. A server that cannot keep up must not stop the run. */
const maxSeconds = 75;

/** The same measurements with the Python SDK. */
async function python(database: string, load: Load): Promise<Others> {
  let timer: NodeJS.Timeout | undefined;
  const nodes: Peer[] = [];
  try {
    // The first run downloads its packages.
    const start = await pythonNodes(database);
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not finished after ${maxSeconds} s`)), maxSeconds * 1000);
    });
    for (let count = 0; count < 2; count++) nodes.push(await Promise.race([start(), late]));
    return await Promise.race([besidePython(load, nodes as [Peer, Peer]), late]);
  } catch (error) {
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { rows: {}, notes: [`The Python SDK could not be measured: ${reason}`] };
  } finally {
    clearTimeout(timer);
    await Promise.all(nodes.map((node) => node.kill()));
  }
}

async function besidePython(load: Load, [a, b]: readonly [Peer, Peer]): Promise<Others> {
  const few: Flow = { tasks: 10, rate: calm, seconds: 5 };
  await flow(load, [a, b], { ...few, seconds: 1 });
  const slow = await flow(load, [a, b], few);
  const alone = await making(load, [a], 3);
  const both = await making(load, [a, b], 3);
  const { tasks, taken } = await takeover(load, a, b, { tasks: 5, path: "", seconds: 10, command: "pace 1 1" });
  return {
    rows: {
      [`Python, ${calm} events a second`]: slow,
      "Python, tasks on 1 node": alone,
      "Python, tasks on 2 nodes": both,
    },
    notes: [
      `The Python SDK is a2a-sdk 1.3 with VersionedDatabaseTaskStore and DatabaseTaskEventStream, which polls every 500 ms. Of ${tasks} tasks of a killed node, ${taken} continued within 10 s: it has no takeover.`,
    ],
  };
}

function notesOf(far: readonly Takeover[], near: readonly Takeover[], version: string): readonly string[] {
  const sum = (all: readonly Takeover[], count: (one: Takeover) => number): number =>
    all.reduce((so, one) => so + count(one), 0);
  const tasks = sum([...far, ...near], (one) => one.tasks);
  const taken = sum([...far, ...near], (one) => one.taken);
  const firsts = far.map(({ times }) => Math.min(...times));
  const lasts = far.map(({ times }) => Math.max(...times));
  return [
    `PostgreSQL ${version} with fsync, on the disk. The rows of events: one operation is an event, from its yield on one node to the client of another one, including the commit. CPU and memory are those of both nodes, without PostgreSQL.`,
    "The rows of tasks: one operation is a message that creates and completes a task with one artifact, over 32 connections that are spread over the nodes. CPU and memory are those of all nodes.",
    `The rows of takeover: from SIGKILL to the first event of the new attempt at a client of the surviving node, with the defaults; p99 is the slowest. ${taken} of ${tasks} tasks were taken over. For nodes on separate machines, which cannot see that a process ended, the first task continued after ${firsts.map((one) => `${short(one)} ms`).join(", ")} and the last one after ${lasts.map((one) => `${short(one)} ms`).join(", ")}: before the first one, a node must be silent until it counts as dead; the time between them is the takeover.`,
  ];
}

async function run(bench: Bench): Promise<Measured> {
  const { url, version, stop } = await startDatabase();
  bench.atEnd(stop);
  const cluster = new Cluster(bench, url, await bench.load());
  const nodes = [await cluster.node("together", "alone"), await cluster.node("together", "alone")] as const;
  bench.progress("events");
  const { parley = {}, ...events } = await latencies(bench, cluster, nodes);
  bench.progress("tasks");
  const third = await cluster.node("together", "alone");
  const tasks = await throughputs(bench, cluster, [...nodes, third]);
  await Promise.all([...nodes, third].map((node) => node.stop()));
  bench.progress("takeover");
  const far = await takeovers(bench, cluster, "alone", bench.size(5, 1));
  const near = bench.quick ? [] : await takeovers(bench, cluster, "together", 3);
  bench.progress("others");
  const others = bench.quick ? { rows: {}, notes: [] } : await python(url, cluster.load);
  const taking: Rows = {
    "parley, takeover": timesOf(far),
    ...(near.length > 0 && { "parley, takeover on one machine": timesOf(near) }),
  };
  const slow = {
    parley: events[`parley, ${calm} events a second`],
    python: others.rows[`Python, ${calm} events a second`],
  };
  const throughput = (row: string): number | undefined => ({ ...tasks, ...others.rows })[row]?.throughput;
  return {
    parley,
    also: { ...events, ...tasks, ...taking, ...others.rows },
    measures: defined({
      p50: parley.p50,
      p99: parley.p99,
      eventsDue: cluster.tally.due,
      eventsHeard: cluster.tally.heard,
      takenOver: far.reduce((sum, { taken }) => sum + taken, 0),
      takeover: far.every(({ tasks: all, taken }) => all === taken) ? timesOf(far).p99 : undefined,
      p50ToPython: ratio(slow.parley?.p50, slow.python?.p50),
      twoNodes: ratio(throughput("parley, tasks on 2 nodes"), throughput("parley, tasks on 1 node")),
      threeNodes: ratio(throughput("parley, tasks on 3 nodes"), throughput("parley, tasks on 1 node")),
      twoProcesses: ratio(
        throughput("parley, tasks on SQLite, 2 processes"),
        throughput("parley, tasks on SQLite, 1 process"),
      ),
      throughputToPython: ratio(throughput("parley, tasks on 1 node"), throughput("Python, tasks on 1 node")),
    }),
    notes: [...notesOf(far, near, version), ...others.notes],
  };
}

export const clusterCase: Case = {
  name: "cluster",
  what: "Nodes on one PostgreSQL: 2,000 events a second to clients of another node, tasks on several nodes, takeover",
  operation: "what the notes say",
  why: "The statements of one second at 2,000 events take PostgreSQL about 0.2 s: a transaction locks and reads the tasks of some 15 events in 0.3 ms, and writes them in 0.4 ms. What is new in the logs of 20 to 25 tasks is read in 0.4 ms, and a NOTIFY takes 0.02 ms. A single append of 16 events took 2.5 ms at the median, of which 0.13 ms are for the disk. The rest is the way between processes. An event passes five of them, and here all five share two cores, so even a client of the same node has most of this median. These helped: named statements, which are planned only once; one statement for all readers that a wake-up names, instead of a transaction each; one write for statements that are sent together; wake-ups every 2 ms instead of 5. Together they took the median from 140 to 250 ms down to 30 to 70 while the machine had five times as much to do, and the CPU of both nodes for an event from 260 to 370 µs down to 170 to 335. Of a takeover, 2.6 s are the silence after the last heartbeat until a node counts as dead.",
  apart: true,
  targets: [
    { measure: "p50", says: "p50 from one node to a client of another", unit: "ms", atMost: 5 },
    { measure: "p99", says: "p99 from one node to a client of another", unit: "ms", atMost: 25 },
    { measure: "takeover", says: "the last task of a killed node continues", unit: "ms", atMost: 3_000 },
  ],
  run,
};
