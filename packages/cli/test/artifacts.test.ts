import { mkdtemp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { artifactFiles, safeName, saveArtifact } from "../src/artifacts.ts";
import { CommandError } from "../src/errors.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-artifacts-"));
});
afterEach(() => rm(folder, { recursive: true }));

const hostile = [
  "../../etc/passwd",
  "..\\..\\windows\\system32\\x",
  "/etc/passwd",
  "C:\\x",
  "C:x",
  "..",
  ".",
  "",
  "a/../../b",
  ".bashrc",
  "...",
  "-rf",
  "nul",
  "COM1.txt",
  "a\u0000b",
  "a\nb",
  "\u001b[2Jx",
  "x\u202egpj",
  "file:stream",
  "x".repeat(5000),
  `${"x".repeat(300)}.${"y".repeat(300)}`,
  "trailing. ",
];

describe("the name of a file", () => {
  test.each(hostile)("%j is made one harmless segment", (name) => {
    const safe = safeName(name);
    expect(safe).toMatch(/^[^./\\:\p{Cc}\p{Cf}-][^/\\:\p{Cc}\p{Cf}]*$/u);
    expect(safe).not.toMatch(/^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i);
    expect(safe.length).toBeLessThanOrEqual(125);
  });

  test("no name at all leaves the folder", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const path = join("/base", safeName(name));
        expect(path.startsWith(`/base${sep}`)).toBe(true);
        expect(path.split(sep)).toHaveLength(3);
      }),
    );
  });

  test("an ordinary name stays as it is", () => {
    expect(["chart.svg", "Bericht 2026 – März.pdf", "a.tar.gz"].map(safeName)).toEqual([
      "chart.svg",
      "Bericht 2026 – März.pdf",
      "a.tar.gz",
    ]);
  });
});

describe("the files of an artifact", () => {
  test("text that came in chunks is one file, named after the artifact", () => {
    expect(artifactFiles({ artifactId: "1", name: "notes", parts: [{ text: "a" }, { text: "b" }] })).toEqual([
      { name: "notes.txt", content: "ab", text: true },
    ]);
  });

  test("each kind of part gets its extension; a link is no file", () => {
    const files = artifactFiles({
      artifactId: "report",
      parts: [
        { text: "# x", mediaType: "text/markdown" },
        { raw: "AAE=", mediaType: "image/png" },
        { raw: "AAE=" },
        { data: { a: 1 } },
        { url: "https://example.com/x" },
      ],
    });
    expect(files.map((file) => file.name)).toEqual(["report.md", "report.png", "report.bin", "report.json"]);
  });

  test("stay in their folder whatever the agent calls them", async () => {
    const inner = join(folder, "out");
    for (const filename of hostile) {
      await saveArtifact(inner, { artifactId: "../x", name: "../../y", parts: [{ raw: "AA==", filename }] });
    }
    expect(await readdir(folder)).toEqual(["out"]);
    expect(await readdir(inner)).toHaveLength(hostile.length);
  });

  test("overwrite nothing and follow no link", async () => {
    const victim = join(folder, "victim");
    const out = join(folder, "out");
    await mkdir(out);
    await writeFile(victim, "untouched");
    await symlink(victim, join(out, "a.txt"));
    await writeFile(join(out, "a-2.txt"), "mine");
    const paths = await saveArtifact(out, { artifactId: "a", parts: [{ text: "new", filename: "a.txt" }] });
    expect(paths).toEqual([join(out, "a-3.txt")]);
    expect(await readFile(victim, "utf8")).toBe("untouched");
    expect(await readFile(join(out, "a-2.txt"), "utf8")).toBe("mine");
    expect(await readFile(join(out, "a-3.txt"), "utf8")).toBe("new");
  });

  test("that cannot be written say where and why", async () => {
    await writeFile(join(folder, "file"), "");
    const saving = saveArtifact(join(folder, "file"), { artifactId: "a", parts: [{ text: "x" }] });
    await expect(saving).rejects.toThrow(CommandError);
    await expect(saving).rejects.toThrow(/cannot save a in .*: a file of that name is in the way/);
  });
});
