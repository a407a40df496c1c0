import { describe, expect, test } from "vitest";
import { readTrace, writeTrace, type ResponseTrace } from "../../src/traceability/index.ts";

/* The specification: a2aproject/a2a-samples, extensions/traceability/v1/spec.md. The sample: samples/python/extensions/traceability. */

const times = { startTime: "2026-03-10T21:23:14.974Z", endTime: "2026-03-10T21:23:15.000Z" };
const trace: ResponseTrace = {
  traceId: "trace-1",
  steps: [
    {
      stepId: "step-1",
      traceId: "trace-1",
      callType: "TOOL",
      name: "get_rate",
      parameters: { base: "USD" },
      stepType: "tool_call",
      cost: 2,
      totalTokens: 42,
      attributes: { source: "ECB" },
      latency: 26,
      ...times,
    },
    {
      stepId: "step-2",
      traceId: "trace-1",
      parentStepId: "step-1",
      callType: "AGENT",
      name: "Rates",
      requests: { text: "USD?" },
      agentUrl: "https://rates.example",
      responseTrace: { traceId: "trace-2", steps: [{ stepId: "step-3", callType: "TOOL", name: "read" }] },
      error: "TimeoutError",
      ...times,
    },
  ],
};

describe("a trace in the shape of the sample", () => {
  test("has each member of the sample, with null for unknown values", () => {
    const { trace_id, steps } = writeTrace(trace, "sample") as { trace_id: string; steps: readonly object[] };
    expect(trace_id).toBe("trace-1");
    expect(steps[0]).toEqual({
      step_id: "step-1",
      trace_id: "trace-1",
      parent_step_id: null,
      call_type: "TOOL",
      name: "get_rate",
      parameters: { base: "USD" },
      requests: null,
      step_type: "tool_call",
      cost: 2,
      total_tokens: 42,
      additional_attributes: { source: "ECB" },
      latency: 26,
      start_time: times.startTime,
      end_time: times.endTime,
      error: null,
    });
    expect(steps[1]).toMatchObject({ agent_url: "https://rates.example", response_trace: { trace_id: "trace-2" } });
  });

  test("is read back unchanged", () => {
    expect(readTrace(writeTrace(trace, "sample"))).toEqual({
      ...trace,
      steps: [
        trace.steps[0],
        {
          ...trace.steps[1],
          responseTrace: { traceId: "trace-2", steps: [expect.objectContaining({ name: "read" })] },
        },
      ],
    });
  });
});

describe("a trace in the shape of the specification", () => {
  test("has the members of the proto: step actions, whole numbers, and text attributes", () => {
    const { steps } = writeTrace(trace, "specification") as { steps: readonly object[] };
    expect(steps[0]).toEqual({
      step_id: "step-1",
      trace_id: "trace-1",
      parent_step_id: "",
      call_type: "TOOL",
      step_action: { tool_invocation: { tool_name: "get_rate", parameters: { base: "USD" } } },
      cost: 2,
      total_tokens: 42,
      additional_attributes: { source: "ECB", step_type: "tool_call" },
      latency: 26,
      start_time: times.startTime,
      end_time: times.endTime,
    });
    expect(steps[1]).toMatchObject({
      parent_step_id: "step-1",
      step_action: {
        agent_invocation: {
          agent_url: "https://rates.example",
          agent_name: "Rates",
          requests: { text: "USD?" },
          response_trace: { trace_id: "trace-2" },
        },
      },
      additional_attributes: { error: "TimeoutError" },
    });
  });

  test("is read back, except for fields that it cannot express", () => {
    const { steps: [first, second] = [] } = readTrace(writeTrace(trace, "specification")) ?? {};
    expect(first).toEqual(trace.steps[0]);
    expect(second).toMatchObject({ ...trace.steps[1], responseTrace: { traceId: "trace-2" } });
    const host: ResponseTrace = { traceId: "t", steps: [{ stepId: "s", callType: "HOST", name: "thinks", cost: 0.5 }] };
    const [step] = readTrace(writeTrace(host, "specification"))?.steps ?? [];
    expect(step).toMatchObject({ name: "thinks", cost: 1, attributes: { cost: "0.5" } });
    expect(step?.callType).toBeUndefined();
  });

  test("is read as ProtoJSON: JSON names, numbers as text, call types as numbers, no empty members", () => {
    const step = {
      stepId: "s",
      callType: 1,
      stepAction: {
        agentInvocation: { agentUrl: "https://a.example", agentName: "A", responseTrace: { traceId: "n" } },
      },
      cost: "12",
      totalTokens: "34",
      additionalAttributes: { a: "b" },
      latency: "56",
      startTime: "2026-03-10T21:23:14.974521+00:00",
    };
    expect(readTrace({ traceId: "t", steps: [step, { step_id: "u", call_type: 2 }] })?.steps).toEqual([
      {
        stepId: "s",
        callType: "AGENT",
        agentUrl: "https://a.example",
        name: "A",
        responseTrace: { traceId: "n", steps: [] },
        cost: 12,
        totalTokens: 34,
        attributes: { a: "b" },
        latency: 56,
        startTime: "2026-03-10T21:23:14.974Z",
      },
      { stepId: "u", callType: "TOOL" },
    ]);
  });
});

describe("an invalid trace", () => {
  const nested = (depth: number): object => ({
    trace_id: "t",
    steps: depth === 0 ? [] : [{ step_id: "s", response_trace: nested(depth - 1) }],
  });

  test.each([
    ["nothing", undefined],
    ["null", null],
    ["a text", "trace"],
    ["a list", []],
    ["an object without an id", { steps: [] }],
    ["steps that are not a list", { trace_id: "t", steps: {} }],
    ["a step without an id", { trace_id: "t", steps: [{}] }],
    ["a number that is not a number", { trace_id: "t", steps: [{ step_id: "s", cost: "much" }] }],
    ["an invalid time", { trace_id: "t", steps: [{ step_id: "s", start_time: "now" }] }],
    [
      "an action that is a text, with a name that is not text",
      { trace_id: "t", steps: [{ step_id: "s", step_action: "x", name: 1 }] },
    ],
    ["traces in traces, deeper than anyone needs", nested(17)],
  ])("%s is none", (_, value) => {
    expect(readTrace(value)).toBeUndefined();
  });

  test("an unknown call type is left out, and the rest is read", () => {
    const step = { step_id: "s", call_type: "ROBOT", step_action: "x", name: "n" };
    expect(readTrace({ trace_id: "t", steps: [step] })?.steps).toEqual([{ stepId: "s", name: "n" }]);
    expect(readTrace(nested(16))).toBeDefined();
  });

  test("names of prototype members are read as data", () => {
    const parsed: unknown = JSON.parse(
      '{"trace_id":"t","steps":[{"step_id":"s","__proto__":{"name":"x"}}],"__proto__":{}}',
    );
    expect(readTrace(parsed)?.steps[0]?.name).toBeUndefined();
  });
});
