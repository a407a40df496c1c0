import { A2AError } from "@parley/a2a/internal/model/index";
import type { Interceptor } from "@parley/a2a/internal/protocol/index";
import {
  before,
  chunksIn,
  errorOf,
  eventsOf,
  itemsOf,
  lastState,
  obedient,
  saying,
  signal,
  until,
  type ContractCases,
  type Served,
} from "./given.ts";

const texts = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at));

async function waiting(served: Served): Promise<string> {
  const { task } = await served.call("SendMessage", { ...saying("wait"), configuration: { returnImmediately: true } });
  return task?.id ?? "";
}

/** Streams (A2A 1.0 §3.1.2, §3.1.6). */
export const streamCases: ContractCases = {
  "a stream sends the task, then each event once and in order, and ends with the task": async ({ serve, expect }) => {
    const events = await eventsOf((await serve()).stream("SendStreamingMessage", saying("chunks 50")));
    expect(events[0]?.task === undefined).toEqual(false);
    expect(chunksIn(events)).toEqual(texts(50));
    expect(lastState(events)).toEqual("TASK_STATE_COMPLETED");
  },

  "a stream with a direct reply has only that message": async ({ serve, expect }) => {
    const events = await eventsOf((await serve()).stream("SendStreamingMessage", saying("reply")));
    expect(events.map(({ message }) => message?.parts)).toEqual([[{ text: "Obedient: reply" }]]);
  },

  "a stream ends when the task asks for input": async ({ serve, expect }) => {
    const events = await eventsOf((await serve()).stream("SendStreamingMessage", saying("ask")));
    expect(lastState(events)).toEqual("TASK_STATE_INPUT_REQUIRED");
  },

  "a subscription starts with the current task and follows it to its end": async ({ serve, expect }) => {
    const go = signal();
    const served = await serve({ agents: obedient(go.given) });
    const id = await waiting(served);
    const subscribed = await served.stream("SubscribeToTask", { id });
    go.give();
    const events = await eventsOf(subscribed);
    expect(events[0]?.task?.id).toEqual(id);
    expect(lastState(events)).toEqual("TASK_STATE_COMPLETED");
  },

  "all streams of a task send the same events": async ({ serve, expect }) => {
    const go = signal();
    const served = await serve({ agents: obedient(go.given) });
    const id = await waiting(served);
    const streams = await Promise.all([1, 2, 3].map(() => served.stream("SubscribeToTask", { id })));
    go.give();
    const states = await Promise.all(streams.map(async (stream) => lastState(await eventsOf(stream))));
    expect(states).toEqual(states.map(() => "TASK_STATE_COMPLETED"));
  },

  "an invalid request fails before a stream opens": async ({ serve, expect }) => {
    const served = await serve();
    expect((await errorOf(served.stream("SubscribeToTask", { id: "nobody" }))).code).toEqual("TaskNotFound");
    // Before 1.0 the stream of an ended task contains only the task.
    if (served.version < "1") return;
    const { task } = await served.call("SendMessage", saying("chunks 1"));
    const ended = await errorOf(served.stream("SubscribeToTask", { id: task?.id ?? "" }));
    expect(ended.code).toEqual("UnsupportedOperation");
  },

  "a large event arrives whole": async ({ serve, expect }) => {
    const events = await eventsOf((await serve()).stream("SendStreamingMessage", saying("large 600000")));
    expect(chunksIn(events).map((text) => text?.length)).toEqual([600_000]);
  },

  "an agent that throws fails its task without revealing the error": async ({ serve, expect }) => {
    const events = await eventsOf((await serve()).stream("SendStreamingMessage", saying("throw")));
    expect(lastState(events)).toEqual("TASK_STATE_FAILED");
    expect(JSON.stringify(events).includes("secret")).toEqual(false);
  },

  "a stream that fails on the server ends with its error, after the events before it": async ({ serve, expect }) => {
    const breaking: Interceptor = (next) => ({
      call: (operation, request, context) => next.call(operation, request, context),
      async stream(operation, request, context) {
        const { batches } = await next.stream(operation, request, context);
        const broken = async function* () {
          for await (const batch of batches) {
            yield batch.slice(0, 1);
            throw new A2AError("UnsupportedOperation", "No further", { cause: new Error("secret") });
          }
        };
        return { batches: broken() };
      },
    });
    const served = await serve({ options: { interceptors: [breaking] } });
    const { batches } = await served.stream("SendStreamingMessage", saying("chunks 3"));
    let seen = 0;
    const error = await errorOf(
      (async () => {
        for await (const batch of batches) seen += batch.length;
      })(),
    );
    expect([seen, error.code]).toEqual([1, "UnsupportedOperation"]);
    // Some peers expect the error's name before its text.
    expect(error.message.endsWith("No further")).toEqual(true);
  },

  "a client that leaves a stream releases it, and the task continues": async ({ serve }) => {
    const left = signal();
    const watched: Interceptor = (next) => ({
      call: (operation, request, context) => next.call(operation, request, context),
      async stream(operation, request, context) {
        const { batches } = await next.stream(operation, request, context);
        const seen = async function* () {
          try {
            yield* batches;
          } finally {
            left.give();
          }
        };
        return { batches: seen() };
      },
    });
    const go = signal();
    const served = await serve({ agents: obedient(go.given), options: { interceptors: [watched] } });
    const { batches } = await served.stream("SendStreamingMessage", saying("wait"));
    let id = "";
    for await (const [first] of batches) {
      id = first?.payload.value.task?.id ?? "";
      break;
    }
    go.give();
    await until(async () => (await served.call("GetTask", { id })).status.state === "TASK_STATE_COMPLETED");
    await left.given;
  },

  "an aborted call rejects immediately and aborts on the server": async ({ serve, expect }) => {
    let gone: AbortSignal | undefined;
    const seeing = before((operation, { signal: seen }) => {
      if (operation === "SendMessage") gone = seen;
    });
    const served = await serve({ options: { interceptors: [seeing] } });
    const controller = new AbortController();
    const error = errorOf(served.call("SendMessage", saying("wait"), { signal: controller.signal }));
    await until(() => gone !== undefined);
    controller.abort();
    expect((await error).code).toEqual("Aborted");
    await until(() => gone?.aborted === true);
  },
};

/** For bindings whose events have a position in the log. */
export const resumeCases: ContractCases = {
  "a stream resumes after the last event that the client received": async ({ serve, expect }) => {
    const go = signal();
    const served = await serve({ agents: obedient(go.given) });
    const id = await waiting(served);
    const first = await served.stream("SubscribeToTask", { id });
    go.give();
    const all = await itemsOf(first);
    const { seq: after } = all[0] ?? {};
    expect(typeof after).toEqual("number");
    const rest = await itemsOf(await served.stream("SubscribeToTask", { id }, { after }));
    expect(rest.map(({ seq }) => seq)).toEqual(all.slice(1).map(({ seq }) => seq));
    expect(rest.map(({ payload }) => payload.value)).toEqual(all.slice(1).map(({ payload }) => payload.value));
  },
};
