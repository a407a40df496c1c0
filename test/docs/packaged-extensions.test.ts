import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./pages.ts";

/** What docs/extensions.md says of the packaged extensions is true of all of them, and of no others. */

const folder = "packages/a2a/src/extensions";
const packaged = readdirSync(join(root, folder), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort();

test("the table has each packaged extension, by the title of its page", () => {
  const page = readFileSync(join(root, "docs/extensions.md"), "utf8");
  const [, section = "", ...others] = page.split("\n## Packaged extensions\n");
  expect(others).toEqual([]);
  const [table = ""] = section.split("\n## ");
  const rows = [...table.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\) +\| `([^`]+)` +\| (.*?) +\|$/gm)];
  expect(rows.map(([, title, link, entry]) => [title, link, entry])).toEqual(
    packaged
      .map((name) => {
        const text = readFileSync(join(root, folder, name, "README.md"), "utf8");
        return [/^# (.+)$/m.exec(text)?.[1] ?? "", name] as const;
      })
      .sort(([one], [other]) => one.toLowerCase().localeCompare(other.toLowerCase(), "en"))
      .map(([title, name]) => [title, `../${folder}/${name}/README.md`, `@parley/a2a/extensions/${name}`]),
  );
});

test.each(packaged)("%s has a page, an entry point and tests", (name) => {
  const { exports } = JSON.parse(readFileSync(join(root, "packages/a2a/package.json"), "utf8")) as {
    exports: Record<string, Record<string, string>>;
  };
  expect(exports[`./extensions/${name}`]?.["@parley/source"]).toBe(`./src/extensions/${name}/index.ts`);
  const tests = [`packages/a2a/test/extensions/${name}`, `test/behaviour/${name}.test.ts`];
  expect(tests.filter((path) => existsSync(join(root, path)))).not.toEqual([]);
});
