import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  connect,
  connectJsonRpc,
  type ConnectOptions,
  type EventStream,
  type WatchedTask,
} from "../../src/client/index.ts";
import { watchTask } from "../../src/client/watch.ts";
import { TaskFold } from "../../src/model/reduce.ts";
import {
  cardOf,
  chunkEvent,
  HandClock,
  jsonRpcAt,
  type RpcCall,
  rpcServer,
  soon,
  statusEvent,
  taskEvent,
  taskOf,
  until,
} from "./support.ts";

/* Tests in addition to the contract suite, which packages/node/test/watch.test.ts runs over a real server. */

async function agent(
  script: (call: RpcCall) => void | Promise<void>,
  streaming: boolean,
  options: ConnectOptions = {},
) {
  const server = await rpcServer(script);
  const card = cardOf([jsonRpcAt(server.url)], { capabilities: { streaming } });
  return { server, client: await connect(card, { ...soon, ...options }) };
}

const stateOf = ({ getSnapshot }: WatchedTask): string | undefined => getSnapshot().task?.status.state;

describe("client.watch() (A2A 1.0 §3.1.6)", () => {
  test("makes a snapshot when it is read, and not for each event", async () => {
    const made = vi.spyOn(TaskFold.prototype, "snapshot");
    onTestFinished(() => made.mockRestore());
    const ids = { taskId: "t1", contextId: "c1" };
    async function* events() {
      yield taskEvent("TASK_STATE_WORKING");
      for (let at = 0; at < 1000; at += 1) {
        const artifact = { artifactId: `a${at}`, parts: [{ text: `Artifact ${at}` }] };
        yield { artifactUpdate: { ...ids, artifact, lastChunk: true } };
      }
      yield { statusUpdate: { ...ids, status: { state: "TASK_STATE_COMPLETED" } } } as const;
    }
    const stream = Object.assign(events(), { seq: undefined, buffered: 0 }) as unknown as EventStream;
    const getTask = () => Promise.reject(new Error("It streams"));
    const card = cardOf([], { capabilities: { streaming: true } });
    const source = { card, getTask, subscribeToTask: () => stream };
    const watched = watchTask(source, "t1", {}, { clock: new HandClock() });
    let calls = 0;
    watched.subscribe(() => (calls += 1));
    await until(() => calls === 1002);
    expect(made.mock.calls.length).toBeLessThan(5);
    expect(watched.getSnapshot()).toMatchObject({ ended: true });
    expect(watched.getSnapshot().task?.artifacts).toHaveLength(1000);
    expect(watched.getSnapshot()).toBe(watched.getSnapshot());
  });

  test("polls with growing delays if the agent does not stream, until the task ends", async () => {
    const clock = new HandClock();
    let state: "TASK_STATE_WORKING" | "TASK_STATE_COMPLETED" = "TASK_STATE_WORKING";
    const { client, server } = await agent((call) => call.answer(taskOf(state)), false, { clock });
    const watched = client.watch("t1");
    const seen: unknown[] = [];
    watched.subscribe(() => seen.push(stateOf(watched)));
    // The first poll found a change, so the delay before the next poll does not grow.
    for (const delay of [500, 750, 1_125]) {
      await clock.armed(delay);
      clock.advance(delay);
    }
    await clock.armed(1_687.5);
    state = "TASK_STATE_COMPLETED";
    clock.advance(1_687.5);
    await until(() => watched.getSnapshot().ended);
    expect(seen).toEqual(["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    expect(new Set(server.methods())).toEqual(new Set(["GetTask"]));
    expect(clock.waiting).toBe(0);
  });

  test("polls if the card promises streams that the server does not have", async () => {
    const { client, server } = await agent((call) => {
      if (call.method === "SubscribeToTask") return call.fail(-32004, "No streams here");
      call.answer(taskOf("TASK_STATE_COMPLETED"));
    }, true);
    const watched = client.watch("t1");
    watched.subscribe(() => {});
    await until(() => watched.getSnapshot().ended);
    expect(stateOf(watched)).toBe("TASK_STATE_COMPLETED");
    expect(server.methods().slice(-1)).toEqual(["GetTask"]);
  });

  test("continues after a stream that ended at a question", async () => {
    const clock = new HandClock();
    const { client } = await agent(
      (call) => {
        call.events.send(taskEvent(call.number === 1 ? "TASK_STATE_INPUT_REQUIRED" : "TASK_STATE_COMPLETED"));
        call.events.end();
      },
      true,
      { clock },
    );
    const watched = client.watch("t1");
    watched.subscribe(() => {});
    await clock.armed(500);
    expect([stateOf(watched), watched.getSnapshot().ended]).toEqual(["TASK_STATE_INPUT_REQUIRED", false]);
    clock.advance(500);
    await until(() => watched.getSnapshot().ended);
    expect(stateOf(watched)).toBe("TASK_STATE_COMPLETED");
  });

  test("starts with the given task, and ignores repeated events", async () => {
    const { client } = await agent((call) => {
      call.events.send(taskEvent("TASK_STATE_WORKING", { metadata: JSON.parse('{ "__proto__": {}, "a": [1] }') }));
      call.events.send(statusEvent("TASK_STATE_COMPLETED"));
    }, true);
    const given = taskOf("TASK_STATE_WORKING", { metadata: JSON.parse('{ "__proto__": {}, "a": [1] }') });
    const watched = client.watch(given);
    const first = watched.getSnapshot();
    expect(first).toEqual({ task: given, ended: false });
    const seen: unknown[] = [];
    watched.subscribe(() => seen.push(watched.getSnapshot().task?.metadata));
    await until(() => watched.getSnapshot().ended);
    // The task at the start of the stream is unchanged, so the client reports only its end.
    expect(seen).toEqual([given.metadata]);
    expect(seen[0]).toBe(first.task?.metadata);
    expect(client.watch(taskOf("TASK_STATE_FAILED")).getSnapshot().ended).toBe(true);
  });

  test("reports events that arrive together once, and an abort as an error", async () => {
    const { client } = await agent((call) => {
      call.events.open();
      const events = [taskEvent(), chunkEvent("a", false), ...Array.from("bcdefgh", (text) => chunkEvent(text))];
      const lines = events.map((result) => `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n\n`);
      call.events.raw(lines.join(""));
    }, true);
    const abort = new AbortController();
    const watched = client.watch("t1", { signal: abort.signal });
    const texts: unknown[] = [];
    watched.subscribe(() => texts.push(watched.getSnapshot().task?.artifacts?.[0]?.parts[0]?.text));
    await until(() => texts.at(-1) === "abcdefgh");
    expect(texts.length).toBeLessThan(5);
    abort.abort();
    await until(() => watched.getSnapshot().ended);
    expect(watched.getSnapshot().error).toMatchObject({ code: "Aborted" });
  });

  test("calls the other listeners after one throws, and reports the error as uncaught", async () => {
    const thrown: unknown[] = [];
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", (error) => thrown.push(error));
    onTestFinished(() => {
      process.removeAllListeners("uncaughtException");
      for (const listener of others) process.on("uncaughtException", listener);
    });
    const { client } = await agent((call) => call.events.send(taskEvent("TASK_STATE_COMPLETED")), true);
    const watched = client.watch("t1");
    const mistake = new Error("A mistake of the listener");
    watched.subscribe(() => {
      throw mistake;
    });
    let called = 0;
    watched.subscribe(() => (called += 1));
    await until(() => thrown.length > 0);
    expect([called, thrown]).toEqual([1, [mistake]]);
    expect(watched.getSnapshot()).toMatchObject({ ended: true });
    expect(watched.getSnapshot().error).toBeUndefined();
  });

  test("is not bundled into clients that do not use it", async () => {
    const card = cardOf([jsonRpcAt("http://127.0.0.1:9")]);
    const client = await connectJsonRpc(card);
    expect(() => client.watch("t1")).toThrow(expect.objectContaining({ code: "UnsupportedOperation" }));
  });
});
