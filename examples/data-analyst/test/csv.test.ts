import { describe, expect, it } from "vitest";
import { openTable, readRows } from "../src/csv/table.ts";
import { isMissing, readBoolean, readDate, readDayFirst, readMonthFirst, readNumber } from "../src/csv/values.ts";
import { Refusal } from "../src/refusal.ts";
import { all, dataset, largeCsv, never, tableOf } from "./support.ts";

async function rowsOf(...parameters: Parameters<typeof tableOf>): Promise<readonly (readonly string[])[]> {
  return (await all(readRows(tableOf(...parameters), never))).flatMap(({ rows }) => rows);
}

function refusalOf(work: () => unknown): Refusal {
  try {
    work();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error("It was taken");
}

describe("the format of a table", () => {
  it.each([
    [",", "a,b,c\n1,2,3\n4,5,6\n"],
    [";", "a;b;c\n1,5;2;3\n4;5,5;6\n"],
    ["\t", "a\tb\tc\n1\t2, too\t3\n4\t5\t6\n"],
    ["|", "a|b|c\n1|2|3\n4|5|6\n"],
  ])("finds the separator %j", async (delimiter, text) => {
    expect(tableOf(text)).toMatchObject({ delimiter, columns: ["a", "b", "c"], header: true });
    expect(await rowsOf(text)).toHaveLength(2);
  });

  it.each([
    ["UTF-8 with a mark", Buffer.from("\ufeffnäme,v\nÅsa,1\n", "utf8")],
    ["UTF-16LE with a mark", Buffer.from("\ufeffnäme,v\nÅsa,1\n", "utf16le")],
    ["UTF-16LE without one", Buffer.from("näme,v\nÅsa,1\n", "utf16le")],
    ["UTF-16BE with a mark", Buffer.from("\ufeffnäme,v\nÅsa,1\n", "utf16le").swap16()],
    ["windows-1252", Buffer.from("näme,v\nÅsa,1\n", "latin1")],
  ])("reads %s", async (_, bytes) => {
    const table = openTable("t.csv", bytes);
    expect(table.columns).toEqual(["näme", "v"]);
    const [batch] = await all(readRows(table, never));
    expect(batch?.rows).toEqual([["Åsa", "1"]]);
  });

  it("keeps quoted separators, quotes and line breaks inside their field", async () => {
    expect(await rowsOf('a,b\n"x, ""y""\nz",2\n')).toEqual([['x, "y"\nz', "2"]]);
  });

  it("names the columns of a table without names, and makes names unique", () => {
    expect(tableOf("1,2012-01-01\n2,2012-01-02\n")).toMatchObject({ header: false, columns: ["column 1", "column 2"] });
    expect(tableOf("a,a,,a\n1,2,3,4\n").columns).toEqual(["a", "a (2)", "column 3", "a (3)"]);
  });

  it("uses years in the first row as names", () => {
    expect(tableOf("country,2010,2011\nPeru,5,6\nChile,7,8\n")).toMatchObject({
      header: true,
      columns: ["country", "2010", "2011"],
    });
  });

  it("skips a title above the names", async () => {
    const text = "Rainfall of two years\n\nyear,mm\n2012,800\n2013,900\n";
    expect(tableOf(text).columns).toEqual(["year", "mm"]);
    expect(await rowsOf(text)).toEqual([
      ["2012", "800"],
      ["2013", "900"],
    ]);
  });

  it("makes rows of the wrong length fit, and counts them", async () => {
    const good = Array.from({ length: 20 }, (_, row) => `${row},x,y`).join("\n");
    const batches = await all(readRows(tableOf(`a,b,c\n${good}\n1,2\n1,2,3,4\n`), never));
    const rows = batches.flatMap((batch) => batch.rows);
    expect(rows.slice(-2)).toEqual([
      ["1", "2", ""],
      ["1", "2", "3"],
    ]);
    expect(batches.at(-1)?.ragged).toBe(2);
  });

  it.each(["weather.csv", "seattle-weather.csv", "flights-airport.csv"])("reads the real %s", async (name) => {
    const text = Buffer.from(dataset(name)).toString("utf8").trim().split("\n");
    const table = openTable(name, dataset(name));
    expect(table.columns).toEqual(text[0]?.trim().split(","));
    const rows = (await all(readRows(table, never))).flatMap((batch) => batch.rows);
    expect(rows).toHaveLength(text.length - 1);
    expect(rows.at(-1)).toEqual(text.at(-1)?.trim().split(","));
  });
});

describe("invalid tables", () => {
  const prose =
    "Dear Ann,\nit rained all day, so we stayed in.\nTomorrow we will try again, the forecast is good, or so they say.\nYours\n";
  it.each([
    ["nothing", "", /empty/],
    ["white space", " \n\n ", /empty/],
    ["a web page", "<!DOCTYPE html>\n<html><body>a,b</body></html>", /HTML/],
    ["XML", '<?xml version="1.0"?>\n<rows><row a="1"/></rows>', /XML/],
    ["a JSON object", '{"a": 1,\n "b": [1, 2]}', /JSON/],
    ["a JSON list", "[[1,2],[3,4]]", /JSON/],
    ["JSON lines", '{"a":1}\n{"a":2}\n', /JSON/],
    ["a letter", prose, /number of fields|no columns/],
    ["a list of sentences", "one line\nanother line\nand one more\n", /no columns/],
    ["a row of names alone", "a,b,c\n", /no rows below/],
    ["an Excel workbook", "PK\x03\x04\x14\x00\x06\x00", /Excel.*CSV/],
    ["a PDF", "%PDF-1.7\n%âãÏÓ", /PDF/],
    ["bytes", "\x00\x01\x02\x03\x00\xff\x00,\n\x07", /binary/],
    ["rows of any length", "a,b\n1,2,3,4\n5,5,5\n6,7,8\n9,1,2,3,4,5\n1,1\n", /number of fields/],
  ])("rejects %s, and says what it is", (_, text, message) => {
    const refusal = refusalOf(() => openTable("t.csv", Buffer.from(text, "latin1")));
    expect(refusal.outcome).toBe("rejected");
    expect(refusal.message).toMatch(message);
  });

  it("accepts a single column of numbers", () => {
    expect(tableOf("level\n1.5\n2.5\n3\n").columns).toEqual(["level"]);
  });

  it("fails on a quote that is never closed, and says where", async () => {
    const text = `a,b\n${"1,2\n".repeat(30_000)}3,"open\n${"4,5\n".repeat(30_000)}`;
    await expect(rowsOf(text)).rejects.toThrow(/after row 30000 is never closed/);
  });

  it("fails when a file becomes invalid after a valid beginning", async () => {
    const text = `a,b\n${"1,2\n".repeat(70_000)}${"1,2,3\n".repeat(70_000)}`;
    await expect(rowsOf(text)).rejects.toMatchObject({
      outcome: "failed",
      message: expect.stringMatching(/too many to repair/),
    });
  });
});

describe("reading a large table", () => {
  it("stops at the signal, and yields to the event loop", async () => {
    const table = tableOf(largeCsv(50_000));
    const controller = new AbortController();
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
      if (ticks === 2) controller.abort(new Error("enough"));
    }, 0);
    let rows = 0;
    const reading = (async () => {
      for await (const batch of readRows(table, controller.signal)) rows += batch.rows.length;
    })();
    await expect(reading).rejects.toThrow("enough");
    clearInterval(timer);
    expect(rows).toBeLessThan(50_000);
  });
});

