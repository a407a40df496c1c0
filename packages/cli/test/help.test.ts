import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { commands, examples, help, helpExamples } from "./support/help.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

describe("docs/cli.md", () => {
  test("shows the help of every command unchanged", async () => {
    const text = await readFile(join(root, "docs", "cli.md"), "utf8");
    const blocks = [...text.matchAll(/^```text\n([^]*?)^```$/gm)].map((found) => found[1]);
    const helps = [await help()];
    for (const words of commands) helps.push(await help(...words));
    expect(blocks).toEqual(helps);
  });
});

/** Those that need a shell are run by test/docs/help.test.ts. */
describe("every example of the help runs", () => {
  test("each command has an example", () => {
    const named = new Set(examples.map(({ command }) => command));
    expect([...named].sort()).toEqual(commands.map((words) => words.join(" ")).sort());
  });

  helpExamples(false);
});
