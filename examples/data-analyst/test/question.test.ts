import { beforeAll, describe, expect, it } from "vitest";
import { openTable } from "../src/csv/table.ts";
import type { Profile } from "../src/profile/profile.ts";
import { askText, readAnswer } from "../src/question/ask.ts";
import { findColumns } from "../src/question/columns.ts";
import type { Answers, Ask, Plan } from "../src/question/plan.ts";
import { parseQuestion } from "../src/question/request.ts";
import { resolveChart } from "../src/question/resolve.ts";
import { dataset, profileOf, tableOf } from "./support.ts";

const profiles = new Map<string, Profile>();
const files = [
  "weather.csv",
  "seattle-weather.csv",
  "flights-airport.csv",
  "birdstrikes.csv",
  "github.csv",
  "zipcodes.csv",
];

beforeAll(async () => {
  for (const file of files) profiles.set(file, await profileOf(openTable(file, dataset(file))));
});

function resolve(file: string, question: string, answers: Answers = {}): Plan | Ask {
  const request = parseQuestion(question);
  const profile = profiles.get(file);
  if (request.kind !== "chart" || profile === undefined) throw new Error(`${question} is ${request.kind}`);
  return resolveChart(request, profile, answers);
}

describe("questions", () => {
  it.each([
    ["help", "help"],
    ["?", "help"],
    ["Hello there", "help"],
    ["What can you do?", "help"],
    ["", "help"],
    ["profile", "profile"],
    ["Describe the table, please", "profile"],
    ["summarize this data", "profile"],
    ["columns", "profile"],
    ["what are the columns?", "profile"],
    ["table", "rows"],
    ["show the first 5 rows", "rows"],
    ["preview", "rows"],
    ["chart a by b", "chart"],
    ["distribution of wind", "chart"],
    ["profile wind by weather", "chart"],
  ])("takes “%s” for %s", (text, kind) => {
    expect(parseQuestion(text).kind).toBe(kind);
  });

  it("counts rows", () => {
    expect(parseQuestion("show me the first 25 rows")).toEqual({ kind: "rows", count: 25 });
    expect(parseQuestion("head")).toEqual({ kind: "rows", count: 10 });
  });

  it("leaves a column called “a” alone", () => {
    expect(parseQuestion("chart a by b")).toMatchObject({ measures: [{ words: "a" }], by: "b" });
  });
});

