import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { A2AError, invalidParams } from "../../src/model/index.ts";

/** Returns the lines of a printed error that are not stack frames. */
const printed = (error: unknown): string[] =>
  inspect(error)
    .split("\n")
    .filter((line) => !/^\s+at /.test(line));

describe("an A2AError is printed short", () => {
  test("with its code and its message, and no other members", () => {
    const error = new A2AError("TaskNotFound", undefined, { metadata: { plan: "free" }, details: [{ a: { b: 1 } }] });
    expect(printed(error)).toEqual(["A2AError [TaskNotFound]: Task not found"]);
    expect(String(error)).toBe("A2AError [TaskNotFound]: Task not found");
  });

  test("with its wrong fields, each once", () => {
    const error = invalidParams([
      { field: "message.parts", description: "is required" },
      { field: "", description: "has too many members" },
    ]);
    const lines = [
      "A2AError [InvalidParams]: Invalid parameters: message.parts is required (and 1 more)",
      "  it has too many members",
    ];
    expect(printed(error)).toEqual(lines);
    expect(String(error)).toBe(lines.join("\n"));
  });

  test("with at most five frames, and the cause in one line if it adds something; the cause stays reachable", () => {
    const cause = new Error("connect ECONNREFUSED 127.0.0.1:1");
    const wrapped = new A2AError("ConnectionFailed", "No answer", { cause });
    expect(printed(wrapped)).toEqual(["A2AError [ConnectionFailed]: No answer", `    cause: ${String(cause)}`]);
    expect(wrapped.cause).toBe(cause);
    const full = Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    expect(printed(new A2AError("Unavailable", undefined, { cause: full })).at(-1)).toBe(
      `    cause: ${String(full)} (SQLITE_FULL)`,
    );
    const again = new A2AError("ConnectionFailed", "No answer (gave up)", {
      cause: new A2AError("Timeout", "No answer"),
    });
    expect(printed(again)).toEqual(["A2AError [ConnectionFailed]: No answer (gave up)"]);
    expect(inspect(again).split("\n").length).toBeLessThanOrEqual(6);
    expect(inspect(again)).toContain("errors.test.ts");
  });

  test("when uncaught, without members that have no value", () => {
    // If an error ends a process, Node prints the error without its class's inspector.
    const uncaught = (error: unknown): string => inspect(error, { customInspect: false });
    expect(uncaught(new A2AError("TaskNotFound"))).toMatch(/\{\n {2}code: 'TaskNotFound'\n\}$/);
    const full = new A2AError("TooManyRequests", undefined, { metadata: { limit: "10" }, retryAfter: 3 });
    expect(uncaught(full)).toMatch(
      /\{\n {2}code: 'TooManyRequests',\n {2}metadata: \{ limit: '10' \},\n {2}retryAfter: 3\n\}$/,
    );
    const { fields, details, challenge, sentAs } = full;
    expect({ fields, details, challenge, sentAs }).toEqual({ fields: [], details: [] });
  });
});
