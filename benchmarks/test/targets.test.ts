import { describe, expect, test } from "vitest";
import type { Case, Measured, Target } from "../case.ts";
import { cases } from "../cases/index.ts";
import { extrapolated } from "../cases/stream.ts";
import { quantile, summary } from "../load/latencies.ts";
import { pageOf } from "../page.ts";
import { jsonOf, markdownOf, missedOf, short, textOf } from "../report.ts";
import { medians } from "../rounds.ts";
import { newestFirst, runOf, type Run, type Setting } from "../runs.ts";
import { isMet, resultOf } from "../targets.ts";

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

  test("are absent if one side has no figure", () => {
    const { measures } = resultOf(caseWith(), { parley: { cpu: 3 }, official: { throughput: 1 } });
    expect(measures).toEqual({});
  });

  test("include the case's own", () => {
    expect(resultOf(caseWith(), { ...measured, measures: { growth: 1.1 } }).measures["growth"]).toBe(1.1);
  });
});

describe("a target", () => {
  const meets = (target: Omit<Target, "says">, more: Record<string, number> = {}): boolean =>
    isMet({ says: "it", ...target }, resultOf(caseWith(), { ...measured, measures: more }));

  test("is met at its bound and on the better side of it", () => {
    expect(meets({ measure: "throughputToOfficial", atLeast: 4 })).toBe(true);
    expect(meets({ measure: "throughputToOfficial", atLeast: 4.1 })).toBe(false);
    expect(meets({ measure: "cpuToRaw", atMost: 1.5 })).toBe(true);
    expect(meets({ measure: "cpuToRaw", atMost: 1.4 })).toBe(false);
  });

  test("is missed if it was not measured", () => {
    expect(meets({ measure: "nothing", atLeast: 1 })).toBe(false);
    expect(meets({ measure: "growth", atMost: 1 }, { growth: Number.NaN })).toBe(false);
  });
});

describe("the cases", () => {
  test("are those on the page, each with a target", () => {
    expect(cases.map(({ name }) => name)).toEqual([
      "message",
      "auth",
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
      "push",
      "cold",
      "client",
      "grpc",
      "grpc-stream",
      "cluster",
    ]);
    for (const { targets } of cases) expect(targets).not.toEqual([]);
  });
});

const setting: Setting = { date: "2026-01-01", node: "24.9.0", machine: "a machine", quick: false };

