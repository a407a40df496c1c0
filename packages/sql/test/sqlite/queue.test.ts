import { expect, onTestFinished, test } from "vitest";
import { defineAgent } from "@parley/server";
import { callContext, inProcess } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";

/* The task queue on SQLite: in order for each owner, and fair between owners. */

test("tasks beyond limits.runs wait as SUBMITTED, and owners alternate", async () => {
  const store = await sqliteStore({ path: ":memory:" });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const agent = defineAgent({
    name: "test",
    description: "a test",
    version: "1",
    skills: [],
    async *onMessage(turn) {
      begun.push(turn.text);
      yield turn.working();
      await new Promise<void>((resolve) => ends.push(resolve));
      yield turn.artifact({ parts: [{ text: "done" }] });
    },
  });
  const { engine, service } = inProcess(agent, { store, limits: { runs: 1 } });
  onTestFinished(async () => {
    await engine.close();
    await store.close();
  });
  const send = async (text: string, subject: string): Promise<string> => {
    const message = { messageId: text, role: "ROLE_USER" as const, parts: [{ text }] };
    const request = { message, configuration: { returnImmediately: true } };
    const { task } = (await service.call("SendMessage", request, callContext({ subject }))).payload.value;
    return task?.id ?? "";
  };
  await send("ada 0", "ada");
  const ids = await Promise.all(Array.from({ length: 100 }, (_, at) => send(`ada ${at + 1}`, "ada")));
  for (const text of ["bob 1", "bob 2"]) await send(text, "bob");
  const head = await store.head({ agent: "agent" }, ids[50] ?? "");
  expect(head?.state).toBe("TASK_STATE_SUBMITTED");
  expect(head).not.toHaveProperty("run");
  expect(head).not.toHaveProperty("holder");
  for (let count = 2; count <= 6; count += 1) {
    await expect.poll(() => ends.length).toBe(1);
    ends.shift()?.();
    await expect.poll(() => begun.length).toBe(count);
  }
  expect(begun).toEqual(["ada 0", "ada 1", "bob 1", "ada 2", "bob 2", "ada 3"]);
});
