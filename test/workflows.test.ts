import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const folder = join(import.meta.dirname, "../.github/workflows");
const workflows = readdirSync(folder);
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
/** The values of all `uses:` or `run:` in a workflow. */
const said = (name: string, key: "uses" | "run"): readonly string[] =>
  [...read(name).matchAll(new RegExp(`^ *(?:- )?${key}: (.+)$`, "gm"))].map(([, value = ""]) => value);

describe("the hosted workflows", () => {
  test.each(workflows)("%s takes each action in one full version", (name) => {
    const used = said(name, "uses");
    expect(used).not.toEqual([]);
    for (const action of used)
      expect(action).toMatch(/^(\.\/\.github\/workflows\/[\w-]+\.yml|[\w-]+\/[\w-]+@v\d+\.\d+\.\d+)$/);
  });

  test("run .ci/run on pushes and pull requests, and at full length each night and before a release", () => {
    expect(read("ci.yml")).toMatch(/^on:\n {2}push:\n[^]*^ {2}pull_request:\n {2}schedule:$/m);
    const full = "${{ github.event_name != 'push' && github.event_name != 'pull_request' && '--full' || '' }}";
    expect(said("ci.yml", "run")).toContain(`.ci/run ${full}`);
    // It may only read its own checkout.
    expect(read("ci.yml")).not.toMatch(/: write$/m);
  });

  test("publish after the tests, from main, by the identity of the workflow", () => {
    const text = read("release.yml");
    expect(said("release.yml", "uses")[0]).toBe("./.github/workflows/ci.yml");
    expect(text).toContain("needs: ci\n");
    expect(text).toContain("if: github.ref == 'refs/heads/main'\n");
    expect(text).toContain("id-token: write\n");
    expect(said("release.yml", "run")).toContainEqual(expect.stringMatching(/^npm run release /));
    const { scripts } = JSON.parse(readFileSync(join(folder, "../../package.json"), "utf8")) as { scripts: object };
    expect(scripts).toMatchObject({ release: "node scripts/release.mjs", version: "node scripts/version.mjs" });
  });
});
