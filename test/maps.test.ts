import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { missingSources } from "../scripts/maps.mjs";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-maps-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
}

const map = (source: string, more: object = {}): string => JSON.stringify({ version: 3, sources: [source], ...more });

test("a map, and a source of it, that are not in the package are named with the file that points there", async () => {
  await write({
    "dist/a.js": "a();\n//# sourceMappingURL=a.js.map\n",
    "dist/a.js.map": map("../src/a.ts"),
    "dist/b.d.ts": "export {};\n//# sourceMappingURL=b.d.ts.map",
  });
  expect(missingSources(folder).sort()).toEqual([
    `${join("dist", "a.js.map")} names ${join("..", "src", "a.ts")}`,
    `${join("dist", "b.d.ts")} names b.d.ts.map`,
  ]);
});

test("sources that are there, or within the map, and files without a map are fine", async () => {
  await write({
    "dist/a.js": "a();\n//# sourceMappingURL=a.js.map\n",
    "dist/a.js.map": map("a.ts", { sourceRoot: "../src" }),
    "src/a.ts": "a();",
    "dist/b.js": "b();\n//# sourceMappingURL=b.js.map\n",
    "dist/b.js.map": map("../src/b.ts", { sourcesContent: ["b();"] }),
    "dist/c.js": "const text = '//# sourceMappingURL=c.js.map';\n",
  });
  expect(missingSources(folder)).toEqual([]);
});
