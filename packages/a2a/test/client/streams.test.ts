import { describe, expect, test } from "vitest";
import { connect, type ConnectOptions } from "../../src/client/index.ts";
import { A2AError, type AgentCapabilities, type StreamResponse } from "../../src/model/index.ts";
import {
  cardOf,
  chunkEvent,
  glance,
  glances,
  HandClock,
  jsonRpcAt,
  replayExtensions,
  resendExtensions,
  type RpcCall,
  rpcServer,
  soon,
  statusEvent,
  taskEvent,
  taskOf,
  until,
} from "./support.ts";

async function agent(
  script: (call: RpcCall) => void | Promise<void>,
  capabilities: AgentCapabilities = {},
  options: ConnectOptions = {},
) {
  const server = await rpcServer(script);
  const card = cardOf([jsonRpcAt(server.url)], { capabilities: { streaming: true, ...capabilities } });
  return { server, client: await connect(card, { ...soon, ...options }) };
}

async function failure(stream: AsyncIterable<StreamResponse>): Promise<{ seen: string[]; error: A2AError }> {
  const seen: string[] = [];
  try {
    for await (const event of stream) seen.push(glance(event));
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    return { seen, error: thrown };
  }
  throw new Error(`the stream ended well after ${seen.join(", ")}`);
}

