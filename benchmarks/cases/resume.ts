import { call, once, sendStreaming } from "../calls.ts";
import { defined, type Case } from "../case.ts";
import type { Request } from "../load/http.ts";
import { summary } from "../load/latencies.ts";

interface Page {
  readonly tasks: readonly { readonly id: string }[];
}

export const resumeCase: Case = {
  name: "resume",
  what: "Resuming a long stream in its middle, on SQLite",
  operation: "the first event",
  targets: [
    {
      measure: "first",
      says: "p99 until the first missed event",
      unit: "ms",
      atMost: 20,
    },
  ],
  async run(bench) {
    const [parley, raw, load] = await Promise.all([
      bench.server("parley", "sqlite"),
      bench.server("raw"),
      bench.load(),
    ]);
    const chunks = bench.size(100_000, 20_000);
    const times = bench.size(50, 20);
    await load.stream({ request: sendStreaming(parley, `stream ${chunks} 1`), chunks, seconds: 60, ends: false });
    const { tasks } = await once<Page>(parley, "ListTasks", {});
    const headers = { "last-event-id": String(chunks / 2) };
    const subscribe = { ...call(parley.jsonRpc, "SubscribeToTask", { id: tasks[0]?.id }), headers };
    const firsts = async (request: Request) => {
      const found: number[] = [];
      for (let time = 0; time < times; time++) {
        found.push((await load.stream({ request, chunks: 1, seconds: 10, ends: false })).first);
      }
      return summary(found);
    };
    const figures = { parley: await firsts(subscribe), raw: await firsts(sendStreaming(raw, "stream 1000 0")) };
    return {
      ...figures,
      measures: defined({ first: figures.parley.p99 }),
      notes: [`From the request until the event after chunk ${chunks / 2} of ${chunks}; raw begins a new stream.`],
    };
  },
};
