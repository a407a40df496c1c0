import { describe, expect, it } from "vitest";
import type { ColumnProfile } from "../src/profile/column.ts";
import { moments, quantile, sampleOf } from "../src/profile/numbers.ts";
import { profileData, profileText } from "../src/profile/report.ts";
import { openTable } from "../src/csv/table.ts";
import { dataset, profileOf, tableOf } from "./support.ts";

async function columnsOf(text: string): Promise<readonly ColumnProfile[]> {
  return (await profileOf(tableOf(text))).columns;
}

async function columnOf(name: string, values: readonly string[]): Promise<ColumnProfile> {
  const [column] = await columnsOf(
    `${name},other\n${values.map((value) => `"${value}",x${value.length}`).join("\n")}\n`,
  );
  if (column === undefined) throw new Error("No column");
  return column;
}

describe("real files", () => {
  it("finds the types and numbers of weather.csv", async () => {
    const profile = await profileOf(openTable("weather.csv", dataset("weather.csv")));
    expect(profile).toMatchObject({ rows: 2922, ragged: 0, header: true });
    expect(profile.columns.map(({ name, type }) => [name, type])).toEqual([
      ["location", "category"],
      ["date", "date"],
      ["precipitation", "number"],
      ["temp_max", "number"],
      ["temp_min", "number"],
      ["wind", "number"],
      ["weather", "category"],
    ]);
    const wind = Buffer.from(dataset("weather.csv"))
      .toString()
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => Number(line.split(",")[5]));
    const mean = wind.reduce((sum, value) => sum + value, 0) / wind.length;
    const sorted = Float64Array.from(wind).sort();
    const { numbers } = profile.columns[5] ?? {};
    expect(numbers?.mean).toBeCloseTo(mean, 9);
    expect(numbers?.stddev).toBeCloseTo(
      Math.sqrt(wind.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (wind.length - 1)),
      9,
    );
    expect(numbers).toMatchObject({
      min: 0.4,
      max: 16.2,
      median: quantile(sorted, 0.5),
      q95: quantile(sorted, 0.95),
      quantilesExact: true,
    });
    expect(profile.columns[6]?.top[0]).toEqual({ value: "sun", count: 1466 });
    expect(profile.columns[1]).toMatchObject({
      distinct: 1461,
      dates: { min: Date.UTC(2012, 0, 1), max: Date.UTC(2015, 11, 31) },
    });
  });

  it("finds those of seattle-weather.csv and flights-airport.csv", async () => {
    const seattle = await profileOf(openTable("seattle-weather.csv", dataset("seattle-weather.csv")));
    expect(seattle.rows).toBe(1461);
    expect(seattle.columns.map(({ type }) => type)).toEqual([
      "date",
      "number",
      "number",
      "number",
      "number",
      "category",
    ]);
    const flights = await profileOf(openTable("flights-airport.csv", dataset("flights-airport.csv")));
    expect(flights.rows).toBe(5366);
    expect(flights.columns.map(({ type, distinct }) => [type, distinct])).toEqual([
      ["category", 303],
      ["category", 304],
      ["integer", expect.any(Number)],
    ]);
  });

  it("streams its findings piece by piece, and the same as data", async () => {
    const profile = await profileOf(openTable("weather.csv", dataset("weather.csv")));
    const texts = profileText(profile);
    expect(texts).toHaveLength(8);
    expect(texts.join("")).toContain("- **weather**: category; 5 different values; most frequent sun (1,466)");
    expect(JSON.parse(JSON.stringify(profileData(profile)))).toEqual(profileData(profile));
    expect(profileData(profile)).toMatchObject({ rows: 2922, columns: { length: 7 } });
  });
});

describe("types", () => {
  it.each<[string, readonly string[], string]>([
    ["n", ["1", "2", "3"], "integer"],
    ["n", ["1", "2.5", "NA"], "number"],
    ["b", ["yes", "no", "Yes"], "boolean"],
    ["d", ["2012-01-01", "2012-01-02"], "date"],
    ["d", ["2012-01-01 10:00", "2012-01-02"], "datetime"],
    ["d", ["13/01/2012", "01/02/2012"], "date"],
    ["year", ["1999", "2000", "2001"], "date"],
    ["code", ["1999", "2000", "2001"], "integer"],
    ["zip", ["02139", "02140", "02141"], "category"],
    ["c", ["a", "b", "a"], "category"],
    ["e", ["", "NA", "-"], "empty"],
  ])("reads a column %s of %j as %s", async (name, values, type) => {
    expect((await columnOf(name, values)).type).toBe(type);
  });

  it("takes the order of day and month from the column, and says if it is ambiguous", async () => {
    expect((await columnOf("d", ["13/01/2012", "01/02/2012"])).dates).toMatchObject({
      format: "day first",
      max: Date.UTC(2012, 1, 1),
      ambiguous: false,
    });
    expect((await columnOf("d", ["01/13/2012", "01/02/2012"])).dates).toMatchObject({
      format: "month first",
      ambiguous: false,
    });
    expect((await columnOf("d", ["01/03/2012", "01/02/2012"])).dates).toMatchObject({
      format: "month first",
      ambiguous: true,
    });
  });

  it("leaves out a few values of another type, and counts them", async () => {
    const values = [...Array.from({ length: 99 }, (_, index) => String(index)), "about 7"];
    expect(await columnOf("n", values)).toMatchObject({ type: "integer", invalid: 1, numbers: { max: 98 } });
    expect((await columnOf("n", [...values, ...Array.from({ length: 9 }, () => "many")])).type).toBe("text");
  });
});

describe("bounded memory", () => {
  const rows = 30_000;
  const text = `id,value\n${Array.from({ length: rows }, (_, row) => `k${row},${(row * 7919) % 10_007}.5`).join("\n")}\n`;

  it("stops counting distinct values, and says so", async () => {
    const [id] = await columnsOf(text);
    expect(id).toMatchObject({ type: "text", count: rows, distinct: 10_000, distinctExact: false, top: [] });
    const [first, ...others] = profileText(await profileOf(tableOf(text)));
    expect(`${first}${others.join("")}`).toContain("more than 10,000 different values");
  });

  it("takes quantiles from a close sample, and says so", async () => {
    const [, value] = await columnsOf(text);
    expect(value?.numbers).toMatchObject({ quantilesExact: false, min: 0.5, max: 10_006.5 });
    expect(Math.abs((value?.numbers?.median ?? 0) - 5003.5)).toBeLessThan(300);
    expect(profileText(await profileOf(tableOf(text))).join("")).toContain("quartiles about");
  });

  it("gives the same result twice, sample included", async () => {
    expect(await profileOf(tableOf(text))).toEqual(await profileOf(tableOf(text)));
  });
});

describe("numbers", () => {
  it("adds without losing digits", () => {
    const found = moments();
    for (let index = 0; index < 100_000; index += 1) found.add(0.1);
    found.add(1e15);
    found.add(-1e15);
    expect(found.sum).toBe(10_000);
  });

  it("computes the spread of outliers", () => {
    const found = moments();
    for (const value of [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]) found.add(value);
    expect(found.stddev).toBeCloseTo(Math.sqrt(30), 9);
  });

  it("keeps every value while there is space", () => {
    const sample = sampleOf(3);
    [3, 1, 2].forEach((value) => sample.add(value));
    expect([...sample.sorted()]).toEqual([1, 2, 3]);
    expect(sample.exact).toBe(true);
    sample.add(4);
    expect(sample.exact).toBe(false);
    expect(sample.sorted()).toHaveLength(3);
  });
});