describe("the end of a stream (A2A 1.0 §3.1.2)", () => {
  test("is a terminal state, even if the server leaves the connection open", async () => {
    const { client } = await agent(({ events }) => {
      events.send(taskEvent());
      events.send(chunkEvent("a", false));
      events.send(statusEvent("TASK_STATE_COMPLETED"));
      events.send(chunkEvent("late"));
    });
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task WORKING", "a", "COMPLETED"]);
  });

  test("is a message, and on a send input-required", async () => {
    const { client } = await agent(({ number, events }) => {
      if (number === 1) events.send({ message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hi" }] } });
      else {
        events.send(taskEvent());
        events.send(statusEvent("TASK_STATE_INPUT_REQUIRED"));
      }
    });
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["message"]);
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task WORKING", "INPUT_REQUIRED"]);
  });

  test("is not the old state of an interrupted task that gets an answer", async () => {
    const { client } = await agent(({ events }) => {
      events.send(taskEvent("TASK_STATE_INPUT_REQUIRED"));
      events.send(statusEvent("TASK_STATE_WORKING"));
      events.send(statusEvent("TASK_STATE_COMPLETED"));
    });
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task INPUT_REQUIRED", "WORKING", "COMPLETED"]);
  });

  test("is auth-required if the server closes there, as some do (§11.7)", async () => {
    const { client, server } = await agent(({ events }) => {
      events.send(taskEvent());
      events.send(statusEvent("TASK_STATE_AUTH_REQUIRED"));
      events.end();
    });
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task WORKING", "AUTH_REQUIRED"]);
    expect(server.methods()).toEqual(["SendStreamingMessage"]);
  });

  test("is not input-required on a subscription (§3.1.6)", async () => {
    const { client } = await agent(({ events }) => {
      events.send(taskEvent("TASK_STATE_INPUT_REQUIRED"));
      events.send(statusEvent("TASK_STATE_WORKING"));
      events.send(statusEvent("TASK_STATE_COMPLETED"));
    });
    expect(await glances(client.subscribeToTask("t1"))).toEqual(["task INPUT_REQUIRED", "WORKING", "COMPLETED"]);
  });

  test("of a finished task is its final state, whatever code the server rejects with", async () => {
    for (const code of [-32004, -32602, -32001]) {
      const { client } = await agent((call) => {
        if (call.method === "GetTask") call.answer(taskOf("TASK_STATE_FAILED"));
        else call.fail(code, "over");
      });
      expect(await glances(client.subscribeToTask("t1"))).toEqual(["task FAILED"]);
    }
  });

  test("of a finished task is its final state, even if the server closes without an event", async () => {
    const { client, server } = await agent((call) => {
      if (call.method === "GetTask") return call.answer(taskOf("TASK_STATE_COMPLETED"));
      call.events.open();
      call.events.end();
    }, replayExtensions);
    expect(await glances(client.subscribeToTask("t1", { after: 9 }))).toEqual(["task COMPLETED"]);
    expect(server.methods()).toEqual(["SubscribeToTask", "GetTask"]);
  });

  test("stays an error if the task is not finished, or does not exist", async () => {
    const working = await agent((call) => {
      if (call.method === "GetTask") call.answer(taskOf("TASK_STATE_WORKING"));
      else call.fail(-32004, "no streams");
    });
    expect((await failure(working.client.subscribeToTask("t1"))).error.code).toBe("UnsupportedOperation");
    const gone = await agent((call) => call.fail(-32001, "none"));
    expect((await failure(gone.client.subscribeToTask("t1"))).error.code).toBe("TaskNotFound");
  });
});

describe("a stream that breaks, if the card promises replay", () => {
  const log: StreamResponse[] = [
    taskEvent(),
    chunkEvent("a", false),
    chunkEvent("b"),
    chunkEvent("c"),
    statusEvent("TASK_STATE_COMPLETED"),
  ];

  function replay({ headers, events }: RpcCall, to: number): void {
    const after = Number(headers["last-event-id"] ?? 0);
    events.open();
    for (let seq = after + 1; seq <= Math.min(to, log.length); seq++) events.send(log[seq - 1] as StreamResponse, seq);
  }

  test.each(["drop", "end"] as const)("continues after the last event when the connection ends by %s", async (how) => {
    const { client, server } = await agent((call) => {
      replay(call, server.calls.length * 2);
      call.events[how]();
    }, replayExtensions);
    const stream = client.sendStreamingMessage("go");
    expect(await glances(stream)).toEqual(["task WORKING", "a", "b", "c", "COMPLETED"]);
    expect(stream.seq).toBe(5);
    expect(server.methods()).toEqual(["SendStreamingMessage", "SubscribeToTask", "SubscribeToTask"]);
    expect(server.calls.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "2", "4"]);
    expect(server.calls[1]?.params).toEqual({ id: "t1" });
  });

  test("continues after an event that was cut in the middle", async () => {
    const { client } = await agent((call) => {
      if (call.method === "SendStreamingMessage") {
        replay(call, 2);
        call.events.raw('id: 3\ndata: {"jsonrpc":"2.0","id":1,"result":{"artifactUp');
        call.events.drop();
      } else replay(call, 5);
    }, replayExtensions);
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task WORKING", "a", "b", "c", "COMPLETED"]);
  });

  test("drops duplicate events of the server", async () => {
    const { client } = await agent((call) => {
      if (call.method === "SendStreamingMessage") {
        for (const seq of [1, 2, 2, 1]) call.events.send(log[seq - 1] as StreamResponse, seq);
        call.events.drop();
      } else {
        for (const seq of [2, 3, 3, 4, 2, 5]) call.events.send(log[seq - 1] as StreamResponse, seq);
      }
    }, replayExtensions);
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task WORKING", "a", "b", "c", "COMPLETED"]);
  });

  test("continues from the current task if the server cannot continue after the event", async () => {
    const { client, server } = await agent((call) => {
      if (call.method === "SendStreamingMessage") {
        replay(call, 3);
        call.events.drop();
      } else if (call.number === 1) {
        call.events.send(taskEvent("TASK_STATE_WORKING"), 2);
        call.events.drop();
      } else replay(call, 5);
    }, replayExtensions);
    expect(await glances(client.sendStreamingMessage("go"))).toEqual([
      "task WORKING",
      "a",
      "b",
      "task WORKING",
      "b",
      "c",
      "COMPLETED",
    ]);
    expect(server.calls[2]?.headers["last-event-id"]).toBe("2");
  });

  test("continues while the task of a subscription is interrupted", async () => {
    const { client, server } = await agent((call) => {
      if (call.number === 1) {
        call.events.send(taskEvent("TASK_STATE_INPUT_REQUIRED"), 4);
        call.events.end();
      } else call.events.send(statusEvent("TASK_STATE_CANCELED"), 5);
    }, replayExtensions);
    expect(await glances(client.subscribeToTask("t1"))).toEqual(["task INPUT_REQUIRED", "CANCELED"]);
    expect(server.calls[1]?.headers["last-event-id"]).toBe("4");
  });

  test("continues with the current task if its events have no numbers, as over gRPC of 0.3", async () => {
    const { client, server } = await agent(({ number, events }) => {
      if (number === 1) {
        events.send(statusEvent("TASK_STATE_INPUT_REQUIRED"));
        events.end();
      } else {
        events.send(taskEvent("TASK_STATE_INPUT_REQUIRED"));
        events.send(statusEvent("TASK_STATE_CANCELED"));
      }
    }, replayExtensions);
    const seen = await glances(client.subscribeToTask("t1", { after: 1 }));
    expect(seen).toEqual(["INPUT_REQUIRED", "task INPUT_REQUIRED", "CANCELED"]);
    expect(server.calls.map(({ headers }) => headers["last-event-id"])).toEqual(["1", undefined]);
  });

  test("begins after the event number that its caller kept from an earlier stream", async () => {
    const { client, server } = await agent((call) => replay(call, 5), replayExtensions);
    expect(await glances(client.subscribeToTask("t1", { after: 3 }))).toEqual(["c", "COMPLETED"]);
    expect(server.calls[0]?.headers["last-event-id"]).toBe("3");
  });
});