describe("the report", () => {
  const target = { says: "as fast", measure: "throughputToOfficial", atLeast: 5 };
  const result = resultOf(caseWith(target), measured);
  const run: Run = { setting, results: [result] };

  test("is one line of JSON a case for programs", () => {
    const line = jsonOf(result, setting);
    expect(line).not.toContain("\n");
    expect(JSON.parse(line)).toMatchObject({
      case: "one",
      setting,
      ...measured,
      measures: { throughputToOfficial: 4, cpuToOfficial: 0.25, cpuToRaw: 1.5 },
      targets: [{ says: "as fast", value: 4, atLeast: 5, met: false }],
    });
  });

  test("leaves out ratios without a meaning", () => {
    const line = jsonOf(resultOf(caseWith(), { parley: { p50: 1 } }), setting);
    expect(JSON.parse(line)).toMatchObject({ measures: {} });
  });

  test("tells people the result and the target", () => {
    expect(textOf(result)).toContain("missed  as fast: 4.00 × (≥ 5.00 ×)");
    expect(missedOf([run])).toBe("- `one`, as fast: 4.00 ×, wanted ≥ 5.00 ×");
    const told = { ...run, results: [resultOf({ ...caseWith(target), why: "The other one is slow." }, measured)] };
    expect(missedOf([told])).toContain("wanted ≥ 5.00 ×\n\n  The other one is slow.");
    const met = { ...run, results: [resultOf({ ...caseWith(), why: "It is not." }, measured)] };
    expect(missedOf([met])).toBe("None in this run.");
  });

  test("shows the versions of Node side by side, and compares the newest with the targets", () => {
    const across: Target = { says: "no dearer", measure: "cpuToOlderNode", atMost: 1, acrossNodes: true };
    const one = caseWith(target, across);
    const newer: Run = { setting, results: [resultOf(one, { ...measured, notes: ["Said twice.", "On 24."] })] };
    const faster = { ...measured, parley: { throughput: 1800, cpu: 60 }, notes: ["Said twice.", "On 20."] };
    const older: Run = { setting: { ...setting, node: "20.20.1" }, results: [resultOf(one, faster)] };
    const page = markdownOf([newer, older], { Parley: "0.0.0" });
    expect(page).toContain("Measured on 2026-01-01: a machine; Node 24.9.0, Node 20.20.1, Parley 0.0.0.");
    expect(page).toContain("| Case | What | Target | Node 24 | Node 20 |  |");
    expect(page).toContain("| `one` | as fast | ≥ 5.00 × | 4.00 × | 6.00 × | **missed** |");
    expect(page).toContain("| `one` | no dearer | ≤ 1.00 × | 0.50 × | – | met |");
    expect(page).toContain("| parley | 24 | 1,200 | – | – | 30.0 | – |\n| parley | 20 | 1,800 | – | – | 60.0 | – |");
    expect(page).toContain("Said twice.\n\nNode 24: On 24.\n\nNode 20: On 20.");
    expect(textOf(newer.results[0] ?? result)).not.toContain("no dearer");
  });

  test("reads what it wrote for programs", () => {
    const written = (node: string): string => jsonOf(result, { ...setting, node });
    const again = runOf(`${jsonOf(resultOf(caseWith(target), { parley: {} }), setting)}\n${written("24.9.0")}\n`, [
      caseWith(target),
    ]);
    expect(again.setting).toEqual(setting);
    expect(again.results[0]?.measured).toMatchObject(measured);
    expect(again.results[0]?.measures).toEqual(result.measures);
    expect(newestFirst([{ ...again, setting: { ...setting, node: "20.1.0" } }, again])[0]).toBe(again);
    expect(() => runOf("", [])).toThrow("no results");
    expect(() => runOf(written("24.9.0"), [{ ...caseWith(), name: "two" }])).toThrow("lack the case two");
    expect(() => runOf(jsonOf(result, { ...setting, quick: true }), [])).toThrow("--quick");
  });

  test("says if the machine was busy when a measurement began", () => {
    const page = (load: number): string => markdownOf([{ ...run, setting: { ...setting, load } }], {});
    expect(page(0.2)).not.toContain("busy");
    expect(page(1.5)).toContain("busy with other work**: 1.50 processes for each core");
  });

  test("writes only the separately measured part of a case, and keeps it when the rest is written", () => {
    const all = [caseWith(target), { ...caseWith(target), name: "two", apart: true as const }];
    const line = (name: string, per: number): string =>
      jsonOf(resultOf({ ...caseWith(target), name }, { parley: { throughput: per } }), setting);
    const template = "T <!-- missed --> <!-- figures -->\n<!-- two -->\n\n<!-- end of two -->\nend";
    const write = (before: string, ...texts: string[]): string =>
      pageOf(texts, all, { before, template, versions: { Parley: "0.0.0", other: "1" } });
    const common = write("", line("one", 1111));
    expect(common).toMatch(/^T .*\n[^]*1,111[^]*<!-- two -->\n+<!-- end of two -->\nend$/);
    const both = write(common, line("two", 2222));
    expect(both).toMatch(
      /1,111[^]*<!-- two -->[^]*Parley 0\.0\.0\.[^]*2,222[^]*- `two`, as fast[^]*<!-- end of two -->/,
    );
    expect(both).not.toContain(
      "other 1.\n\n| Case | What | Target | Node 24 |  |\n| --- | --- | --- | --- | --- |\n| `two`",
    );
    // A second write with other figures replaces the part, and keeps the other one.
    const again = write(both, line("two", 3333));
    expect(again).not.toContain("2,222");
    expect(again).toMatch(/1,111[^]*3,333/);
    expect(write(again, line("one", 4444))).toMatch(/4,444[^]*3,333/);
    expect(write(again, line("one", 4444), line("two", 5555))).toMatch(/4,444[^]*5,555/);
    expect(() => write(again)).toThrow("needs the files");
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
  test("take quantiles of the observations", () => {
    const hundred = Array.from({ length: 100 }, (_, at) => 100 - at);
    expect(summary(hundred)).toEqual({ p50: 50, p99: 99 });
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });

  test("take the median of each figure separately", () => {
    const rounds = [{ throughput: 1, cpu: 9 }, { throughput: 3, cpu: 7 }, { throughput: 2 }];
    expect(medians(rounds)).toEqual({ throughput: 2, cpu: 7 });
    expect(medians([])).toEqual({});
  });

  test("extrapolate quadratic time", () => {
    const at = (chunks: number) => ({ chunks, seconds: 0.001 * chunks + 0.00002 * chunks ** 2 });
    expect(extrapolated(16_000, at(1_000), at(3_000))).toBeCloseTo(at(16_000).seconds, 6);
  });
});
