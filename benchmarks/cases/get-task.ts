import type { Bench, Load, Server } from "../bench.ts";
import { call, message, once } from "../calls.ts";
import { defined, ratio, type Case } from "../case.ts";
import { inTurn, type Subject } from "../rounds.ts";
import { requesting } from "./message.ts";

interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly history?: readonly unknown[];
}

const messages = 100;

/** Creates a task with a long history: the agent asks for input repeatedly. */
async function longTask(server: Server): Promise<Task> {
  const ask = async (more: object): Promise<Task> => {
    const { message: content } = message("ask and wait for what comes") as { message: object };
    const { task } = await once<{ task: Task }>(server, "SendMessage", { message: { ...content, ...more } });
    return task;
  };
  const { id: taskId, contextId } = await ask({});
  for (let turn = 0; turn < messages; turn++) {
    const { history = [] } = await once<Task>(server, "GetTask", { id: taskId });
    if (history.length >= messages) return { id: taskId, contextId, history };
    await ask({ taskId, contextId });
  }
  throw new Error("the history did not reach the wanted length");
}

async function run(bench: Bench): ReturnType<Case["run"]> {
  const [parley, memory, official, raw, load] = await Promise.all([
    bench.server("parley", "sqlite"),
    bench.server("parley"),
    bench.server("official"),
    bench.server("raw"),
    bench.load(),
  ]);
  const subject = async (server: Server): Promise<Record<"all" | "none" | "short", Subject>> => {
    const long = await longTask(server);
    const { task } = await once<{ task: Task }>(server, "SendMessage", message("task"));
    const get = (params: object) => getting(bench, load, server, params);
    return {
      all: get({ id: long.id }),
      none: get({ id: long.id, historyLength: 0 }),
      short: get({ id: task.id, historyLength: 0 }),
    };
  };
  const [ours, inMemory, theirs] = [await subject(parley), await subject(memory), await subject(official)];
  const subjects = {
    parley: ours.none,
    official: theirs.none,
    raw: getting(bench, load, raw, message("reply")),
    short: ours.short,
    all: ours.all,
    officialAll: theirs.all,
    memory: inMemory.none,
    memoryAll: inMemory.all,
  };
  const figures = await inTurn(bench.size(3, 2), subjects);
  return {
    parley: figures.parley,
    official: figures.official,
    raw: figures.raw,
    also: {
      "parley, a task without history": figures.short,
      "parley, all messages": figures.all,
      "official, all messages": figures.officialAll,
      "parley in memory": figures.memory,
      "parley in memory, all messages": figures.memoryAll,
    },
    measures: defined({
      costToShort: ratio(figures.parley.cpu, figures.short.cpu),
      allToOfficial: ratio(figures.all.throughput, figures.officialAll.throughput),
    }),
    notes: [`The rows parley and official request no history of a task with ${messages} messages, Parley on SQLite.`],
  };
}

function getting(bench: Bench, load: Load, server: Server, params: object): Subject {
  return requesting(bench, load, server, call(server.jsonRpc, "GetTask", params), '"result"');
}

export const getTaskCase: Case = {
  name: "get-task",
  what: `GetTask of a task with ${messages} messages`,
  operation: "a request",
  targets: [
    { measure: "costToShort", says: "CPU with historyLength 0 to that of a task without history", atMost: 1.2 },
    { measure: "allToOfficial", says: "throughput to official in memory, all messages", atLeast: 3 },
  ],
  why: "An unchanged task is cached as text: only its row is read again, its 15 kB go to the socket unchanged, and nothing is parsed. The first request assembles the history message by message: SQLite reads a hundred rows, and the messages are cut out of them without a parser.",
  run,
};