describe("a stream that breaks, if the card does not promise replay", () => {
  test("continues with the current task, and does not use event ids", async () => {
    const { client, server } = await agent((call) => {
      if (call.method === "SendStreamingMessage") {
        call.events.send(taskEvent(), 1);
        call.events.send(chunkEvent("a", false), 1);
        call.events.send(chunkEvent("b"), 1);
        call.events.drop();
      } else {
        call.events.send(taskEvent("TASK_STATE_WORKING"), 1);
        call.events.send(statusEvent("TASK_STATE_COMPLETED"), 1);
      }
    });
    const seen = await glances(client.sendStreamingMessage("go"));
    expect(seen).toEqual(["task WORKING", "a", "b", "task WORKING", "COMPLETED"]);
    expect(server.calls[1]?.headers["last-event-id"]).toBeUndefined();
    expect(await glances(client.subscribeToTask("t1", { after: 7 }))).toHaveLength(2);
    expect(server.calls[2]?.headers["last-event-id"]).toBeUndefined();
  });

  test.each([-32004, -32602, -32001])("yields the final task if it ended meanwhile (%i)", async (code) => {
    const { client } = await agent((call) => {
      if (call.method === "SendStreamingMessage") {
        call.events.send(taskEvent());
        call.events.drop();
      } else if (call.method === "SubscribeToTask") call.fail(code, "over");
      else call.answer(taskOf("TASK_STATE_COMPLETED"));
    });
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task WORKING", "task COMPLETED"]);
  });

  test("ends with a snapshot in a state that ends a send", async () => {
    const { client } = await agent((call) => {
      call.events.send(
        taskEvent(call.method === "SubscribeToTask" ? "TASK_STATE_INPUT_REQUIRED" : "TASK_STATE_WORKING"),
      );
      if (call.method === "SendStreamingMessage") call.events.drop();
    });
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task WORKING", "task INPUT_REQUIRED"]);
  });

  test("distinguishes a task that does not exist from a finished one", async () => {
    const { client } = await agent((call) => {
      if (call.method === "SendStreamingMessage") {
        call.events.send(taskEvent());
        call.events.drop();
      } else call.fail(-32001, "purged");
    });
    const { seen, error } = await failure(client.sendStreamingMessage("go"));
    expect(seen).toEqual(["task WORKING"]);
    expect(error.code).toBe("TaskNotFound");
  });

  test("throws ConnectionLost when its budget is spent, never a runtime error", async () => {
    const { client, server } = await agent(
      (call) => {
        if (call.method === "SendStreamingMessage") call.events.send(taskEvent());
        call.events.drop();
      },
      {},
      { reconnect: { budget: 50, minDelay: 1, maxDelay: 50 }, retry: false },
    );
    const { seen, error } = await failure(client.sendStreamingMessage("go"));
    expect(seen).toEqual(["task WORKING"]);
    expect(["ConnectionLost", "ConnectionFailed"]).toContain(error.code);
    const [first, ...others] = server.methods();
    expect(first).toBe("SendStreamingMessage");
    expect(new Set(others)).toEqual(new Set(["SubscribeToTask"]));
    expect(error.message).toMatch(new RegExp(`gave up after ${server.calls.length} attempts in \\d`));
  });

  test("throws ConnectionLost if a stream closes at an active task and must not reconnect", async () => {
    const { client } = await agent(
      ({ events }) => {
        events.send(taskEvent());
        events.end();
      },
      {},
      { reconnect: false },
    );
    const { seen, error } = await failure(client.sendStreamingMessage("go"));
    expect(seen).toEqual(["task WORKING"]);
    expect(error.code).toBe("ConnectionLost");
  });

  test("restarts its budget with each new event", async () => {
    const { client, server } = await agent(
      (call) => {
        if (call.number === 9) call.events.send(statusEvent("TASK_STATE_COMPLETED"));
        else {
          call.events.send(taskEvent());
          call.events.send(chunkEvent("x"));
          call.events.drop();
        }
      },
      {},
      { reconnect: { budget: 1_000, minDelay: 1, maxDelay: 2 } },
    );
    await glances(client.subscribeToTask("t1"));
    expect(server.calls).toHaveLength(9);
  });
});

