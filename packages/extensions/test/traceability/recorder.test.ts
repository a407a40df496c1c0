import { describe, expect, test } from "vitest";
import { TraceRecorder, nameOfError, type RecorderInit } from "../../src/traceability/recorder.ts";
import { traceStep, writeTrace } from "../../src/traceability/index.ts";
import { A2AError } from "@parley/a2a/internal/model/index";
import { fakeClock } from "@parley/testing";

function recorder(init: Partial<RecorderInit> = {}) {
  const clock = fakeClock();
  const defaults = {
    traceId: "trace-1",
    attempt: 1,
    shape: "sample",
    maxBytes: 4096,
    describeError: nameOfError,
  } as const;
  return { clock, trace: new TraceRecorder({ ...defaults, clock, stored: undefined, ...init }) };
}

const bytesOf = (trace: TraceRecorder): number => JSON.stringify(writeTrace(trace.whole, "sample")).length;

describe("steps of a trace", () => {
  test("have start, end and duration in milliseconds, by the monotonic clock", async () => {
    const { clock, trace } = recorder();
    const result = await traceStep(trace, { name: "get_rate", parameters: { base: "USD" } }, (step) => {
      clock.advance(250);
      step.set({ cost: 1, attributes: { source: "ECB" } });
      step.set({ totalTokens: 42, attributes: { cached: false } });
      return "0.859";
    });
    expect(result).toBe("0.859");
    const [step] = trace.whole.steps;
    expect(step).toMatchObject({
      traceId: "trace-1",
      callType: "TOOL",
      name: "get_rate",
      parameters: { base: "USD" },
      cost: 1,
      totalTokens: 42,
      attributes: { source: "ECB", cached: false },
      latency: 250,
    });
    expect(Date.parse(step?.endTime ?? "") - Date.parse(step?.startTime ?? "")).toBe(250);
  });

  test("are nested, in the order of their start", async () => {
    const { trace } = recorder();
    await trace.step({ callType: "HOST", name: "plan" }, async (parent) => {
      await trace.step({ name: "inner", parent }, () => undefined);
    });
    const [outer, inner] = trace.whole.steps;
    expect([outer?.name, inner?.name, inner?.parentStepId]).toEqual(["plan", "inner", outer?.stepId]);
    expect(outer?.stepId).not.toBe(inner?.stepId);
  });

  test("record the name of a rethrown error, but not its message", async () => {
    const { trace } = recorder();
    const thrown = new TypeError("the password is secret-of-ada-0123456789");
    await expect(trace.step({ name: "a" }, () => Promise.reject(thrown))).rejects.toBe(thrown);
    await expect(trace.step({ name: "b" }, () => Promise.reject(new A2AError("TaskNotFound")))).rejects.toThrow(
      "Task not found",
    );
    expect(trace.whole.steps.map(({ error }) => error)).toEqual(["TypeError", "TaskNotFound: Task not found"]);
    expect(JSON.stringify(trace.whole)).not.toContain("password");
  });

  test("end once: later changes are ignored", () => {
    const { clock, trace } = recorder();
    const step = trace.begin({ name: "a" });
    step.end();
    clock.advance(1000);
    step.end({ error: new Error("late") });
    step.set({ cost: 5 });
    expect(trace.whole.steps[0]).not.toHaveProperty("cost");
    expect(trace.whole.steps[0]).toMatchObject({ latency: 0 });
    expect(trace.whole.steps[0]).not.toHaveProperty("error");
  });

  test("are not recorded without a trace, but the function still runs", async () => {
    expect(await traceStep(undefined, { name: "a" }, (step) => step.stepId)).toBe("");
  });
});

