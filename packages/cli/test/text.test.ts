import { describe, expect, test } from "vitest";
import { commandLine, quote } from "../src/invocation.ts";
import { byteSize, fitted, styleFor, table, widthOf } from "../src/output/text.ts";
import { showTasks } from "../src/output/show.ts";
import { execFileSync } from "node:child_process";

test("columns of a table line up, whatever their colour", () => {
  expect(
    table([
      ["a", "bbb"],
      ["cccc", "d"],
    ]),
  ).toBe("a     bbb\ncccc  d\n");
  expect(
    table(
      [
        ["a", "b"],
        ["cc", "d"],
      ],
      (cell) => `<${cell}>`,
    ),
  ).toBe("<a>   <b>\n<cc>  <d>\n");
});

test("sizes are readable", () => {
  expect([0, 999, 1000, 2_500_000].map(byteSize)).toEqual(["0 B", "999 B", "1.0 kB", "2.5 MB"]);
});

describe("colours", () => {
  const terminal = { write() {}, terminal: true, columns: 80 };
  const pipe = { ...terminal, terminal: false };
  const red = (out: typeof pipe, env: Record<string, string>): boolean => styleFor(out, env)("red", "x") !== "x";

  test("appear only on a terminal", () => {
    expect(red(terminal, {})).toBe(true);
    expect(red(pipe, {})).toBe(false);
    expect(red(terminal, { TERM: "dumb" })).toBe(false);
  });

  test("NO_COLOR disables them, FORCE_COLOR enables them", () => {
    expect(red(terminal, { NO_COLOR: "1" })).toBe(false);
    expect(red(terminal, { NO_COLOR: "" })).toBe(true);
    expect(red(pipe, { FORCE_COLOR: "1" })).toBe(true);
    expect(red(terminal, { FORCE_COLOR: "0" })).toBe(false);
  });
});

describe("words of a command line", () => {
  test("plain words stay plain", () => {
    expect(commandLine(["http://localhost:4000", "7f3c-a"])).toBe("http://localhost:4000 7f3c-a");
  });

  test("a shell reads any word back unchanged, and runs nothing of it", () => {
    const words = ["$(touch x)", "`id`", "a'b", 'a"b', "a b", ";ls", "*", "~", "\\", "", "a&b", "!x", "#c"];
    const back = execFileSync("sh", ["-c", `printf '%s\\n' ${commandLine(words)}`], { encoding: "utf8" });
    expect(back).toBe(words.map((word) => `${word}\n`).join(""));
  });

  test("a line break in a word cannot begin a command", () => {
    expect(quote("a\nrm -rf x")).toBe("'a rm -rf x'");
  });
});

describe("text that does not fit into a line", () => {
  test("is counted in columns: an East Asian character and an emoji take two, an accent none", () => {
    expect(["abc", "日本", "e\u0301", "👩‍🚀", "ﾊ"].map(widthOf)).toEqual([3, 4, 1, 2, 1]);
  });

  test("is cut at a character, and says how much is left out", () => {
    expect(fitted("short", 10, "more")).toBe("short");
    const cut = fitted("日本語".repeat(100), 60, "--full shows them");
    expect(widthOf(cut)).toBeLessThanOrEqual(60);
    const [, kept = "", left = ""] = /^(.*)… \((\d+) more characters; --full shows them\)$/.exec(cut) ?? [];
    expect(kept.length + Number(left)).toBe(300);
  });

  test("of a list of tasks is the context, only on a narrow terminal", () => {
    const status = { state: "TASK_STATE_COMPLETED" as const, timestamp: "2026-11-23T04:10:04.482Z" };
    const tasks = [{ id: "i".repeat(36), contextId: "c".repeat(36), status }];
    const plain = (_: string, text: string): string => text;
    expect(showTasks(tasks, plain, 80)).not.toContain("ccc");
    expect(
      showTasks(tasks, plain, 80)
        .split("\n")
        .every((text) => text.length <= 80),
    ).toBe(true);
    expect(showTasks(tasks, plain)).toContain("c".repeat(36));
  });
});
