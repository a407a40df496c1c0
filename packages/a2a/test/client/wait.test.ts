import { describe, expect, test } from "vitest";
import { connect, type ConnectOptions } from "../../src/client/index.ts";
import {
  cardOf,
  chunkEvent,
  errorOf,
  HandClock,
  jsonRpcAt,
  type RpcCall,
  rpcServer,
  soon,
  statusEvent,
  taskEvent,
  taskOf,
} from "./support.ts";

async function agent(
  script: (call: RpcCall) => void | Promise<void>,
  streaming: boolean,
  options: ConnectOptions = {},
) {
  const server = await rpcServer(script);
  const card = cardOf([jsonRpcAt(server.url)], { capabilities: { streaming } });
  return { server, client: await connect(card, { ...soon, ...options }) };
}

describe("waiting for a task that streams", () => {
  test("returns the whole task when it is finished", async () => {
    const { client, server } = await agent((call) => {
      if (call.method === "GetTask") return call.answer(taskOf("TASK_STATE_COMPLETED", { metadata: { whole: true } }));
      call.events.send(taskEvent());
      call.events.send(chunkEvent("a", false));
      call.events.send(statusEvent("TASK_STATE_COMPLETED"));
    }, true);
    expect(await client.waitFor("t1")).toMatchObject({ metadata: { whole: true } });
    expect(server.methods()).toEqual(["SubscribeToTask", "GetTask"]);
  });

  test("returns the task when it needs input or authorization", async () => {
    for (const state of ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"] as const) {
      const { client } = await agent((call) => call.events.send(taskEvent(state)), true);
      expect((await client.waitFor({ id: "t1" })).status.state).toBe(state);
    }
  });

  test("continues after broken connections", async () => {
    const { client } = await agent((call) => {
      if (call.method === "GetTask") return call.answer(taskOf("TASK_STATE_FAILED"));
      call.events.send(taskEvent());
      if (call.number < 3) call.events.drop();
      else call.events.send(statusEvent("TASK_STATE_FAILED"));
    }, true);
    expect((await client.waitFor("t1")).status.state).toBe("TASK_STATE_FAILED");
  });

  test("waits until `until` returns true", async () => {
    let working = false;
    const { client } = await agent((call) => {
      if (call.method === "GetTask")
        return call.answer(taskOf(working ? "TASK_STATE_WORKING" : "TASK_STATE_SUBMITTED"));
      call.events.send(taskEvent("TASK_STATE_SUBMITTED"));
      working = true;
      call.events.send(statusEvent("TASK_STATE_WORKING"));
    }, true);
    const task = await client.waitFor("t1", { until: ({ status }) => status.state === "TASK_STATE_WORKING" });
    expect(task.status.state).toBe("TASK_STATE_WORKING");
  });

  test("throws when the task ends earlier", async () => {
    const { client } = await agent((call) => {
      if (call.method === "GetTask") call.answer(taskOf("TASK_STATE_CANCELED"));
      else call.events.send(taskEvent("TASK_STATE_CANCELED"));
    }, true);
    await expect(
      client.waitFor("t1", { until: ({ status }) => status.state === "TASK_STATE_COMPLETED" }),
    ).rejects.toMatchObject({ code: "UnsupportedOperation", message: expect.stringContaining("TASK_STATE_CANCELED") });
  });

  test.each([-32004, -32602])("polls if the agent has no stream of the task (%i)", async (code) => {
    const clock = new HandClock();
    const { client } = await agent(
      (call) => {
        if (call.method === "SubscribeToTask") call.fail(code, "no stream of this one");
        // After the first rejection, the client reads the task.
        else call.answer(taskOf(call.number < 3 ? "TASK_STATE_WORKING" : "TASK_STATE_COMPLETED"));
      },
      true,
      { clock },
    );
    const waiting = client.waitFor("t1");
    await clock.armed(500);
    clock.advance(500);
    expect((await waiting).status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("waiting for a task that does not stream", () => {
  test("polls with growing delays", async () => {
    const clock = new HandClock();
    const { client, server } = await agent(
      (call) => call.answer(taskOf(call.number < 4 ? "TASK_STATE_WORKING" : "TASK_STATE_COMPLETED")),
      false,
      { clock },
    );
    const waiting = client.waitFor("t1");
    for (const pause of [500, 750, 1125]) {
      await clock.armed(pause);
      clock.advance(pause);
    }
    expect((await waiting).status.state).toBe("TASK_STATE_COMPLETED");
    expect(server.methods()).toEqual(Array(4).fill("GetTask"));
    expect(clock.waiting).toBe(0);
  });

  test("ends at its timeout and with its signal", async () => {
    const clock = new HandClock();
    const { client } = await agent((call) => call.answer(taskOf("TASK_STATE_WORKING")), false, { clock });
    const late = errorOf(client.waitFor("t1", { timeout: 400 }));
    await clock.armed(500);
    clock.advance(400);
    expect(await late).toMatchObject({ code: "Timeout" });
    const controller = new AbortController();
    const aborted = errorOf(client.waitFor("t1", { signal: controller.signal }));
    await clock.armed(500);
    controller.abort();
    expect(await aborted).toMatchObject({ code: "Aborted" });
    expect(clock.waiting).toBe(0);
  });

  test("throws the error for a task that does not exist", async () => {
    const { client } = await agent((call) => call.fail(-32001, "none"), false);
    await expect(client.waitFor("t1")).rejects.toMatchObject({ code: "TaskNotFound" });
  });
});
