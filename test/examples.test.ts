import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/* Each example is on the page of the examples, has its own page and tests, and starts with `npm start -- NAME`. */

const folder = join(import.meta.dirname, "../examples");
const examples = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, "package.json")))
  .map(({ name }) => name)
  .toSorted();

test("examples/README.md says in one table what every example teaches", () => {
  const [page = ""] = readFileSync(join(folder, "README.md"), "utf8").split("\n## ");
  const rows = [...page.matchAll(/^\| \[`([\w-]+)`\]\(([\w-]+)\) *\| (\S.*\S) *\|$/gm)];
  expect(rows.map(([, name]) => name)).toEqual(examples);
  for (const [, name, link, teaches = ""] of rows) {
    expect(link).toBe(name);
    expect(teaches.length, name).toBeGreaterThan(20);
  }
});

test.each(examples)("%s has a page and tests", (name) => {
  const own = join(folder, name);
  expect(readFileSync(join(own, "README.md"), "utf8")).toMatch(/^# .+\n\n[^#]/);
  expect(readdirSync(join(own, "test")).some((file) => file.endsWith(".test.ts"))).toBe(true);
});

test.each([
  [["../cli"], `There is no example "../cli". There are ${examples.join(", ")}.`],
  [["files", "image"], "npm start takes one example; got files image"],
  [["--port", "70000"], '--port must be a whole number from 0 to 65535; got "70000"'],
  [["--prot", "4001"], "Unknown option '--prot'"],
])("npm start -- %j says why it cannot start", (args, why) => {
  const script = join(folder, "../scripts/start.mjs");
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stderr).toContain(why);
  expect(stderr).toMatch(/\nUsage: npm start -- \[example\] \[--port <port>\]\n$/);
});
