import type { Case } from "../case.ts";
import { inTurn } from "../rounds.ts";
import { question, sending, type Sending } from "./message.ts";

export const makesTask: Sending = { text: `task ${question}`, expect: "TASK_STATE_COMPLETED" };

export const taskMemoryCase: Case = {
  name: "task-memory",
  what: "SendMessage to a completed task with one artifact, in memory",
  operation: "a message",
  targets: [{ measure: "throughputToOfficial", says: "throughput to official in memory", atLeast: 5 }],
  why: "A task is three records, a head, a conversation, a key, and entries in the lists. 3.3 kB of it are kept, 1.2 kB of that as text. A sixth of the time goes into the garbage collector, which copies what is kept from the young to the old generation. Another sixth is the write to the socket, which the raw server has as well. The rest is spread over functions that take one or two hundredths each. [Hot path](decisions/hot-path.md) has the measurements.",
  async run(bench) {
    const [parley, official, raw, load] = await Promise.all([
      bench.server("parley"),
      bench.server("official"),
      bench.server("raw"),
      bench.load(),
    ]);
    const subjects = {
      parley: sending(bench, load, parley, makesTask),
      official: sending(bench, load, official, makesTask),
      raw: sending(bench, load, raw, makesTask),
    };
    return inTurn(bench.size(5, 3), subjects);
  },
};
