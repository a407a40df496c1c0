import { describe, expect, it } from "vitest";
import { logText, type LogRecord } from "../../src/base/log-text.ts";

const taskId = "01a224d4-aeca-7ca1-92a8-9768f7240ad4";
const contextId = "01a224d4-aecb-7a18-b98c-661cefbdd816";
const traceId = "0af7651916cd43dd8448eb211c80319c";
const ids = { taskId, contextId, traceId, trace_id: traceId, span_id: "b7ad6b7169203331", trace_flags: "01" };

/** Formats a record from today as text, without the time. */
function text(record: Partial<LogRecord>): string {
  return logText(
    { time: new Date(), level: "info", message: "Looked it up", fields: {}, ...record },
    (_, words) => words,
  ).slice(9);
}

const audit = (fields: LogRecord["fields"]): string =>
  text({ message: "Audit", fields: { outcome: "success", time: 1, agent: "/", ...ids, ...fields } });

describe("a record as text", () => {
  it("has the agent and the end of the task's id, because ids begin with their time", () => {
    expect(text({ fields: { agent: "/planner", ...ids, shelf: 7 } })).toBe(
      "info  /planner f7240ad4 Looked it up shelf=7\n",
    );
    expect(text({ fields: { agent: "/", taskId: "t1" } })).toBe("info  / t1 Looked it up\n");
    expect(text({ fields: { agent: 7, taskId: null } })).toBe("info  Looked it up taskId=null agent=7\n");
  });

  it("has full ids on warnings, on errors and for a new task, for commands that take them", () => {
    const full = `taskId=${taskId} contextId=${contextId} traceId=${traceId}`;
    expect(text({ level: "warn", fields: ids })).toContain(full);
    expect(text({ level: "error", fields: ids })).toContain(full);
    expect(audit({ event: "task-created", state: "TASK_STATE_SUBMITTED", subject: "ada" })).toMatch(
      new RegExp(`^info  / f7240ad4 Task created ${full} .*subject=ada\\n$`),
    );
  });

  it("describes audit records in words", () => {
    const state = (name: string): string => audit({ event: "task-state", state: name, subject: "anonymous" });
    expect(state("TASK_STATE_INPUT_REQUIRED")).toBe("info  / f7240ad4 Task input-required\n");
    expect(state("TASK_STATE_COMPLETED")).toBe("info  / f7240ad4 Task completed\n");
    expect(audit({ event: "action", action: "order.placed", details: { order: 7 } })).toBe(
      'info  / f7240ad4 order.placed details={"order":7}\n',
    );
    expect(audit({ event: "credential", action: "push.deliver", outcome: "failed" })).toContain("push.deliver failed");
    expect(audit({ event: "authentication", outcome: "refused", code: "Unauthenticated" })).toBe(
      "info  / f7240ad4 authentication refused code=Unauthenticated\n",
    );
  });

  it("has the day unless it is today, and shows a missing time", () => {
    const at = (time: Date | undefined): string =>
      logText({ time, level: undefined, message: "x", fields: {} }, (_, words) => words);
    expect(at(new Date(2026, 0, 2, 3, 4, 5))).toBe("2026-01-02 03:04:05       x\n");
    expect(at(undefined)).toBe("--:--:--       x\n");
    expect(at(new Date(Number.NaN))).toBe("--:--:--       x\n");
  });
});
