import { describe, expect, it } from "vitest";
import type { Value } from "../../src/sqlite/driver.ts";
import { openLibsql } from "../../src/sqlite/libsql.ts";
import { decodeName, encodeJson, encodeName } from "../../src/sqlite/text.ts";

describe("the driver over libsql", () => {
  it("refuses values that the library would take for others or die of, and wrong numbers of them", () => {
    const driver = openLibsql(":memory:");
    const select = driver.prepare("SELECT ?, ?");
    const bad = [true, undefined, 1.5, NaN, Infinity, 2 ** 53, 1n, "a\0b", {}, [1], new Date()] as readonly Value[];
    for (const value of bad) expect(() => select.get("x", value), String(value)).toThrow(TypeError);
    for (const values of [[], [1], [1, 2, 3]]) expect(() => select.all(...values)).toThrow(TypeError);
    expect(select.get(Number.MAX_SAFE_INTEGER, null)).toEqual([Number.MAX_SAFE_INTEGER, null]);
    expect(select.all(-1, "😀")).toEqual([[-1, "😀"]]);
    driver.close();
  });

  it("rolls back what threw, and says how many rows a statement changed", () => {
    const driver = openLibsql(":memory:");
    driver.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT) STRICT");
    const insert = driver.prepare("INSERT INTO t (v) VALUES (?)");
    expect(driver.transaction("write", () => insert.run("a"))).toEqual({ changes: 1, lastId: 1 });
    expect(() =>
      driver.transaction("write", () => {
        insert.run("b");
        throw new RangeError("no");
      }),
    ).toThrow(RangeError);
    expect(driver.prepare("SELECT v FROM t").all()).toEqual([["a"]]);
    expect(driver.prepare("UPDATE t SET v = 'c'").run().changes).toBe(1);
    driver.close();
  });

  it("is closed for good: its statements too", () => {
    const driver = openLibsql(":memory:");
    const select = driver.prepare("SELECT 1");
    driver.close();
    driver.close();
    expect(() => select.get()).toThrow(TypeError);
    expect(() => driver.prepare("SELECT 1")).toThrow(TypeError);
    expect(() => driver.exec("SELECT 1")).toThrow(TypeError);
  });
});

describe("names and JSON as text that SQLite holds", () => {
  it("names come back as they were, and no two become one", () => {
    const names = [
      "",
      "plain",
      "a\0",
      "a\0b",
      "\\u0000",
      '"',
      "\\",
      "\ud800",
      "\udc00",
      "\ufffd",
      "😀",
      "\n",
      "é",
      "e\u0301",
    ];
    const encoded = names.map(encodeName);
    expect(encoded.map(decodeName)).toEqual(names);
    expect(new Set(encoded).size).toBe(names.length);
    for (const text of encoded) expect(text).not.toContain("\0");
  });

  it("JSON keeps its meaning, also with a lone surrogate in a string", () => {
    const json = '{"a":"x\ud800","b":"😀"}';
    expect(JSON.parse(encodeJson(json))).toEqual(JSON.parse(json));
    expect(Buffer.from(encodeJson(json)).toString()).toBe(encodeJson(json));
  });
});
