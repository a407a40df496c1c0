import { describe, expect, test } from "vitest";
import type { Case, Measured, Target } from "../case.ts";
import { cases } from "../cases/index.ts";
import { extrapolated } from "../cases/stream.ts";
import { quantile, summary } from "../load/latencies.ts";
import { jsonOf, markdownOf, missedOf, short, textOf } from "../report.ts";
import { medians } from "../rounds.ts";
import { failures, isMet, resultOf } from "../targets.ts";

function caseWith(...targets: Target[]): Case {
  return { name: "one", what: "One thing", operation: "a thing", targets, run: () => Promise.reject(new Error()) };
}

const measured: Measured = {
  parley: { throughput: 1200, cpu: 30 },
  official: { throughput: 300, cpu: 120 },
  raw: { throughput: 2400, cpu: 20 },
};

describe("the ratios", () => {
  test("divide Parley by the other", () => {
    const { measures } = resultOf(caseWith(), measured);
    expect(measures).toEqual({
      throughputToOfficial: 4,
      cpuToOfficial: 0.25,
      throughputToRaw: 0.5,
      cpuToRaw: 1.5,
    });
  });

  test("are absent where one side has no figure", () => {
    const { measures } = resultOf(caseWith(), { parley: { cpu: 3 }, official: { throughput: 1 } });
    expect(measures).toEqual({});
  });

  test("of a case's own stand beside them", () => {
    expect(resultOf(caseWith(), { ...measured, measures: { growth: 1.1 } }).measures["growth"]).toBe(1.1);
  });
});

describe("the gate", () => {
  const fails = (target: Omit<Target, "says">, more: Record<string, number> = {}): boolean =>
    failures(resultOf(caseWith({ says: "it", ...target }), { ...measured, measures: more })).length > 0;

  test("lets a missed target pass within a factor of two", () => {
    const target = { says: "it", measure: "throughputToOfficial", atLeast: 8 };
    expect(isMet(target, resultOf(caseWith(target), measured))).toBe(false);
    expect(fails(target)).toBe(false);
    expect(fails({ ...target, atLeast: 8.1 })).toBe(true);
  });

  test("looks at upper bounds alike", () => {
    expect(fails({ measure: "cpuToRaw", atMost: 0.75 })).toBe(false);
    expect(fails({ measure: "cpuToRaw", atMost: 0.7 })).toBe(true);
  });

  test("never compares a time or a rate, but its ratio to the raw baseline", () => {
    const slow = { p99: 1000, p99ToIt: 3 };
    expect(fails({ measure: "p99", unit: "ms", atMost: 50 }, slow)).toBe(false);
    expect(fails({ measure: "p99", unit: "ms", atMost: 50, gate: { measure: "p99ToIt", atMost: 2 } }, slow)).toBe(
      false,
    );
    expect(fails({ measure: "p99", unit: "ms", atMost: 50, gate: { measure: "p99ToIt", atMost: 1 } }, slow)).toBe(true);
  });

  test("fails what was not measured", () => {
    expect(fails({ measure: "nothing", atLeast: 1 })).toBe(true);
    expect(fails({ measure: "growth", atMost: 1 }, { growth: Number.NaN })).toBe(true);
  });
});

describe("the cases", () => {
  test("are those that the page tells of, each with a target", () => {
    expect(cases.map(({ name }) => name)).toEqual([
      "message",
      "task-memory",
      "task-sqlite",
      "stream",
      "stream-growth",
      "get-task",
      "list",
      "subscribers",
      "fan-in",
      "neighbour",
      "resume",
      "cold",
      "client",
      "grpc",
      "grpc-stream",
    ]);
    for (const { targets } of cases) expect(targets).not.toEqual([]);
  });

  test("give every figure that depends on the machine a ratio for the gate", () => {
    const absolute = cases.flatMap(({ targets }) => targets).filter(({ unit }) => unit !== undefined);
    expect(absolute.filter(({ gate }) => gate === undefined)).toEqual([]);
  });
});

describe("the report", () => {
  const target = { says: "as fast", measure: "throughputToOfficial", atLeast: 5 };
  const result = resultOf(caseWith(target), measured);

  test("is one line of JSON a case for programs", () => {
    const line = jsonOf(result);
    expect(line).not.toContain("\n");
    expect(JSON.parse(line)).toMatchObject({
      case: "one",
      ...measured,
      ratio: { throughputToOfficial: 4, cpuToOfficial: 0.25, cpuToRaw: 1.5 },
      targets: [{ says: "as fast", value: 4, atLeast: 5, met: false }],
    });
  });

  test("leaves out ratios without a meaning", () => {
    const { ratio } = JSON.parse(jsonOf(resultOf(caseWith(), { parley: { p50: 1 } }))) as { ratio: unknown };
    expect(ratio).toEqual({});
  });

  test("says for people what was reached and what was wanted", () => {
    expect(textOf(result)).toContain("missed  as fast: 4.00 × (≥ 5.00 ×)");
    expect(missedOf([result])).toBe("- `one`, as fast: 4.00 ×, wanted ≥ 5.00 ×");
    const told = { ...caseWith(target), why: "The other one is slow." };
    expect(missedOf([resultOf(told, measured)])).toContain("wanted ≥ 5.00 ×\n\n  The other one is slow.");
    expect(missedOf([resultOf({ ...caseWith(), why: "It is not." }, measured)])).toBe("None in this run.");
    const page = markdownOf([result], { date: "2026-01-01", versions: { Node: "20.19.0" } });
    expect(page).toContain("| `one` | as fast | ≥ 5.00 × | 4.00 × | **missed** |");
    expect(page).toContain("| parley | 1,200 | – | – | 30.0 | – |");
  });

  test.each([
    [undefined, "–"],
    [Number.NaN, "–"],
    [0, "0"],
    [1.234, "1.23"],
    [12.34, "12.3"],
    [123.4, "123"],
    [1234567.8, "1,234,568"],
  ])("writes %s as %s", (value, text) => {
    expect(short(value)).toBe(text);
  });
});

describe("the statistics", () => {
  test("take quantiles from what was seen", () => {
    const hundred = Array.from({ length: 100 }, (_, at) => 100 - at);
    expect(summary(hundred)).toEqual({ p50: 50, p99: 99 });
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });

  test("take the median of each figure by itself", () => {
    const rounds = [{ throughput: 1, cpu: 9 }, { throughput: 3, cpu: 7 }, { throughput: 2 }];
    expect(medians(rounds)).toEqual({ throughput: 2, cpu: 7 });
    expect(medians([])).toEqual({});
  });

  test("extend quadratic time", () => {
    const at = (chunks: number) => ({ chunks, seconds: 0.001 * chunks + 0.00002 * chunks ** 2 });
    expect(extrapolated(16_000, at(1_000), at(3_000))).toBeCloseTo(at(16_000).seconds, 6);
  });
});
