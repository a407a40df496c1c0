import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { partsOf, problemAt } from "../src/message.ts";
import { recordedIo } from "./support/io.ts";

async function sent(files: Readonly<Record<string, string>>, data: readonly string[], stdin = "", text?: string) {
  const cwd = await mkdtemp(join(tmpdir(), "parley-data-"));
  onTestFinished(() => rm(cwd, { recursive: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(cwd, name), content);
  return partsOf(recordedIo({ cwd, stdin }).io, text, { data });
}

describe("--data", () => {
  test("sends the JSON of a file, of the command line and of standard input, in order, after the text", async () => {
    const parts = await sent(
      { "form.json": '\ufeff{"a": [1, null]}\n' },
      ["form.json", ' {"b":2}', "-", "7"],
      "[]",
      "Hi",
    );
    expect(parts).toEqual([{ text: "Hi" }, { data: { a: [1, null] } }, { data: { b: 2 } }, { data: [] }, { data: 7 }]);
  });

  test.each([
    ["form.json", "form.json must be JSON; line 3, column 3: unexpected }"],
    ['{"a":1,}', "--data must be JSON; line 1, column 8: unexpected }"],
    ['{"a":', "--data must be JSON; line 1, column 6: unexpected end"],
    ["empty.json", "empty.json must be JSON; line 1, column 1: unexpected end"],
    ["none.json", "cannot read none.json: no such file. --data takes a file or JSON"],
    ["-", "standard input must be JSON; line 1, column 1: unexpected nonsense"],
  ])("reports the problem of %s, and its place", async (value, message) => {
    const files = { "form.json": '{\n  "a": 1,\n  }\n', "empty.json": "" };
    await expect(sent(files, [value], "nonsense")).rejects.toThrow(message);
  });

  test("reads standard input once", async () => {
    await expect(sent({}, ["-", "-"])).rejects.toThrow("standard input can be read only once");
    await expect(sent({}, ["-"], "1", "-")).rejects.toThrow("standard input can be read only once");
  });

  test("finds a mistake exactly in the texts that are not JSON", () => {
    const isJson = (text: string): boolean => {
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", ",", "}", '"', "\\", "1", " ", "\n", "\u0001"),
        (json, at, noise) => {
          const cut = at % (json.length + 1);
          const text = json.slice(0, cut) + noise + json.slice(cut + 1);
          expect(problemAt(text) === undefined, JSON.stringify(text)).toBe(isJson(text));
          expect(problemAt(json)).toBeUndefined();
        },
      ),
    );
  });
});
