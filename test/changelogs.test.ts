import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeChangelogs } from "../scripts/changelogs.mjs";

describe("npm run version writes changelogs", () => {
  let workspace = "";
  beforeEach(() => {
    workspace = mkdtempSync(join(tmpdir(), "parley-changelogs-"));
    const dependencies = { "@parley/core": "0.1.0" };
    for (const [name, more] of Object.entries({ core: {}, host: { dependencies } })) {
      mkdirSync(join(workspace, "packages", name), { recursive: true });
      write(`packages/${name}/package.json`, JSON.stringify({ name: `@parley/${name}`, version: "0.1.0", ...more }));
    }
  });
  afterEach(() => rmSync(workspace, { recursive: true }));

  const write = (file: string, text: string): void => writeFileSync(join(workspace, file), text);
  const read = (file: string): string => readFileSync(join(workspace, file), "utf8");
  const changeset = (id: string, summary: string, types: Readonly<Record<string, string>>) => ({
    id,
    summary,
    releases: Object.entries(types).map(([name, type]) => ({ name: `@parley/${name}`, type })),
  });

  test("from an entry that was written by hand, each package has its part of it", () => {
    const written = "# Changelog\n\n## 0.1.0\n\nThe first.\n\n### @parley/core\n\nThe core.\n";
    write("CHANGELOG.md", written);
    writeChangelogs(workspace, "0.1.0", [changeset("a", "Not in the order of making.", { core: "minor" })]);
    expect(read("CHANGELOG.md")).toBe(written);
    expect(read("packages/core/CHANGELOG.md")).toBe("# @parley/core\n\n## 0.1.0\n\nThe core.\n");
    expect(read("packages/host/CHANGELOG.md")).toContain("## 0.1.0\n\nOnly the version is new");
  });

  test("a package with a version of its own has its part below that", () => {
    mkdirSync(join(workspace, ".changeset"));
    write(".changeset/config.json", JSON.stringify({ fixed: [["@parley/core"]] }));
    write("packages/host/package.json", JSON.stringify({ name: "@parley/host", version: "0.7.1" }));
    write("CHANGELOG.md", "# Changelog\n");
    writeChangelogs(workspace, "0.2.0", [changeset("a", "Something new.", { core: "minor", host: "patch" })]);
    expect(read("packages/core/CHANGELOG.md")).toBe("# @parley/core\n\n## 0.2.0\n\n- Something new.\n");
    expect(read("packages/host/CHANGELOG.md")).toBe("# @parley/host\n\n## 0.7.1\n\n- Something new.\n");
  });

  test("from the changesets otherwise: what is new first, above older versions, and once when it runs twice", () => {
    write("CHANGELOG.md", "# Changelog\n\nA word.\n\n## 0.1.0\n\nThe first.\n");
    const changesets = [
      changeset("a", "A correction.", { core: "patch" }),
      changeset("b", "Something new,\nin two lines.", { core: "minor", host: "patch" }),
      changeset("c", "A change that no user notices.", {}),
    ];
    const core = "- Something new,\n  in two lines.\n- A correction.\n";
    const host = "- Something new,\n  in two lines.\n";
    for (let times = 0; times < 2; times += 1) {
      writeChangelogs(workspace, "0.2.0", changesets);
      expect(read("CHANGELOG.md")).toBe(
        `# Changelog\n\nA word.\n\n## 0.2.0\n\n### @parley/core\n\n${core}\n### @parley/host\n\n${host}\n## 0.1.0\n\nThe first.\n`,
      );
      expect(read("packages/core/CHANGELOG.md")).toBe(`# @parley/core\n\n## 0.2.0\n\n${core}`);
      expect(read("packages/host/CHANGELOG.md")).toBe(`# @parley/host\n\n## 0.2.0\n\n${host}`);
    }
  });
});
