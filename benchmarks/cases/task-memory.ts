import type { Case } from "../case.ts";
import { inTurn } from "../rounds.ts";
import { question, sending, type Sending, warmups } from "./message.ts";

export const makesTask: Sending = { text: `task ${question}`, expect: "TASK_STATE_COMPLETED" };

export const taskMemoryCase: Case = {
  name: "task-memory",
  what: "SendMessage to a completed task with one artifact, in memory",
  operation: "a message",
  targets: [{ measure: "throughputToOfficial", says: "throughput to official in memory", atLeast: 5 }],
  why: "A task is three records, a head, a conversation, a key and their places in the lists: 3.3 kB are kept of each, 1.2 of them text, and a sixth of the time goes into copying that from one generation of the heap to the next. It was 5 kB; one answer in five was cut into two commits, and each was parsed from the records that were just written, where their text is now joined ([measurements](decisions/hot-path.md)). Another sixth is the write to the socket, which the bare server pays too; the rest is spread over functions of one or two in a hundred. In short runs, before the store is large, the target is met.",
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
