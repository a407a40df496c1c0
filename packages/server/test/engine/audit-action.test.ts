import { expect, test } from "vitest";
import type { AuditRecord } from "@parley/a2a/internal/protocol/index";
import { harness } from "./support.ts";

/** Tests that `turn.audit()` records an agent's actions in addition to the changes of its tasks. */

test("an action is in the audit with its caller, task and details, beside the changes of the task", async () => {
  const records: AuditRecord[] = [];
  const { send } = harness(
    async function* (turn) {
      turn.audit("refund.sent", { order: "o-7", cents: 1250, test: false });
      turn.audit("mail.sent");
      yield turn.artifact({ parts: [{ text: "done" }] });
    },
    { audit: (record) => void records.push(record) },
  );
  const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const task = await send("Go", { subject: "ada", trace });
  const about = { event: "action", outcome: "success", agent: "agent", subject: "ada", taskId: task.id };
  const [refund, mail] = records.filter(({ event }) => event === "action");
  expect(refund).toMatchObject({
    ...about,
    action: "refund.sent",
    details: { order: "o-7", cents: 1250, test: false },
    contextId: task.contextId,
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  });
  expect(mail).toMatchObject({ ...about, action: "mail.sent" });
  expect(mail).not.toHaveProperty("details");
  const others = records.filter(({ event }) => event !== "action").map(({ event, state }) => [event, state]);
  expect(others).toEqual([
    ["task-created", "TASK_STATE_WORKING"],
    ["task-state", "TASK_STATE_COMPLETED"],
  ]);
});

test("an action within a step is recorded once, although the turn continues after a later message", async () => {
  const records: AuditRecord[] = [];
  const { send } = harness(
    async function* (turn) {
      await turn.step("refund", async () => turn.audit("refund.sent"), { scope: "task" });
      yield turn.number === 1 ? turn.inputRequired("Anything else?") : turn.completed();
    },
    { audit: (record) => void records.push(record) },
  );
  const { id: taskId } = await send("Go");
  await send("No", { message: { taskId } });
  expect(records.filter(({ event }) => event === "action")).toHaveLength(1);
});

test.each([
  ["", {}, "the action must be a text of 1 to 256 characters"],
  ["x".repeat(257), {}, "the action must be a text of 1 to 256 characters"],
  ["sent", [1], "the details must be an object"],
  ["sent", { to: { name: "ada" } }, 'the detail "to" must be a number'],
  ["sent", { to: "x".repeat(1025) }, 'the detail "to" must be a number'],
  ["sent", Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`d${at}`, at])), "at most 32 details"],
])("refuses the action %j with %j, which fails the task", async (action, details, problem) => {
  const records: AuditRecord[] = [];
  const { send, log } = harness(
    (turn) => {
      turn.audit(action, details as Record<string, string>);
      return turn.completed();
    },
    { audit: (record) => void records.push(record) },
  );
  expect((await send("Go")).status.state).toBe("TASK_STATE_FAILED");
  expect(records.some(({ event }) => event === "action")).toBe(false);
  expect(JSON.stringify(log.map(({ cause }) => String(cause)))).toContain(JSON.stringify(problem).slice(1, -1));
});
