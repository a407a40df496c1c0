import type { Bench } from "../bench.ts";
import { ratio, defined, type Case, type Figures } from "../case.ts";
import { inTurn } from "../rounds.ts";
import type { FloorRound } from "../servers/sqlite-floor.ts";
import { sending } from "./message.ts";
import { makesTask } from "./task-memory.ts";

/** V8 of Node 24 optimizes a function after 3,000 calls: a server is warm after some 12,000 tasks. */
const warmups = 5;

/** The statements of as many tasks, alone in a loop: what SQLite takes and nothing else. */
async function bareStatements(bench: Bench): Promise<() => Promise<Figures>> {
  const floor = await bench.child("servers/sqlite-floor", [bench.file(".db")]);
  return async () => {
    const { tasks, seconds, cpu } = await floor.ask<FloorRound>("run");
    return { throughput: tasks / seconds, cpu: cpu / tasks };
  };
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
  ],
  why: "SQLite itself takes 50 to 80 µs a task, in a thread of its own, a sixth of it waiting for the disk: a row for the task, one for each of three records, one for its conversation, one for the key that makes a retry safe, and their indexes, for lists by owner, context and state. That thread is the limit. Tried without a gain: other page sizes, a larger cache, later checkpoints, checkpoints on a connection of their own, flat arrays between the threads, sixteen transactions under way, `synchronous = NORMAL`. What a transaction adds goes down in statements of sixteen rows, which took off a quarter; fewer indexes gain 1 µs each and keys in another layout nothing. One row for all records of an append would, by estimate, take off a tenth more, and everything that reads a log by its `seq` would pay for it.",
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
    const { memory, floor, ...rest } = await inTurn(bench.size(5, 3), subjects, warmups);
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