test("a stream whose connections bring only the task restarts its budget if the task has grown", async () => {
  const attempts: number[] = [];
  const { client } = await agent(
    ({ number, events }) => {
      // The task grows twice, and then remains the same.
      const artifacts = [1, 2, 3].slice(0, number).map((at) => ({ artifactId: `a${at}`, parts: [{ text: "x" }] }));
      events.send({ task: { ...taskOf(number === 6 ? "TASK_STATE_COMPLETED" : "TASK_STATE_WORKING"), artifacts } });
      events.drop();
    },
    {},
    {
      reconnect: { budget: 60_000, minDelay: 1, maxDelay: 60_000 },
      observer: { retry: ({ attempt }) => void attempts.push(attempt) },
    },
  );
  await glances(client.subscribeToTask("t1"));
  expect(attempts).toEqual([1, 1, 1, 2, 3]);
});

describe("a send whose stream breaks before its first event", () => {
  test("is not repeated, because it may have arrived", async () => {
    for (const how of ["drop", "end"] as const) {
      const { client, server } = await agent(({ events }) => {
        events.open();
        events[how]();
      });
      const { error } = await failure(client.sendStreamingMessage("go"));
      expect(error.code).toBe("ConnectionLost");
      expect(server.calls).toHaveLength(1);
    }
  });

  test("is repeated under the same messageId if the card promises to deduplicate it", async () => {
    const { client, server } = await agent(({ number, events }) => {
      if (number < 3) {
        if (number === 2) events.open();
        events.drop();
      } else events.send(taskEvent("TASK_STATE_COMPLETED"));
    }, resendExtensions);
    expect(await glances(client.sendStreamingMessage("go"))).toEqual(["task COMPLETED"]);
    const ids = server.calls.map(({ params }) => (params["message"] as { messageId: string }).messageId);
    expect(new Set(ids).size).toBe(1);
    expect(ids).toHaveLength(3);
  });
});

describe("errors in the middle of a stream", () => {
  test("keep their code, and earlier events are delivered", async () => {
    const { client } = await agent(({ events }) => {
      events.send(taskEvent());
      const error = {
        code: -32603,
        message: "The agent fell over",
        data: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "INVALID_AGENT_RESPONSE",
            domain: "a2a-protocol.org",
          },
        ],
      };
      events.raw(`event: error\ndata: ${JSON.stringify({ jsonrpc: "2.0", id: 1, error })}\n\n`);
    });
    const { seen, error } = await failure(client.sendStreamingMessage("go"));
    expect(seen).toEqual(["task WORKING"]);
    expect(error).toMatchObject({ code: "InvalidAgentResponse", message: "The agent fell over" });
  });

  test("that are not JSON, not an event or not an answer to this request are InvalidResponse", async () => {
    for (const data of [
      "<html>",
      "{}",
      '{"jsonrpc":"2.0","id":1,"result":{"task":7}}',
      '{"jsonrpc":"2.0","id":99,"result":{}}',
    ]) {
      const { client, server } = await agent(({ events }) => events.raw(`data: ${data}\n\n`));
      expect((await failure(client.sendStreamingMessage("go"))).error.code).toBe("InvalidResponse");
      expect(server.calls).toHaveLength(1);
    }
  });

  test("one event may be as large as the limit, which can be raised", async () => {
    const large = "x".repeat(5 * 2 ** 20);
    const script = ({ events }: RpcCall): void => {
      events.send(taskEvent());
      events.send(chunkEvent(large, false));
      events.send(statusEvent("TASK_STATE_COMPLETED"));
    };
    const generous = await agent(script);
    expect((await glances(generous.client.sendStreamingMessage("go")))[1]).toHaveLength(large.length);
    const strict = await agent(script, {}, { maxEventBytes: 2 ** 20 });
    const { seen, error } = await failure(strict.client.sendStreamingMessage("go"));
    expect(seen).toEqual(["task WORKING"]);
    expect(error.code).toBe("InvalidResponse");
  });
});

