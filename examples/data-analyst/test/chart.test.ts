import { describe, expect, it } from "vitest";
import { collect, isPoints, type Grouped, type Numbers } from "../src/chart/collect.ts";
import { renderSvg } from "../src/chart/render.ts";
import { chartData, chartTable, chartText } from "../src/chart/report.ts";
import { specOf } from "../src/chart/spec.ts";
import { openTable, type Table } from "../src/csv/table.ts";
import { parseQuestion } from "../src/question/request.ts";
import { resolveChart } from "../src/question/resolve.ts";
import { dataset, never, profileOf, resultOf, tableOf } from "./support.ts";

async function answer(table: Table, question: string): Promise<Numbers> {
  const request = parseQuestion(question);
  if (request.kind !== "chart") throw new Error(`${question} is ${request.kind}`);
  const plan = resolveChart(request, await profileOf(table), {});
  if ("prompt" in plan) throw new Error(plan.prompt);
  return resultOf(collect(table, plan, never));
}

async function grouped(table: Table, question: string): Promise<Grouped> {
  const numbers = await answer(table, question);
  if (isPoints(numbers)) throw new Error("Points");
  return numbers;
}

const real = (name: string): Table => openTable(name, dataset(name));

/** The rows of a simple file, read in another way. */
function linesOf(name: string): readonly (readonly string[])[] {
  return Buffer.from(dataset(name))
    .toString()
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(","));
}

describe("the numbers of a chart", () => {
  it("are the averages of each month", async () => {
    const months = new Map<string, number[]>();
    for (const [date = "", , temperature] of linesOf("seattle-weather.csv")) {
      const month = date.slice(0, 7);
      months.set(month, [...(months.get(month) ?? []), Number(temperature)]);
    }
    const { groups, rowsRead, rowsUsed } = await grouped(
      real("seattle-weather.csv"),
      "chart average temp_max by month",
    );
    expect([rowsRead, rowsUsed]).toEqual([1461, 1461]);
    expect(groups.map(({ label }) => label)).toEqual([...months.keys()].sort());
    for (const { label, rows, values } of groups) {
      const all = months.get(label) ?? [];
      expect(rows).toBe(all.length);
      expect(values[0]).toBeCloseTo(all.reduce((sum, value) => sum + value, 0) / all.length, 9);
    }
  });

  it("are the totals of the busiest airports, largest first", async () => {
    const totals = new Map<string, number>();
    for (const [origin = "", , count] of linesOf("flights-airport.csv"))
      totals.set(origin, (totals.get(origin) ?? 0) + Number(count));
    const best = [...totals].sort((left, right) => right[1] - left[1]).slice(0, 10);
    const numbers = await grouped(real("flights-airport.csv"), "top 10 origins by count");
    expect(numbers.groups.map(({ label, values }) => [label, values[0]])).toEqual(best);
    expect(numbers.groupsOmitted).toBe(totals.size - 10);
  });

  it("count rows by two columns", async () => {
    const { groups, series } = await grouped(real("weather.csv"), "chart weather by location");
    expect(series).toEqual(["sun", "rain", "fog", "snow", "drizzle"]);
    const expected = linesOf("weather.csv").filter((row) => row[0] === "Seattle" && row[6] === "rain").length;
    expect(groups.find((group) => group.label === "Seattle" && group.series === "rain")?.values).toEqual([expected]);
    expect(groups.reduce((sum, { rows }) => sum + rows, 0)).toBe(2922);
  });

  it("are those of the requested rows", async () => {
    const numbers = await grouped(real("weather.csv"), "chart total precipitation by year for Seattle");
    const expected = linesOf("weather.csv")
      .filter((row) => row[0] === "Seattle" && row[1]?.startsWith("2014"))
      .reduce((sum, row) => sum + Number(row[2]), 0);
    expect(numbers.groups.find(({ label }) => label === "2014")?.values[0]).toBeCloseTo(expected, 6);
    expect(numbers.rowsUsed).toBe(1461);
  });

  it("put every value of a distribution into one bin", async () => {
    const { groups } = await grouped(real("weather.csv"), "distribution of wind");
    expect(groups.reduce((sum, { rows }) => sum + rows, 0)).toBe(2922);
    expect(groups.map(({ key }) => Number(key))).toEqual(
      groups.map(({ key }) => Number(key)).toSorted((a, b) => a - b),
    );
    const decimals = tableOf(`v,w\n${[0, 0.1, 0.2, 0.3, 0.6, 0.7, 3].map((value) => `${value},x`).join("\n")}\n`);
    for (const { label, key } of (await grouped(decimals, "distribution of v")).groups)
      expect(label.startsWith(String(key))).toBe(true);
  });

  it("sample points if there are too many", async () => {
    const numbers = await answer(real("weather.csv"), "plot temp_max against temp_min");
    expect(isPoints(numbers) && numbers.points.length).toBe(1500);
    expect(chartText(numbers)).toContain("random sample of 1,500 rows");
    expect(await answer(real("weather.csv"), "plot temp_max against temp_min")).toEqual(numbers);
  });

  it.each([
    ["quarter", ["2020-Q1", "2020-Q2"]],
    ["week", ["2020-03-30", "2020-04-06"]],
    ["day of the week", ["Tue", "Wed"]],
    ["month of the year", ["Mar", "Apr"]],
    ["hour of the day", ["23:00", "00:00"].toSorted()],
    ["hour", ["2020-03-31T23:00", "2020-04-08T00:00"]],
  ])("group time by %s", async (unit, labels) => {
    const table = tableOf("at,v\n2020-03-31 23:30,1\n2020-04-08 00:15,2\n");
    expect((await grouped(table, `chart average v by ${unit}`)).groups.map(({ label }) => label)).toEqual(labels);
  });

  it("have no value if a group has no number", async () => {
    const table = tableOf("k,v\na,1\na,2\nb,NA\nb,\nc,3\n");
    const { groups } = await grouped(table, "average v by k");
    expect(groups.map(({ label, values }) => [label, values[0]])).toEqual([
      ["c", 3],
      ["a", 1.5],
      ["b", null],
    ]);
  });

  it("are a single number if no chart was requested", async () => {
    const numbers = await grouped(real("seattle-weather.csv"), "what is the median wind?");
    expect(chartText(numbers)).toBe("Median wind. The median wind is 3.");
    expect(chartData("t", numbers)).toMatchObject({ kind: "number", groups: [{ values: { "median wind": 3 } }] });
  });
});

