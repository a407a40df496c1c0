import type { Case } from "../case.ts";
import { inTurn } from "../rounds.ts";
import { question, sending, type Sending, warmups } from "./message.ts";

export const makesTask: Sending = { text: `task ${question}`, expect: "TASK_STATE_COMPLETED" };

export const taskMemoryCase: Case = {
  name: "task-memory",
  what: "SendMessage to a completed task with one artifact, in memory",
  operation: "a message",
  targets: [{ measure: "throughputToOfficial", says: "throughput to official in memory", atLeast: 5 }],
  why: "A task is three records, a head, a conversation, a key and their places in the lists: what is kept grows by some 3 kB a task, and half of the time is garbage of it and its copies. The answer is parsed from the records that were just written, folded and written again, a fifth of the CPU: joining their text instead is the next step. In short runs, before the store is large, the target is met.",
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
    return inTurn(bench.size(5, 3), subjects, warmups);
  },
};
