import type { Bench } from "../bench.ts";
import { ratio, defined, type Case, type Figures } from "../case.ts";
import { inTurn, type Subject } from "../rounds.ts";
import type { FloorRound } from "../servers/sqlite-floor.ts";
import { sending } from "./message.ts";
import { makesTask } from "./task-memory.ts";

/** The statements of as many tasks, alone in a loop: what SQLite takes and nothing else. */
async function bareStatements(bench: Bench): Promise<Subject> {
  const floor = await bench.child("servers/sqlite-floor", [bench.file(".db")]);
  const measure = async (): Promise<Figures> => {
    const { tasks, seconds, cpu } = await floor.ask<FloorRound>("run");
    return { throughput: tasks / seconds, cpu: cpu / tasks };
  };
  const warmUp = async (): Promise<void> => {
    for (let tasks = 0; tasks < bench.warmUp.most;) tasks += (await floor.ask<FloorRound>("run")).tasks;
  };
  return { measure, warmUp };
}

export const taskSqliteCase: Case = {
  name: "task-sqlite",
  what: "SendMessage to a completed task with one artifact, on SQLite",
  operation: "a message",
  targets: [
    {
      measure: "throughputToOfficialMemory",
      says: "throughput to official in memory",
      atLeast: 4,
    },
    {
      measure: "throughputToOfficial",
      says: "throughput to official on SQLite",
      atLeast: 12,
    },
    { measure: "cpuToOlderNode", says: "CPU to that on the older Node", atMost: 1, acrossNodes: true },
  ],
  why: "SQLite runs in a thread of its own, and that thread is the limit. It writes a row for the task, a row for each of three records, one for the conversation, one for the key that makes a retry safe, and their indexes for lists by owner, context and state. These did not help: other page sizes, a larger cache, later checkpoints, checkpoints on a connection of their own, flat arrays between the threads, sixteen transactions at a time, `synchronous = NORMAL`. Statements of sixteen rows took off a quarter. One row for all records of an append would take off a tenth more by estimate, and every reader of a log by `seq` would pay for it.",
  async run(bench) {
    const [parley, official, officialMemory, raw, load] = await Promise.all([
      bench.server("parley", "sqlite"),
      bench.server("official", "sqlite"),
      bench.server("official"),
      bench.server("raw"),
      bench.load(),
    ]);
    const subjects = {
      floor: await bareStatements(bench),
      parley: sending(bench, load, parley, makesTask),
      official: sending(bench, load, official, makesTask),
      memory: sending(bench, load, officialMemory, makesTask),
      raw: sending(bench, load, raw, makesTask),
    };
    const { memory, floor, ...rest } = await inTurn(bench.size(5, 3), subjects);
    return {
      ...rest,
      also: { "official, in memory": memory, "SQLite alone": floor },
      notes: [
        "SQLite alone runs the statements of Parley's store again, with their values, sixteen tasks in a transaction: no server, no thread, no other code.",
      ],
      measures: defined({
        throughputToOfficialMemory: ratio(rest.parley.throughput, memory.throughput),
        cpuToFloor: ratio(rest.parley.cpu, floor.cpu),
      }),
    };
  },
};