describe("values", () => {
  it.each<[string, boolean, number | undefined]>([
    ["12", false, 12],
    [" -1.5e3 ", false, -1500],
    [".5", false, 0.5],
    ["1,234,567.5", false, 1_234_567.5],
    ["$1,200", false, 1200],
    ["-€3.50", false, -3.5],
    ["7 %", false, 7],
    ["1.234,5", true, 1234.5],
    ["0,5", true, 0.5],
    ["1.5", true, 1.5],
    ["007", false, undefined],
    ["1,23", false, undefined],
    ["1-2", false, undefined],
    ["$$1", false, undefined],
    ["1e999", false, undefined],
    ["Infinity", false, undefined],
    ["0x10", false, undefined],
    ["", false, undefined],
  ])("reads %j as a number (comma: %s): %s", (text, comma, value) => {
    expect(readNumber(text, comma)).toBe(value);
  });

  it.each([
    ["2012-01-31", "2012-01-31T00:00:00.000Z"],
    ["2012/1/5", "2012-01-05T00:00:00.000Z"],
    ["2012-03", "2012-03-01T00:00:00.000Z"],
    ["2012-01-31 13:45", "2012-01-31T13:45:00.000Z"],
    ["2012-01-31T13:45:10.25Z", "2012-01-31T13:45:10.250Z"],
    ["2012-01-31T13:45+02:00", "2012-01-31T11:45:00.000Z"],
    ["0099-01-01", "0099-01-01T00:00:00.000Z"],
    ["Jan 1 2000", "2000-01-01T00:00:00.000Z"],
    ["3 March 2004", "2004-03-03T00:00:00.000Z"],
    ["12/31/2012", "2012-12-31T00:00:00.000Z"],
    ["31.12.2012", "2012-12-31T00:00:00.000Z"],
  ])("reads %s as a date", (text, iso) => {
    expect(new Date(readDate(text) ?? NaN).toISOString()).toBe(iso);
  });

  it.each(["2012-13-01", "2012-02-30", "31/31/2012", "Foo 1 2000", "2012-01-01x", "12:30", "1.5"])(
    "does not read %s as one",
    (text) => {
      expect(readDate(text)).toBeUndefined();
    },
  );

  it("distinguishes the two orders of day and month", () => {
    expect(readMonthFirst("2/1/2012")).toBe(Date.UTC(2012, 1, 1));
    expect(readDayFirst("2/1/2012")).toBe(Date.UTC(2012, 0, 2));
    expect(readMonthFirst("13/1/2012")).toBeUndefined();
  });

  it("recognizes yes, no and missing values", () => {
    expect(["Yes", "FALSE", "t", "1"].map(readBoolean)).toEqual([true, false, true, undefined]);
    expect(["", " ", "NA", "n/a", "null", "-", "none", "0"].map(isMissing)).toEqual([
      true,
      true,
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
  });
});