describe("plans", () => {
  it.each<[string, string, string, object]>([
    [
      "weather.csv",
      "chart average temp_max by month",
      "Average temp_max by month",
      { mark: "line", group: { unit: "month" } },
    ],
    [
      "weather.csv",
      "Please plot the mean of temp max per year!",
      "Average temp_max by year",
      { group: { unit: "year" } },
    ],
    [
      "weather.csv",
      "show me a line chart of wind over date",
      "Average wind by date",
      { mark: "line", group: { unit: "day" } },
    ],
    [
      "seattle-weather.csv",
      "plot wind over time",
      "Wind by date",
      { measures: [{ aggregate: "mean", label: "wind" }] },
    ],
    [
      "weather.csv",
      "bar chart of count by weather",
      "Number of rows by weather",
      { mark: "bar", group: { kind: "value" } },
    ],
    ["weather.csv", "how many rows per weather?", "Number of rows by weather", {}],
    [
      "weather.csv",
      "show the distribution of precipitation",
      "Distribution of precipitation",
      { group: { kind: "bin", step: 5 } },
    ],
    [
      "weather.csv",
      "histogram of wind by location",
      "Distribution of wind, for each location",
      { split: { name: "location" } },
    ],
    [
      "weather.csv",
      "chart temp_max and temp_min by month of the year",
      "Average temp_max and average temp_min by month of the year",
      {},
    ],
    [
      "weather.csv",
      "plot temp_max vs temp_min, split by location",
      "temp_max against temp_min, for each location",
      { kind: "points" },
    ],
    ["weather.csv", "average wind by temp_max", "Average wind by temp_max", { group: { kind: "bin" } }],
    [
      "weather.csv",
      "chart total precipitation by month for Seattle",
      "Total precipitation by month, where location is Seattle",
      {},
    ],
    [
      "weather.csv",
      "chart max wind by weather where location is new york",
      "Highest wind by weather, where location is New York",
      {},
    ],
    [
      "weather.csv",
      "chart average wind by month in 2013",
      "Average wind by month, in 2013",
      { filter: { kind: "year" } },
    ],
    [
      "weather.csv",
      "chart weather by location",
      "Number of rows by location, for each weather",
      { split: { name: "weather" } },
    ],
    ["weather.csv", "count by month and weather", "Number of rows by month, for each weather", { mark: "bar" }],
    ["weather.csv", "what is the median wind?", "Median wind", { measures: [{ aggregate: "median" }] }],
    ["weather.csv", "average max temp per weekday", "Average temp_max by day of the week", {}],
    ["flights-airport.csv", "chart count by origin", "Total count by origin", {}],
    ["flights-airport.csv", "top 10 origins by count", "Total count by origin", { limit: { count: 10, from: "top" } }],
    [
      "flights-airport.csv",
      "top 5 destinations by average count",
      "Average count by destination",
      { limit: { count: 5, from: "top" } },
    ],
    ["flights-airport.csv", "number of rows by destination", "Number of rows by destination", {}],
    ["birdstrikes.csv", "average speed by wildlife size", "Average Speed IAS in knots by Wildlife Size", {}],
    [
      "birdstrikes.csv",
      "chart wildlife size by phase of flight",
      "Number of rows by Phase of flight, for each Wildlife Size",
      {},
    ],
    ["github.csv", "chart count by hour of the day", "Total count by hour of the day", {}],
  ])("%s: “%s” is “%s”", (file, question, title, plan) => {
    expect(resolve(file, question)).toMatchObject({ title, ...plan });
  });

  it("states its assumptions", () => {
    expect(resolve("weather.csv", "chart wind by weather")).toMatchObject({
      notes: [expect.stringContaining("this is the average")],
    });
    expect(resolve("weather.csv", "chart average wind by weather")).toMatchObject({ notes: [] });
    expect(resolve("weather.csv", "chart average wind by month")).toMatchObject({
      notes: [expect.stringContaining("month of the year")],
    });
  });

  it("tolerates typos and other spellings of a name", () => {
    for (const words of ["precipitaton", "Precipitation", "precip", "`precipitation`"]) {
      expect(resolve("weather.csv", `chart total ${words} by location`)).toMatchObject({
        title: "Total precipitation by location",
      });
    }
  });
});