describe("a trace is bounded in bytes", () => {
  test("a step that does not fit loses its parameters and requests, and is marked", () => {
    const { trace } = recorder();
    trace.begin({ name: "big", parameters: { text: "x".repeat(10_000) }, requests: "y".repeat(10_000) }).end();
    const [step] = trace.whole.steps;
    expect(step).toMatchObject({ name: "big", attributes: { truncated: "true" } });
    expect(bytesOf(trace)).toBeLessThanOrEqual(4096);
  });

  test("another agent's trace is dropped before parameters are", () => {
    const { trace } = recorder();
    const step = trace.begin({ callType: "AGENT", requests: "ask" });
    step.end({
      responseTrace: { traceId: "n", steps: Array.from({ length: 100 }, (_, at) => ({ stepId: `s${at}` })) },
    });
    expect(trace.whole.steps[0]).toMatchObject({ requests: "ask", attributes: { truncated: "true" } });
    expect(trace.whole.steps[0]).not.toHaveProperty("responseTrace");
  });

  test("for any number of steps, with any content", () => {
    const { trace } = recorder();
    for (let at = 0; at < 10_000; at += 1) {
      const step = trace.begin({ name: `\u0000"ü\\${"\u{1f600}".repeat(at % 200)}`, stepType: "\u0001".repeat(99) });
      step.end({ error: new Error("x"), attributes: { note: "\u0002".repeat(at % 500) }, cost: at / 3 });
    }
    const { steps } = trace.whole;
    expect(Buffer.byteLength(JSON.stringify(writeTrace(trace.whole, "sample")))).toBeLessThanOrEqual(4096);
    expect(steps.length).toBeGreaterThan(3);
    expect(steps.at(-1)?.attributes).toMatchObject({ omitted_steps: String(10_000 - steps.length) });
  });

  test("a started step keeps its place and its end in a full trace", () => {
    const { trace } = recorder();
    const first = trace.begin({ name: "first" });
    for (let at = 0; at < 100; at += 1) trace.begin({ name: "other" }).end();
    first.end({ attributes: { text: "x".repeat(5000) }, error: new Error("x") });
    expect(trace.whole.steps[0]).toMatchObject({ name: "first", error: "Error", latency: 0 });
    expect(bytesOf(trace)).toBeLessThanOrEqual(4096);
  });
});

describe("a later attempt", () => {
  const begun = (): TraceRecorder => {
    const { trace } = recorder();
    trace.begin({ name: "done" }).end();
    trace.begin({ name: "lost" });
    return trace;
  };
  const rowsOf = (trace: TraceRecorder) => () => Promise.resolve([{ key: trace.row[0], value: trace.row[1] }]);

  test("continues with the stored steps; unfinished ones are marked as interrupted", async () => {
    const { trace } = recorder({ attempt: 2, stored: rowsOf(begun()) });
    await trace.step({ name: "again" }, () => undefined);
    const { traceId, steps } = trace.whole;
    expect([traceId, steps.map(({ name }) => name)]).toEqual(["trace-1", ["done", "lost", "again"]]);
    expect(steps[1]).toMatchObject({ error: "The run was interrupted" });
    expect(steps[2]?.attributes).toEqual({ attempt: "2" });
    expect(new Set(steps.map(({ stepId }) => stepId)).size).toBe(3);
  });

  test("has another agent's trace once if it continues a delegation", async () => {
    const asked = (traceId: string) => ({ responseTrace: { traceId, steps: [] } });
    const before = recorder().trace;
    before.begin({ name: "one" }).end(asked("trace-a"));
    before.begin({ name: "two" }).end(asked("trace-b"));
    const { trace } = recorder({ attempt: 2, stored: rowsOf(before) });
    await trace.step({ name: "two" }, (step) => step.set(asked("trace-b")));
    const traces = trace.whole.steps.map(({ name, responseTrace }) => [name, responseTrace?.traceId]);
    expect(traces).toEqual([
      ["one", "trace-a"],
      ["two", undefined],
      ["two", "trace-b"],
    ]);
  });

  test("ignores rows of another turn, and invalid ones", async () => {
    const other = recorder({ traceId: "trace-2", attempt: 2, stored: rowsOf(begun()) }).trace;
    await other.step({ name: "own" }, () => undefined);
    expect(other.whole.steps.map(({ name }) => name)).toEqual(["own"]);
    const broken = recorder({ attempt: 2, stored: () => Promise.reject(new Error("no store")) }).trace;
    expect(await broken.step({ name: "own" }, () => 5)).toBe(5);
  });

  test("is stored only after a change, not with each chunk of an artifact", () => {
    const { trace } = recorder();
    expect(trace.takeRow()).toBeUndefined();
    const step = trace.begin({ name: "work" });
    expect(trace.takeRow()?.[1]).toContain("work");
    expect(trace.takeRow()).toBeUndefined();
    step.end({ cost: 5 });
    expect(trace.takeRow()?.[1]).toContain('"cost":5');
    expect(trace.takeRow()).toBeUndefined();
    // An event that is repeated sets no rows, so a later attempt sets it with each.
    const later = recorder({ attempt: 2 }).trace;
    later.begin({ name: "work" });
    expect([later.takeRow(), later.takeRow()]).toEqual([later.row, later.row]);
  });

  test("is stored in a row within its limit, whatever the trace contains", () => {
    const { trace } = recorder({ maxBytes: 1 << 20 });
    for (let at = 0; at < 500; at += 1) trace.begin({ name: "n", parameters: { text: "ü".repeat(at * 10) } }).end();
    expect(Buffer.byteLength(trace.row[1])).toBeLessThanOrEqual(32 << 10);
    expect((JSON.parse(trace.row[1]) as { steps: readonly unknown[] }).steps.length).toBeGreaterThan(20);
  });
});