describe("a server that asks the client to wait", () => {
  test("is not asked earlier than Retry-After and the retry field of its stream allow", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(
      (call) => {
        if (call.method === "SendStreamingMessage") {
          call.events.raw("retry: 4000\n\n");
          call.events.send(taskEvent());
          call.events.drop();
        } else if (call.number === 1) call.page(503, { "retry-after": "7" }, "");
        else call.events.send(taskEvent("TASK_STATE_COMPLETED"));
      },
      {},
      { clock, idleTimeout: false, connectTimeout: false, reconnect: {} },
    );
    const seen = glances(client.sendStreamingMessage("go"));
    await clock.armed(4_000);
    clock.advance(3_999);
    expect(server.calls).toHaveLength(1);
    clock.advance(1);
    await clock.armed(7_000);
    expect(server.calls).toHaveLength(2);
    clock.advance(7_000);
    expect(await seen).toEqual(["task WORKING", "task COMPLETED"]);
    expect(clock.waiting).toBe(0);
  });

  test("is not waited for longer than the caller allows", async () => {
    const { client } = await agent((call) => {
      if (call.method === "SendStreamingMessage") {
        call.events.send(taskEvent());
        call.events.drop();
      } else call.page(503, { "retry-after": "86400" }, "");
    });
    const { error } = await failure(client.sendStreamingMessage("go"));
    expect(error).toMatchObject({ code: "Unavailable", retryAfter: 86_400 });
  });
});

describe("a connection without traffic (three limits)", () => {
  test("is replaced if it is half-open, and the stream continues", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(
      (call) => {
        call.events.send(taskEvent(call.number === 2 ? "TASK_STATE_COMPLETED" : "TASK_STATE_WORKING"));
        if (call.method === "SubscribeToTask" && call.number === 1) call.events.send(chunkEvent("x"));
      },
      {},
      { clock, idleTimeout: 9_000, reconnect: { minDelay: 1, maxDelay: 1 } },
    );
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of client.subscribeToTask("t1")) seen.push(glance(event));
    })();
    await until(() => seen.length === 2);
    await clock.armed(9_000);
    clock.advance(9_000);
    await until(() => clock.waiting > 0);
    clock.advance(1);
    await reading;
    expect(seen).toEqual(["task WORKING", "x", "task COMPLETED"]);
    expect(server.calls).toHaveLength(2);
  });

  test("is kept if the server sends keep-alive comments", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(
      ({ events }) => {
        events.send(taskEvent());
      },
      {},
      { clock, idleTimeout: 9_000 },
    );
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of client.subscribeToTask("t1")) seen.push(glance(event));
    })();
    await until(() => seen.length === 1);
    for (let beat = 0; beat < 5; beat++) {
      await clock.armed(9_000);
      clock.advance(6_000);
      const { response } = server.calls[0] as RpcCall;
      const before = clock.rearmed;
      response.write(": keep-alive\n\n");
      await until(() => clock.rearmed > before);
    }
    server.calls[0]?.events.send(statusEvent("TASK_STATE_COMPLETED"));
    await reading;
    expect(seen).toEqual(["task WORKING", "COMPLETED"]);
    expect(server.calls).toHaveLength(1);
  });

  test("is Timeout if the server does not answer within connectTimeout", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(() => undefined, {}, { clock, connectTimeout: 5_000 });
    const failed = failure(client.sendStreamingMessage("go"));
    await until(() => server.calls.length === 1);
    clock.advance(5_000);
    expect((await failed).error.code).toBe("Timeout");
    expect(clock.waiting).toBe(0);
  });

  test("is separate from the total limit, which ends a stream with events too", async () => {
    const clock = new HandClock();
    const { client } = await agent(({ events }) => events.send(taskEvent()), {}, { clock });
    const stream = client.sendStreamingMessage("go", { timeout: 77_000 });
    const failed = failure(stream);
    await clock.armed(120_000);
    clock.advance(77_000);
    const { seen, error } = await failed;
    expect(seen).toEqual(["task WORKING"]);
    expect(error.code).toBe("Timeout");
    expect(clock.waiting).toBe(0);
  });
});

