import { describe, expect, test } from "vitest";
import { check } from "../src/judge/assert.ts";
import type { Json } from "../src/acts/format.ts";
import { find, findAll, holds } from "../src/acts/values.ts";

const value: Json = {
  name: "Ada",
  count: 3,
  on: true,
  none: null,
  list: ["a", "b"],
  tasks: [{ id: "1", state: "x" }, { id: "2" }],
  type: "card",
};

describe("an assertion (ACTS §5)", () => {
  test.each<[string, Json, string | undefined]>([
    ["a bare value is equality", { name: "Ada" }, undefined],
    ["and no more than equality", { count: "3" }, "count"],
    ["null is a value", { none: null }, undefined],
    ["a map checks its members, and ignores others", { tasks: [{ id: "1" }] }, undefined],
    ["lists are positional", { tasks: [{ id: "2" }] }, "tasks[0].id"],
    ["a list that is too short fails", { tasks: [{}, {}, { id: "3" }] }, "tasks[2].id"],
    ["type", { list: { type: "array" }, on: { type: "boolean" }, none: { type: "null" } }, undefined],
    ["type, wrong", { list: { type: "object" } }, "list"],
    ["exists, also for null", { none: { exists: true } }, undefined],
    ["exists, wrong", { gone: { exists: true } }, "gone"],
    ["absent", { gone: { absent: true } }, undefined],
    ["absent, wrong", { name: { absent: true } }, "name"],
    ["contains, in text and in a list", { name: { contains: "d" }, list: { contains: "b" } }, undefined],
    ["contains, wrong", { list: { contains: "c" } }, "list"],
    ["matches", { name: { matches: "^A.a$" } }, undefined],
    ["matches, wrong", { name: { matches: "^B" } }, "name"],
    ["starts_with and ends_with", { name: { starts_with: "A", ends_with: "a" } }, undefined],
    ["ends_with, wrong", { name: { ends_with: "A" } }, "name"],
    ["text operators require text", { count: { matches: "3" } }, "count"],
    ["numbers", { count: { gte: 3, lte: 3, gt: 2, lt: 4 } }, undefined],
    ["gt, wrong", { count: { gt: 3 } }, "count"],
    ["lt, wrong", { count: { lt: 3 } }, "count"],
    ["numbers are not text", { name: { gte: 0 } }, "name"],
    ["counts", { list: { count: 2, count_gte: 1, count_lte: 2 } }, undefined],
    ["count, wrong", { list: { count: 1 } }, "list"],
    ["count_lte of an absent value", { gone: { count_lte: 3 } }, "gone"],
    ["one_of", { name: { one_of: ["Bob", "Ada"] } }, undefined],
    ["one_of, wrong", { name: { one_of: ["Bob"] } }, "name"],
    ["any_of takes assertions", { any_of: [{ name: "Bob" }, { count: { gte: 1 } }] }, undefined],
    ["all_of, wrong", { name: { all_of: [{ contains: "A" }, { contains: "B" }] } }, "name"],
    ["not", { name: { not: "Bob" } }, undefined],
    ["not, wrong", { name: { not: { type: "string" } } }, "name"],
    ["items, each", { tasks: { items: { id: { type: "string" } } } }, undefined],
    ["items, each, wrong", { tasks: { items: { state: { exists: true } } } }, "tasks[1].state"],
    ["operators and members mix", { tasks: { type: "array", count: 2, items: [{ state: "x" }] } }, undefined],
    ["a member may have the name of an operator", { type: { type: "string" } }, undefined],
    ["a member that every object inherits is absent", { constructor: { absent: true } }, undefined],
  ])("%s", (_, assertion, path) => {
    expect(check(assertion, value)?.path).toBe(path);
  });

  test("names the expected and the actual value", () => {
    expect(check({ tasks: [{ state: { one_of: ["y", "z"] } }] }, value)).toEqual({
      path: "tasks[0].state",
      expected: 'one of ["y","z"]',
      actual: '"x"',
    });
  });
});

describe("the shape of a value (A2A 1.0 §4)", () => {
  const task = (more: object): Json => ({ id: "t", status: { state: "TASK_STATE_WORKING" }, ...more });
  const parts = (...list: Json[]): Json => task({ history: [{ messageId: "m", role: "ROLE_AGENT", parts: list }] });

  test.each<[string, Json, string | undefined]>([
    ["a small task", task({}), undefined],
    ["members of a later version", task({ generation: "3" }), undefined],
    ["null means an unset field", task({ artifacts: null }), undefined],
    ["no id", { status: { state: "TASK_STATE_WORKING" } }, "id"],
    ["an empty id", task({ id: "" }), "id"],
    ["a state of 0.3", { id: "t", status: { state: "working" } }, "status.state"],
    ["an unknown state", { id: "t", status: { state: "TASK_STATE_UNSPECIFIED" } }, "status.state"],
    ["snake_case", task({ context_id: "c" }), "context_id"],
    ["a time", task({ status: { state: "TASK_STATE_WORKING", timestamp: "2026-01-31T12:00:00.123Z" } }), undefined],
    [
      "a local time",
      task({ status: { state: "TASK_STATE_WORKING", timestamp: "2026-01-31T12:00:00+01:00" } }),
      "status.timestamp",
    ],
    ["not a list", task({ artifacts: {} }), "artifacts"],
    ["a message without parts", parts(), "history[0].parts"],
    ["a part without content", parts({ metadata: {} }), "history[0].parts[0]"],
    ["a part with two contents", parts({ text: "a", url: "b" }), "history[0].parts[0]"],
    ["data that is null", parts({ data: null }), undefined],
    ["base64", parts({ raw: "aGk=" }), undefined],
    ["base64 of URLs", parts({ raw: "_-8=" }), "history[0].parts[0].raw"],
    ["not an object", "task", ""],
  ])("%s", (_, candidate, path) => {
    expect(check({ schema: "Task" }, candidate)?.path).toBe(path);
  });
});

test("paths find members, elements, and each element (ACTS §5.2)", () => {
  expect(find(value, "tasks[1].id")).toBe("2");
  expect(find(value, "tasks[2].id")).toBeUndefined();
  expect(findAll(value, "tasks[*].id")).toEqual(["1", "2"]);
  expect(findAll(value, "name[*]")).toEqual([]);
});

test("conditions compare a path with values (ACTS §9.1)", () => {
  expect(holds("name == Ada", value)).toBe(true);
  expect(holds('name == "Ada"', value)).toBe(true);
  expect(holds("count != 4", value)).toBe(true);
  expect(holds("tasks[0].state in [y, x]", value)).toBe(true);
  expect(holds("gone in [y, x]", value)).toBe(false);
  expect(() => holds("name like Ada", value)).toThrow(/is not a condition/);
});
