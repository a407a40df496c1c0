import type { Load, Server } from "../bench.ts";
import { call, message, once, send } from "../calls.ts";
import type { Figures } from "../case.ts";
import { summary } from "../load/latencies.ts";
import { costing, medians, type Round } from "../rounds.ts";
import type { Address, Usage } from "../servers/control.ts";

// Measurements of a cluster, for servers of any SDK.

/** A serving process, of Parley or of another SDK. The CPU usage of another SDK is not measured. */
export type Node = Address & Partial<Pick<Server, "usage">>;

/** A round, with the CPU and memory of all processes if they report them. */
async function costingAll(nodes: readonly Node[], round: () => Promise<Round>): Promise<Figures> {
  const known = nodes.flatMap(({ usage }) => (usage === undefined ? [] : [usage]));
  if (known.length < nodes.length) {
    const { operations, seconds, p50, p99 } = await round();
    return medians([
      { throughput: operations / seconds, ...(p50 !== undefined && { p50 }), ...(p99 !== undefined && { p99 }) },
    ]);
  }
  const usage = async (): Promise<Usage> => {
    const all = await Promise.all(known.map((each) => each()));
    const sum = (name: keyof Usage): number => all.reduce((before, one) => before + one[name], 0);
    return { cpu: sum("cpu"), rss: sum("rss"), live: sum("live") };
  };
  return costing({ usage }, round);
}

/** Starts tasks that wait. Returns their ids. */
async function begin(node: Address, command: string, count: number): Promise<readonly string[]> {
  const configuration = { returnImmediately: true };
  const sent = Array.from({ length: count }, () =>
    once<{ task: { id: string } }>(node, "SendMessage", { ...message(command), configuration }),
  );
  return (await Promise.all(sent)).map(({ task }) => task.id);
}

const subscribing = (node: Address, ids: readonly string[]) =>
  ids.map((id) => call(node.jsonRpc, "SubscribeToTask", { id }));

/** How many events were sent, and how many reached the clients. */
export interface Tally {
  due: number;
  heard: number;
}

export interface Flow {
  readonly tasks: number;
  /** Events per second, for all tasks together. */
  readonly rate: number;
  readonly seconds: number;
}

/** Streams tasks of one node to clients of another node, or of the same one. */
export async function flow(
  load: Load,
  [from, to]: readonly [Node, Node],
  { tasks, rate, seconds }: Flow,
  tally?: Tally,
): Promise<Figures> {
  const gap = (tasks * 1000) / rate;
  const chunks = Math.max(1, Math.round((seconds * 1000) / gap));
  const ids = await begin(from, `pace ${chunks} ${gap.toFixed(3)}`, tasks);
  return costingAll(from === to ? [from] : [from, to], async () => {
    const { chunks: operations, ...rest } = await load.fanIn({
      request: subscribing(to, ids),
      begin: send(from, "emit"),
      streams: tasks,
      chunks,
      // Ends the streams of a client that cannot keep up.
      seconds: seconds * 1.5 + 2,
    });
    if (tally !== undefined) {
      tally.due += tasks * chunks;
      tally.heard += operations;
    }
    return { operations, ...rest };
  });
}

/** The number of tasks per second that all nodes complete, over connections that are distributed over them. */
export async function making(load: Load, nodes: readonly Node[], seconds: number): Promise<Figures> {
  const round = { expect: "TASK_STATE_COMPLETED", connections: 32, seconds, most: 100_000 };
  return costingAll(nodes, () => load.requests({ ...round, request: nodes.map((node) => send(node, "task")) }));
}

export interface Takeover {
  readonly tasks: number;
  /** Tasks whose client received an event of the new attempt. */
  readonly taken: number;
  /** Milliseconds from the kill to the first event of the new attempt at a client of the surviving node. */
  readonly times: readonly number[];
}

/** Kills a node whose tasks have clients on another node. */
export async function takeover(
  load: Load,
  victim: Node & { kill(): Promise<void> },
  survivor: Node,
  {
    tasks,
    path,
    seconds,
    command,
  }: { readonly tasks: number; readonly path: string; readonly seconds: number; readonly command: string },
): Promise<Takeover> {
  const at = ({ jsonRpc, rest }: Address): Address => ({ jsonRpc: `${jsonRpc}${path}`, rest: `${rest}${path}` });
  const ids = await begin(at(victim), command, tasks);
  await load.openCrowd({ request: subscribing(at(survivor), ids), streams: tasks });
  const hearing = load.hearCrowd({ seconds });
  const killed = performance.timeOrigin + performance.now();
  await victim.kill();
  const times = (await hearing).map((heard) => heard - killed);
  await load.closeCrowd();
  return { tasks, taken: times.length, times };
}

/** The median and the maximum. */
export function timesOf(all: readonly Takeover[]): Figures {
  const times = all.flatMap((one) => one.times);
  return times.length === 0 ? {} : { p50: summary(times).p50, p99: Math.max(...times) };
}