describe("reading a stream with next()", () => {
  test("answers concurrent reads in order", async () => {
    const { client } = await agent(({ events }) => {
      events.send(taskEvent());
      events.send(chunkEvent("a"));
      events.send(statusEvent("TASK_STATE_COMPLETED"));
    });
    const stream = client.sendStreamingMessage("go");
    const asked = await Promise.all([1, 2, 3, 4, 5].map(() => stream.next()));
    expect(asked.map(({ done, value }) => (done === true ? "over" : glance(value)))).toEqual([
      "task WORKING",
      "a",
      "COMPLETED",
      "over",
      "over",
    ]);
  });

  test("throws a failure once, then is done", async () => {
    const { client } = await agent(({ fail }) => fail(-32603, "Out of order"), {}, { reconnect: false });
    const stream = client.sendStreamingMessage("go");
    const [first, second] = await Promise.allSettled([stream.next(), stream.next()]);
    expect(first).toMatchObject({ status: "rejected", reason: { message: "Out of order" } });
    expect(second).toEqual({ status: "fulfilled", value: { done: true, value: undefined } });
  });
});

describe("closing a stream", () => {
  test("closes the connection when the reader leaves the loop", async () => {
    let closed = 0;
    const { client } = await agent(({ events, response }) => {
      response.on("close", () => closed++);
      events.send(taskEvent());
      events.send(chunkEvent("a"));
    });
    for await (const event of client.sendStreamingMessage("go")) {
      expect(glance(event)).toBe("task WORKING");
      break;
    }
    await until(() => closed === 1);
  });

  test("closes the connection of a stream that was opened and never read", async () => {
    let closed = 0;
    const { client } = await agent(({ events, response }) => {
      response.on("close", () => closed++);
      events.send(taskEvent());
    });
    const stream = client.sendStreamingMessage("go");
    await stream.opened();
    expect(closed).toBe(0);
    await stream.close();
    await until(() => closed === 1);
  });

  test("sends nothing for a stream that was closed before it was read", async () => {
    const { client, server } = await agent(({ events }) => events.send(taskEvent()));
    const stream = client.sendStreamingMessage("go");
    await stream.close();
    expect(await glances(stream)).toEqual([]);
    expect(server.calls).toEqual([]);
  });

  test("drops events that had arrived and were not read", async () => {
    const { client } = await agent(({ events }) => {
      events.send(taskEvent());
      events.send(chunkEvent("a"));
      events.send(chunkEvent("b"));
    });
    const stream = client.sendStreamingMessage("go");
    await stream.next();
    await stream.close();
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  test("ends a pending read", async () => {
    const { client } = await agent(({ events }) => events.send(taskEvent()));
    const stream = client.sendStreamingMessage("go");
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of stream) seen.push(glance(event));
    })();
    await until(() => seen.length === 1);
    await stream.close();
    await reading;
    expect(seen).toEqual(["task WORKING"]);
  });

  test.each(["before", "waiting", "reading", "between"] as const)("an abort %s is Aborted, at once", async (when) => {
    const clock = new HandClock();
    const controller = new AbortController();
    const { client, server } = await agent(
      (call) => {
        if (when === "waiting") return;
        call.events.send(taskEvent());
        if (when === "between") call.events.drop();
      },
      {},
      { clock, idleTimeout: 9_000, reconnect: { minDelay: 500, maxDelay: 500 } },
    );
    if (when === "before") controller.abort();
    const failed = failure(client.sendStreamingMessage("go", { signal: controller.signal }));
    if (when === "waiting") await until(() => server.calls.length === 1);
    if (when === "reading") await clock.armed(9_000);
    // The only timer left is for the pause before a reconnection.
    if (when === "between") await until(() => clock.waiting === 1 && server.calls[0]?.response.destroyed === true);
    controller.abort();
    const { error } = await failed;
    expect(error.code).toBe("Aborted");
    expect(server.calls).toHaveLength(when === "before" ? 0 : 1);
    expect(clock.waiting).toBe(0);
  });

  test("a signal with a time limit is Timeout", async () => {
    const { client } = await agent(({ events }) => events.send(taskEvent()));
    const failed = await failure(client.sendStreamingMessage("go", { signal: AbortSignal.timeout(20) }));
    expect(failed.error.code).toBe("Timeout");
  });
});
