import type { Bench } from "../bench.ts";
import { ratio, defined, type Case, type Figures } from "../case.ts";
import { inTurn, type Subject } from "../rounds.ts";
import type { FloorRound } from "../servers/sqlite-floor.ts";
import { sending } from "./message.ts";
import { makesTask } from "./task-memory.ts";

/** The statements of the same number of tasks in a loop, which shows SQLite's cost alone. */
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
  why: "The row SQLite alone has the part of SQLite: a row for the task, a row for each of three records, one for the conversation, one for the key that makes a retry safe, and their indexes for lists by owner, context and state. It is more than half of what the store takes; cloning the items for the thread that writes is most of the rest ([measurements](decisions/sqlite-thread.md)). On a machine without a free core the thread costs more CPU than it saves, but no request waits for the disk. These did not help: other page sizes, a larger cache, later checkpoints, checkpoints on a connection of their own, sixteen transactions at a time, `synchronous = NORMAL`. Statements of sixteen rows took off a quarter. By estimate one row for all records of an append would take off a tenth more, and every reader of a log by `seq` would pay for it; text instead of objects for the thread would take off a twentieth.",
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
