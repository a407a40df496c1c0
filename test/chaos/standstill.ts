import type { TaskState } from "@parley/a2a/model";
import type { Crowd, HeldTask, HeldWay } from "./clients.ts";
import type { ClusterNode } from "./cluster.ts";
import { pause } from "./harms.ts";
import type { Counted, Entry, Metered } from "./history.ts";
import { exact, sumOf, type Scraper } from "./metrics.ts";

/* Checks the reports to operators and the dashboard while no task moves: first with tasks that wait for each of the reasons, then without tasks. */

/** The reason that operators see for each kind of waiting task. */
const reasons: Readonly<Record<HeldWay, string>> = { plain: "agentPaused", ask: "input", wait: "event" };
/** The number of waiting tasks of each kind. */
const count = 3;
/** The store's gauges are cached for a second. */
const gaugesFor = 1_500;

export interface Watched {
  readonly node: ClusterNode;
  readonly scraper: Scraper;
}

export interface StandstillOptions {
  readonly watched: readonly Watched[];
  readonly crowd: Pick<Crowd, "hold">;
  readonly note: (entry: Entry) => void;
  /** The maximum time without a change while tasks settle, in milliseconds. */
  readonly patience: number;
}

/** Makes some tasks wait for each reason, records the reports to operators, and ends the tasks. */
export async function standstill({ watched, crowd, note, patience }: StandstillOptions): Promise<void> {
  const [{ node: first } = missing(), ...others] = watched.toReversed();
  const { node: last = first } = others.at(-1) ?? {};
  await ops(first, "/v1/acts/pause", { agent: "/plain", reason: "chaos" });
  const held: HeldTask[] = [];
  const hold = async (way: HeldWay): Promise<void> => void held.push(await crowd.hold(way, held.length));
  for (const way of ["plain", "ask", "wait"] as const) for (let at = 0; at < count; at += 1) await hold(way);
  for (const until = performance.now() + patience; ; await pause(200)) {
    const why = await Promise.all(held.map((task) => whyOf(first, task)));
    const waits = (way: HeldWay): number =>
      held.filter((task, at) => task.way === way && why[at] === reasons[way]).length;
    const moving = held.filter((task, at) => why[at] !== "done" && why[at] !== reasons[task.way]);
    // A node still starts turns of the agent until it has read the order to pause.
    if (moving.length === 0 && waits("plain") < count) await hold("plain");
    else if (moving.length === 0) break;
    if (performance.now() > until) {
      const what = `${moving.map(({ taskId }) => taskId).join(", ")} did not come to rest`;
      note({ type: "trouble", at: Date.now(), what });
      break;
    }
  }
  await writeCounts(watched, held, note);
  await ops(last, "/v1/acts/unpause", { agent: "/plain" });
  await Promise.all(held.map((task) => task.finish()));
}

/** Records the reports of each node to operators, and what clients see of the waiting tasks. */
export async function writeCounts(
  watched: readonly Watched[],
  held: readonly HeldTask[],
  note: (entry: Counted) => void,
): Promise<void> {
  await pause(gaugesFor);
  const states = await Promise.all(held.map(async (task) => ({ task, state: await task.state() })));
  const open = states.filter(({ state }) => state !== "TASK_STATE_COMPLETED");
  for (const { node, scraper } of watched) {
    const samples = (await scraper.scrape()) ?? new Map<string, number>();
    const { agents, queue, runs } = await ops<Counts>(node, "/v1/counts");
    note({
      type: "counted",
      at: Date.now(),
      node: node.name,
      agents: Object.fromEntries(agents.map((each) => [each.agent, each.states])),
      paused: agents.filter(({ paused }) => paused).map(({ agent }) => agent),
      queued: queue.count,
      runs: runs.count,
      listed: await listed(node),
      gauges: Object.fromEntries(exact.flatMap((name) => (samples.has(name) ? [[name, sumOf(samples, name)]] : []))),
      open: open.map(({ task: { taskId, agent, way }, state }) => ({ taskId, agent, state, waits: way === "wait" })),
    });
  }
}

/** Reads each node's counters for the last time. */
export async function writeMetrics(watched: readonly Watched[], note: (entry: Metered) => void): Promise<void> {
  for (const { node, scraper } of watched) {
    const samples = (await scraper.scrape()) ?? new Map<string, number>();
    note({
      type: "metered",
      at: Date.now(),
      node: node.name,
      records: sumOf(samples, "parley_store_records_total"),
      turns: sumOf(samples, "gen_ai_invoke_agent_duration_seconds_count"),
      allRecords: sumOf(scraper.total, "parley_store_records_total"),
      allTakeovers: sumOf(scraper.total, "parley_lease_changes_total", 'parley_lease_change="takenOver"'),
      allDelivered: sumOf(
        scraper.total,
        "parley_webhook_delivery_duration_seconds_count",
        'parley_outcome="delivered"',
      ),
    });
  }
}

interface Counts {
  readonly agents: readonly {
    readonly agent: string;
    readonly paused: boolean;
    readonly states: Readonly<Partial<Record<TaskState, number>>>;
  }[];
  readonly queue: { readonly count: number };
  readonly runs: { readonly count: number };
}

async function listed(node: ClusterNode): Promise<number> {
  const ids = new Set<string>();
  for (let cursor = ""; ;) {
    const page = await ops<{ readonly tasks: readonly { readonly taskId: string }[]; readonly next?: string }>(
      node,
      `/v1/tasks?limit=500${cursor && `&cursor=${cursor}`}`,
    );
    for (const { taskId } of page.tasks) ids.add(taskId);
    if (page.next === undefined) return ids.size;
    cursor = page.next;
  }
}

async function whyOf(node: ClusterNode, { agent, taskId }: HeldTask): Promise<string> {
  const query = new URLSearchParams({ agent, taskId }).toString();
  return (await ops<{ readonly why: { readonly kind: string } }>(node, `/v1/why?${query}`)).why.kind;
}

/** Calls the operators' API of one node. */
async function ops<Answer>(node: ClusterNode, path: string, body?: object): Promise<Answer> {
  const posted = body && {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  };
  const response = await fetch(`http://127.0.0.1:${node.port}/ops${path}`, posted);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} of node ${node.name} answered ${response.status}: ${text}`);
  return JSON.parse(text) as Answer;
}

function missing(): never {
  throw new Error("There are no nodes");
}