describe("questions back to the user", () => {
  it.each<[string, string, RegExp, readonly string[]]>([
    ["weather.csv", "chart temp by month", /by “temp”/, ["temp_max", "temp_min"]],
    [
      "weather.csv",
      "chart average by month",
      /The average of which column/,
      ["precipitation", "temp_max", "temp_min", "wind"],
    ],
    [
      "weather.csv",
      "chart foo by month",
      /no column like “foo”/,
      ["count rows", "precipitation", "temp_max", "temp_min", "wind"],
    ],
    ["weather.csv", "chart wind by foo", /no column like “foo”/, ["location", "date", "weather"]],
    [
      "weather.csv",
      "chart average weather by month",
      /no average of those/,
      ["count rows", "precipitation", "temp_max", "temp_min", "wind"],
    ],
    ["weather.csv", "chart wind", /by what/, ["by location", "by date", "by weather", "the distribution of wind"]],
    ["weather.csv", "draw a chart", /What shall I chart/, ["by location", "by date", "by weather"]],
    ["weather.csv", "chart wind by month for Boston", /“boston”/, ["location", "weather"]],
    ["flights-airport.csv", "number of flights by origin", /count rows, or add up/, ["add up count", "count rows"]],
    ["flights-airport.csv", "chart count by month", /no dates/, ["origin", "destination"]],
    ["zipcodes.csv", "count by city", /more than 10,000 different values/, ["latitude", "longitude", "state"]],
  ])("%s: “%s” asks", (file, question, prompt, labels) => {
    const ask = resolve(file, question) as Ask;
    expect(ask.prompt).toMatch(prompt);
    expect(ask.choices.map(({ label }) => label)).toEqual(labels);
    expect(askText(ask)).toContain(`1. ${labels[0]}`);
  });

  it("asks which of two date columns", async () => {
    const table = tableOf("ordered,shipped,price\n2020-01-01,2020-01-03,5\n2020-02-01,2020-02-04,6\n");
    const request = parseQuestion("chart average price by month");
    if (request.kind !== "chart") throw new Error("no chart");
    const profile = await profileOf(table);
    const ask = resolveChart(request, profile, {}) as Ask;
    expect(ask.choices.map(({ value }) => value)).toEqual(["ordered", "shipped"]);
    expect(resolveChart(request, profile, { [ask.key]: ["shipped"] })).toMatchObject({
      group: { column: { name: "shipped" } },
    });
    const named = parseQuestion("chart average price by month of ordered");
    expect(named.kind === "chart" && resolveChart(named, profile, {})).toMatchObject({
      group: { column: { name: "ordered" } },
    });
  });

  it("continues with the answer, one question after the other", () => {
    const first = resolve("weather.csv", "chart temp by foo") as Ask;
    const second = resolve("weather.csv", "chart temp by foo", { [first.key]: ["temp_max", "temp_min"] }) as Ask;
    const answers = { [first.key]: ["temp_max", "temp_min"], [second.key]: ["weather"] };
    expect(resolve("weather.csv", "chart temp by foo", answers)).toMatchObject({
      title: "Average temp_max and average temp_min by weather",
    });
  });

  it("counts rows if that is the answer", () => {
    const ask = resolve("weather.csv", "chart average weather by month") as Ask;
    expect(
      resolve("weather.csv", "chart average weather by month", { [ask.key]: [ask.choices[0]?.value ?? ""] }),
    ).toMatchObject({
      title: "Number of rows by month",
    });
  });
});

describe("answers", () => {
  const ask: Ask = {
    key: "k",
    prompt: "Which?",
    choices: ["temp_max", "temp_min", "wind"].map((name) => ({ value: name, label: `by ${name}` })),
    several: true,
  };
  it.each<[string, readonly string[] | undefined]>([
    ["temp_max", ["temp_max"]],
    ["the max temp, please", undefined],
    ["max temp", ["temp_max"]],
    ["2", ["temp_min"]],
    ["#3.", ["wind"]],
    ["by wind", ["wind"]],
    ["1 and 3", ["temp_max", "wind"]],
    ["temp_min, wind", ["temp_min", "wind"]],
    ["all", ["temp_max", "temp_min", "wind"]],
    ["temp", undefined],
    ["7", undefined],
    ["none of your business", undefined],
  ])("reads “%s”", (text, taken) => {
    expect(readAnswer(text, ask)).toEqual(taken);
  });

  it("accepts one if one is requested", () => {
    const { several: _, ...single } = ask;
    expect(readAnswer("all", single)).toBeUndefined();
    expect(readAnswer("wind", single)).toEqual(["wind"]);
  });
});

describe("columns by their words", () => {
  const columns = ["temp_max", "tempMin", "Order Date", "order_id", "count"].map((name) => ({ name }));
  it.each<[string, readonly string[]]>([
    ["temp_max", ["temp_max"]],
    ["max temp", ["temp_max"]],
    ["temp min", ["tempMin"]],
    ["temp", ["temp_max", "tempMin"]],
    ["order", ["Order Date", "order_id"]],
    ["orders date", ["Order Date"]],
    ["counts", ["count"]],
    ["tmep max", ["temp_max"]],
    ["nothing", []],
    ["", []],
  ])("“%s” finds %j", (words, names) => {
    expect(findColumns(words, columns).map(({ name }) => name)).toEqual(names);
  });
});
