import { ratio, defined, type Case } from "../case.ts";
import { inTurn } from "../rounds.ts";
import { sending, warmups } from "./message.ts";
import { makesTask } from "./task-memory.ts";

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
      parley: sending(bench, load, parley, makesTask),
      official: sending(bench, load, official, makesTask),
      memory: sending(bench, load, officialMemory, makesTask),
      raw: sending(bench, load, raw, makesTask),
    };
    const { memory, ...rest } = await inTurn(bench.size(5, 3), subjects, warmups);
    return {
      ...rest,
      also: { "official, in memory": memory },
      measures: defined({ throughputToOfficialMemory: ratio(rest.parley.throughput, memory.throughput) }),
    };
  },
};
