import { describe, expect, test } from "vitest";
import { A2AError, invalidParams, type TaskPushNotificationConfig } from "../../src/model/index.ts";
import { anonymous, Payload, type AgentService, type CallContext, type StreamReply } from "../../src/protocol/index.ts";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { ScriptedService, status } from "../transport/support.ts";

/** Tests server behaviour that differs for callers of A2A 0.3. */

const context: CallContext = { principal: anonymous, version: "0.3", extensions: [] };

function given(): { readonly inner: ScriptedService; readonly service: AgentService } {
  const inner = new ScriptedService();
  const service = codecV03.adapt?.(inner);
  if (service === undefined) throw new Error("0.3 adapts nothing");
  return { inner, service };
}

async function states(reply: StreamReply): Promise<readonly (string | undefined)[]> {
  const seen: (string | undefined)[] = [];
  for await (const batch of reply.batches) {
    for (const {
      payload: { value: event },
    } of batch)
      seen.push(event.statusUpdate?.status.state ?? event.task?.status.state);
  }
  return seen;
}

describe("subscribing to a finished task", () => {
  const over = new A2AError("UnsupportedOperation", "over", { metadata: { taskId: "t1" } });

  test("sends the task and ends", async () => {
    const { inner, service } = given();
    inner.script = ({ operation }) => {
      if (operation === "SubscribeToTask") throw over;
      return { payload: new Payload({ id: "t1", status: { state: "TASK_STATE_FAILED" } }) };
    };
    expect(await states(await service.stream("SubscribeToTask", { id: "t1" }, context))).toEqual(["TASK_STATE_FAILED"]);
    expect(inner.last).toMatchObject({ operation: "GetTask", request: { id: "t1" } });
  });

  test("is rejected if the agent does not stream", async () => {
    const { inner, service } = given();
    inner.script = () => {
      throw new A2AError("UnsupportedOperation", "This agent does not stream");
    };
    await expect(service.stream("SubscribeToTask", { id: "t1" }, context)).rejects.toMatchObject({
      code: "UnsupportedOperation",
    });
  });

  test("other errors are unchanged", async () => {
    const { inner, service } = given();
    inner.script = () => {
      throw new A2AError("TaskNotFound");
    };
    await expect(service.stream("SubscribeToTask", { id: "t1" }, context)).rejects.toMatchObject({
      code: "TaskNotFound",
    });
  });
});

describe("a stream", () => {
  test.each(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"])("ends with its final event, %s", async (state) => {
    const { inner, service } = given();
    inner.feed.push(status("TASK_STATE_WORKING", 1));
    inner.feed.push(status(state, 2), status("TASK_STATE_WORKING", 3));
    const reply = await service.stream("SubscribeToTask", { id: "t1" }, context);
    expect(await states(reply)).toEqual(["TASK_STATE_WORKING", state]);
    expect(inner.feed.returned).toBe(1);
  });

  test("stays open at auth-required, because the authorization may arrive outside of the stream", async () => {
    const { inner, service } = given();
    inner.feed.push(status("TASK_STATE_AUTH_REQUIRED", 1));
    inner.feed.push(status("TASK_STATE_COMPLETED", 2));
    const reply = await service.stream("SendStreamingMessage", {} as never, context);
    expect(await states(reply)).toEqual(["TASK_STATE_AUTH_REQUIRED", "TASK_STATE_COMPLETED"]);
  });

  test("closes its source while a read waits", async () => {
    const { inner, service } = given();
    const reply = await service.stream("SubscribeToTask", { id: "t1" }, context);
    const reader = reply.batches[Symbol.asyncIterator]();
    const waiting = reader.next();
    await reader.return?.();
    expect(inner.feed.returned).toBe(1);
    expect((await waiting).done).toBe(true);
  });
});

describe("getting a webhook config without its id", () => {
  const config = (id: string): TaskPushNotificationConfig => ({ taskId: "t1", id, url: "https://hook.example" });

  test.each([
    [["a", "t1", "b"], "t1"],
    [["a", "b"], "b"],
  ])("returns for %j the one with the task's id, else the newest", async (ids, expected) => {
    const { inner, service } = given();
    inner.script = () => ({ payload: new Payload({ configs: ids.map(config) }) });
    const reply = await service.call("GetTaskPushNotificationConfig", { taskId: "t1", id: "" }, context);
    expect(reply.payload.value).toEqual(config(expected));
  });

  test("is TaskNotFound without a config", async () => {
    const { inner, service } = given();
    inner.script = () => ({ payload: new Payload({}) });
    await expect(
      service.call("GetTaskPushNotificationConfig", { taskId: "t1", id: "" }, context),
    ).rejects.toMatchObject({ code: "TaskNotFound" });
  });
});

test("an extended card that does not exist has one error code (0.3 §8.2)", async () => {
  const { inner, service } = given();
  inner.script = () => {
    throw new A2AError("UnsupportedOperation", "This agent has no extended card");
  };
  await expect(service.call("GetExtendedAgentCard", {}, context)).rejects.toMatchObject({
    code: "ExtendedAgentCardNotConfigured",
  });
  await expect(service.call("CancelTask", { id: "t1" }, context)).rejects.toMatchObject({
    code: "UnsupportedOperation",
  });
});

describe("an error of a webhook has the name of 0.3 (0.3 §6.8)", () => {
  const wrong =
    (...fields: readonly string[]) =>
    () => {
      throw invalidParams(fields.map((field) => ({ field, description: "is wrong" })));
    };
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "x" }] } as const;
  const request = { message, configuration: { taskPushNotificationConfig: { url: "x" } } };
  const path = "configuration.taskPushNotificationConfig";

  test("if it is registered separately", async () => {
    const { inner, service } = given();
    inner.script = wrong("taskId", "url", "authentication.scheme");
    const error: unknown = await service
      .call("CreateTaskPushNotificationConfig", { taskId: "t", url: "x" }, context)
      .catch((thrown: unknown) => thrown);
    const names = ["taskId", "pushNotificationConfig.url", "pushNotificationConfig.authentication.schemes[0]"];
    expect(error).toMatchObject({ code: "InvalidParams", fields: names.map((field) => ({ field })) });
    expect(String(error)).toContain("taskId is wrong (and 2 more)");
  });

  test("if it is in a message, on a stream too", async () => {
    const { inner, service } = given();
    inner.script = wrong(path, `${path}.token`, "message.parts");
    const names = [
      "configuration.pushNotificationConfig",
      "configuration.pushNotificationConfig.token",
      "message.parts",
    ];
    const expected = { fields: names.map((field) => ({ field })) };
    await expect(service.call("SendMessage", request, context)).rejects.toMatchObject(expected);
    await expect(service.stream("SendStreamingMessage", request, context)).rejects.toMatchObject(expected);
  });

  test("and every other error is unchanged", async () => {
    const { inner, service } = given();
    const other = invalidParams([{ field: "message.taskId", description: "is wrong" }]);
    inner.script = () => {
      throw other;
    };
    await expect(service.call("SendMessage", request, context)).rejects.toBe(other);
    await expect(service.call("SendMessage", { message }, context)).rejects.toBe(other);
    await expect(service.stream("SubscribeToTask", { id: "t1" }, context)).rejects.toBe(other);
  });
});
