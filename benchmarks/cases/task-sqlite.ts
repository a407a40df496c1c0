import { ratio, defined, type Case } from "../case.ts";
import { inTurn } from "../rounds.ts";
import { sending, warmups } from "./message.ts";
import { makesTask } from "./task-memory.ts";

export const taskSqliteCase: Case = {
  name: "task-sqlite",
  what: "SendMessage to a completed task with one artifact, on SQLite",
  operation: "a message",
  targets: [
    { measure: "throughputToOfficialMemory", says: "throughput to official in memory", atLeast: 4 },
    { measure: "throughputToOfficial", says: "throughput to official on SQLite", atLeast: 12 },
  ],
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
