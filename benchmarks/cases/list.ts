import type { Bench, Load, Server } from "../bench.ts";
import { call, message, once, send } from "../calls.ts";
import { defined, ratio, type Case } from "../case.ts";
import { inTurn, type Subject } from "../rounds.ts";
import { requesting } from "./message.ts";
import { makesTask } from "./task-memory.ts";

interface Page {
  readonly tasks: readonly { readonly contextId: string; readonly status: { readonly timestamp: string } }[];
  readonly nextPageToken: string;
  readonly totalSize: number;
}

const few = 1_000;
const pageSize = 50;

async function filled(bench: Bench, tasks: number): Promise<Server> {
  const server = await bench.server("parley", "sqlite");
  const { task } = await once<{ task: { id: string } }>(server, "SendMessage", message("task"));
  // The size of a context does not depend on the total number of tasks.
  await server.fill({ template: task.id, count: tasks - 1, contexts: tasks / 100 });
  return server;
}

const list = (server: Server, params: object) => once<Page>(server, "ListTasks", { pageSize: 100, ...params });

/** The requests: the first page, the first page with each filter, and pages far down the list. */
async function questions(server: Server, tasks: number): Promise<Record<string, object>> {
  const first = await list(server, {});
  if (first.totalSize !== tasks) throw new Error(`the list has ${first.totalSize} tasks, not ${tasks}`);
  const asked: Record<string, object> = {
    first: {},
    byContext: { contextId: first.tasks.at(-1)?.contextId },
    byState: { status: "TASK_STATE_COMPLETED" },
  };
  let page = first;
  for (let seen = 100; page.nextPageToken !== ""; seen += 100) {
    if (seen === tasks / 2) {
      asked["byTime"] = { statusTimestampAfter: page.tasks.at(-1)?.status.timestamp };
      asked["half"] = { pageToken: page.nextPageToken };
    }
    if (seen >= tasks - 100) asked["deep"] = { pageToken: page.nextPageToken };
    page = await list(server, { pageToken: page.nextPageToken });
  }
  return asked;
}

function listing(bench: Bench, load: Load, server: Server, params: object | undefined): Subject {
  if (params === undefined) throw new Error("the list has no such page");
  return requesting(bench, load, server, call(server.jsonRpc, "ListTasks", { pageSize, ...params }), '"totalSize"');
}

async function run(bench: Bench): ReturnType<Case["run"]> {
  const many = bench.size(100_000, 15_000);
  bench.progress(`filling a store with ${many} tasks`);
  const [small, large, official, load] = await Promise.all([
    filled(bench, few),
    filled(bench, many),
    bench.server("official"),
    bench.load(),
  ]);
  const { text, expect } = makesTask;
  await load.requests({ request: send(official, text), expect, connections: 8, seconds: 20, most: few });
  const [ofSmall, ofLarge] = [await questions(small, few), await questions(large, many)];
  bench.progress("listing");
  const ask = (server: Server, params: object | undefined) => listing(bench, load, server, params);
  const figures = await inTurn(bench.size(3, 2), {
    parley: ask(small, ofSmall["first"]),
    official: ask(official, {}),
    first: ask(large, ofLarge["first"]),
    half: ask(large, ofLarge["half"]),
    deep: ask(large, ofLarge["deep"]),
    contextSmall: ask(small, ofSmall["byContext"]),
    context: ask(large, ofLarge["byContext"]),
    stateSmall: ask(small, ofSmall["byState"]),
    state: ask(large, ofLarge["byState"]),
    timeSmall: ask(small, ofSmall["byTime"]),
    time: ask(large, ofLarge["byTime"]),
  });
  return {
    parley: figures.parley,
    official: figures.official,
    also: {
      [`parley, ${many} tasks`]: figures.first,
      [`parley, ${many}, half way`]: figures.half,
      [`parley, ${many}, last pages`]: figures.deep,
      [`parley, ${few}, by context`]: figures.contextSmall,
      [`parley, ${many}, by context`]: figures.context,
      [`parley, ${few}, by state`]: figures.stateSmall,
      [`parley, ${many}, by state`]: figures.state,
      [`parley, ${few}, by time`]: figures.timeSmall,
      [`parley, ${many}, by time`]: figures.time,
    },
    measures: defined({
      size: ratio(figures.first.cpu, figures.parley.cpu),
      depth: ratio(Math.max(figures.half.cpu ?? 0, figures.deep.cpu ?? 0), figures.first.cpu),
      sizeByContext: ratio(figures.context.cpu, figures.contextSmall.cpu),
      sizeByState: ratio(figures.state.cpu, figures.stateSmall.cpu),
      sizeByTime: ratio(figures.time.cpu, figures.timeSmall.cpu),
    }),
    notes: [`The rows parley and official list ${few} tasks, Parley on SQLite, official in memory.`],
  };
}

export const listCase: Case = {
  name: "list",
  what: `ListTasks, pages of ${pageSize} with totalSize`,
  operation: "a page",
  targets: [
    { measure: "throughputToOfficial", says: `throughput to official in memory at ${few} tasks`, atLeast: 5 },
    { measure: "size", says: "CPU among many tasks to that among 1,000", atMost: 1.3 },
    { measure: "depth", says: "CPU of deep pages to that of the first", atMost: 1.3 },
    { measure: "sizeByContext", says: "by context: many tasks to 1,000", atMost: 1.3 },
    { measure: "sizeByState", says: "by state: many tasks to 1,000", atMost: 1.3 },
    { measure: "sizeByTime", says: "by time: many tasks to 1,000", atMost: 1.3 },
  ],
  why: "A page of tasks that did not change takes one statement along the index, and joins 50 texts. The first request for a page takes five times as much, because each task is assembled from its log. The rest is the index, the counters, and an answer of 25 kB. With `statusTimestampAfter` there is no counter for `totalSize`: the number of older tasks is remembered, and the tasks of the last moments are counted, 20 ns each. After a sweep, or when old tasks continue, all are counted again.",
  run,
};
