import { expect, test } from "vitest";
import { operatorRoutes } from "@parley/server/internal/operate/routes";
import { commands, help } from "../../packages/cli/test/support/help.ts";
import { consoleTable } from "./console-table.ts";

/** test/browser/console-work.test.ts compares the palette's actions with this table. */

const rows = consoleTable();

test("each row of the table has a command, or says that there is none", () => {
  expect(rows.length).toBeGreaterThan(30);
  expect(rows.filter(({ commands, text }) => commands.length === 0 && !/^(?:none|each command)\b/.test(text))).toEqual(
    [],
  );
});

test("each command of the table exists, and has the options", async () => {
  for (const command of rows.flatMap(({ commands: named }) => named)) {
    const words = command.split(" ").slice(1);
    const known = [...commands.filter((path) => path.every((word, at) => words[at] === word)), []];
    const path = known.toSorted((a, b) => b.length - a.length)[0] ?? [];
    expect([command, path.length > 0 || command === "parley --help"]).toEqual([command, true]);
    const text = await help(...path);
    const rest = words.slice(path.length);
    const options = rest.filter((word) => word.startsWith("--"));
    for (const option of options) expect([command, text]).toEqual([command, expect.stringContaining(`${option} `)]);
  }
});

test("each act of an operator has a row with its command", () => {
  const named = rows.flatMap(({ commands: all }) => all).map((command) => command.split(" ").slice(0, 3).join(" "));
  const acts = operatorRoutes.flatMap(({ act }) => (act === "read" ? [] : [`parley ops ${act}`]));
  expect(acts.length).toBeGreaterThan(0);
  expect(named).toEqual(expect.arrayContaining(acts));
});