describe("the picture", () => {
  const questions = [
    "chart average temp_max by month",
    "bar chart of count by weather",
    "show the distribution of precipitation",
    "chart weather by location",
    "chart temp_max and temp_min by month of the year",
    "area chart of total precipitation by month and location",
    "plot temp_max against temp_min, split by location",
    "line chart of average wind by weather",
  ];

  it.each(questions)("of “%s” is drawn with a title, axes and marks, the same each time", async (question) => {
    const numbers = await answer(real("weather.csv"), question);
    const draw = (): Promise<string> => renderSvg(specOf(numbers, "weather.csv, 2,922 rows"));
    const svg = await draw();
    expect(svg).toMatch(/^<svg [^>]*width="\d+[^>]*height="\d+/);
    expect(svg).toContain(numbers.plan.title);
    expect(svg).toContain("weather.csv, 2,922 rows");
    expect(svg.match(/<path [^>]*d="[^"]{3,}"/g)?.length).toBeGreaterThan(2);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
    expect(await draw()).toBe(svg);
    expect(await Promise.all([draw(), draw()])).toEqual([svg, svg]);
  });

  it("uses names of columns and values only as text", async () => {
    const table = tableOf(`"a.b[0]","<script>alert('1')</script>"\nx<y&z,1\n"datum[""q""]",2\n`);
    const numbers = await answer(table, "chart average script alert by a.b[0]");
    const svg = await renderSvg(specOf(numbers, "<b>&"));
    expect(svg).not.toContain("<script");
    expect(svg).toContain("x&lt;y&amp;z");
    expect(svg).toContain("a.b[0]");
    expect(svg).toContain("&lt;b&gt;&amp;");
  });

  it("shows time along its axis and names largest first", async () => {
    const svg = await renderSvg(specOf(await answer(real("flights-airport.csv"), "top 3 origins by count"), ""));
    const places = ["ATL", "ORD", "DFW"].map((name) => svg.indexOf(`>${name}<`));
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
    const time = await renderSvg(specOf(await answer(real("seattle-weather.csv"), "chart average wind by month"), ""));
    for (const year of ["2012", "2013", "2014", "2015"]) expect(time).toContain(`>${year}<`);
  });
});

describe("the answer in text", () => {
  it("names the highest and the lowest, and what was left out", async () => {
    const text = chartText(await answer(real("flights-airport.csv"), "chart total count by origin"));
    expect(text).toBe(
      "Total count by origin. Highest: ATL (414,513); lowest of those shown: CLE (65,795). Left out: 273 more groups.",
    );
  });

  it("is a table for callers who cannot see images", async () => {
    const table = chartTable(await answer(tableOf("k|1,v\nx|y,1\nz,2\n"), "average v by k|1"));
    expect(table).toBe("| k\\|1 | average v |\n| --- | --- |\n| z | 2 |\n| x\\|y | 1 |");
  });

  it("is the same as data, in plain JSON", async () => {
    const data = chartData("weather.csv", await answer(real("weather.csv"), "chart average wind by weather"));
    expect(JSON.parse(JSON.stringify(data))).toEqual(data);
    expect(data).toMatchObject({
      title: "Average wind by weather",
      table: "weather.csv",
      by: "weather",
      measures: [{ aggregate: "mean", column: "wind" }],
      rowsRead: 2922,
    });
  });
});
