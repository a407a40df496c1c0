import { describe, expect, it } from "vitest";
import { defaultDriver, loadDriver } from "../../src/sqlite/libraries.ts";
import { decodeName, encodeJson, encodeName } from "../../src/sqlite/rows.ts";
import { driverContract } from "./driver-contract.ts";
import { drivers } from "./drivers.ts";

describe.each(drivers)("the driver %s", async (name) => {
  driverContract({ describe, it, expect }, await loadDriver(name));
});

it("the drivers that this version of Node must have are available", () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const hasOwn = major > 22 || (major === 22 && minor >= 16);
  expect(drivers).toEqual(hasOwn ? ["node:sqlite", "libsql"] : ["libsql"]);
  expect(defaultDriver()).toBe(drivers[0]);
});

describe("names and JSON as text of SQLite", () => {
  it("keeps names unchanged and distinct", () => {
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

  it("keeps the value of JSON, even with a lone surrogate in a string", () => {
    const json = '{"a":"x\ud800","b":"😀"}';
    expect(JSON.parse(encodeJson(json))).toEqual(JSON.parse(json));
    expect(Buffer.from(encodeJson(json)).toString()).toBe(encodeJson(json));
  });
});
