import { describe, expect, it } from "vitest";
import { callContext } from "@parley/testing";
import { harness } from "./support.ts";

describe("data of an owner (A2A 1.0 §13.1)", () => {
  it("is hidden from other principals: they get the answers for an unknown id", async () => {
    const { send, get, cancel, subscribe, service } = harness(async function* (turn) {
      yield turn.inputRequired(`for ${turn.principal.subject}`);
    });
    const message = { messageId: "the-same", contextId: "shared-name" };
    const hers = await send("Go", { subject: "ada", message });
    const his = await send("Go on", { subject: "bob", message });
    expect(his.id).not.toBe(hers.id);

    const bob = { subject: "bob" };
    const unknown = await get("unknown", bob).catch((error: unknown) => error);
    for (const attempt of [
      get(hers.id, bob),
      cancel(hers.id, bob),
      subscribe(hers.id, bob),
      subscribe(hers.id, { ...bob, after: 1 }),
      send("hello", { ...bob, message: { taskId: hers.id } }),
      send("hello", { ...bob, message: { taskId: hers.id, contextId: hers.contextId ?? "" } }),
    ]) {
      const error = (await attempt.catch((thrown: unknown) => thrown)) as Error;
      expect(error).toMatchObject({ code: "TaskNotFound", message: (unknown as Error).message });
    }
    for (const [subject, own] of [
      ["ada", hers],
      ["bob", his],
    ] as const) {
      const {
        payload: { value },
      } = await service.call("ListTasks", {}, callContext({ subject }));
      expect(value).toMatchObject({ totalSize: 1, tasks: [{ id: own.id }] });
      const inContext = await service.call("ListTasks", { contextId: "shared-name" }, callContext({ subject }));
      expect(inContext.payload.value.tasks.map(({ id }) => id)).toEqual([own.id]);
    }
    expect((await get(hers.id, { subject: "ada" })).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  it("belongs to one organization: the same subject in another one, or a subject that imitates both, is another owner", async () => {
    const { ask, service } = harness(async function* (turn) {
      yield turn.working();
    });
    const principals = [
      { subject: "ada", organization: "acme" },
      { subject: "ada", organization: "umbrella" },
      { subject: "ada" },
      { subject: '["acme","ada"]' },
    ];
    for (const principal of principals.slice(0, 3)) await ask("Go", { principal });
    for (const principal of principals.slice(0, 3)) {
      expect((await service.call("ListTasks", {}, callContext({ principal }))).payload.value.totalSize).toBe(1);
    }
    expect(
      (await service.call("ListTasks", {}, callContext({ principal: principals[3] ?? { subject: "" } }))).payload.value
        .totalSize,
    ).toBe(0);
  });

  it("separates the state and history of a context", async () => {
    const { ask } = harness(async (turn) => {
      const before = turn.context.state<string[]>() ?? [];
      turn.context.setState([...before, turn.text]);
      const texts = (await turn.context.history()).map(({ text }) => text).join(",");
      return turn.reply(`${before.join(",")}|${texts}`);
    });
    const message = () => ({ messageId: crypto.randomUUID(), contextId: "c" });
    await ask("secret of ada", { subject: "ada", message: message() });
    const answer = await ask("hello", { subject: "bob", message: message() });
    expect(answer.message?.parts[0]?.text).toBe("|hello");
    const again = await ask("more", { subject: "ada", message: message() });
    expect(again.message?.parts[0]?.text).toContain("secret of ada|secret of ada");
  });

  it("is not shown for a page token of another owner", async () => {
    const { ask, service } = harness(async function* (turn) {
      yield turn.working();
    });
    for (let n = 0; n < 3; n += 1) await ask("Go", { subject: "ada" });
    const ada = callContext({ subject: "ada" });
    const { nextPageToken } = (await service.call("ListTasks", { pageSize: 1 }, ada)).payload.value;
    await expect(
      service.call("ListTasks", { pageSize: 1, pageToken: nextPageToken }, callContext({ subject: "bob" })),
    ).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "pageToken" }],
    });
  });
});
