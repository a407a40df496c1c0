import { mkdtemp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Artifact, Part, StreamResponse, TaskState } from "@parley/a2a/model";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Saver } from "../src/artifacts.ts";
import { CommandError, UsageError } from "../src/errors.ts";
import { recordedIo } from "./support/io.ts";

let folder = "";
let notes: string[] = [];
beforeEach(async () => {
  notes = [];
  folder = await mkdtemp(join(tmpdir(), "parley-artifacts-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function saver(out: string, overwrite = false): Promise<Saver> {
  return (await Saver.for(recordedIo({ cwd: folder }).io, { out, overwrite }, (text) => void notes.push(text)))!;
}

async function save(out: string, artifact: Artifact): Promise<void> {
  await (await saver(out)).save(artifact);
}

const read = (name: string): Promise<string> => readFile(join(folder, name), "utf8");
const raw = (text: string): string => Buffer.from(text).toString("base64");

const ids = { taskId: "t", contextId: "c" };
const state = (name: TaskState): StreamResponse => ({ statusUpdate: { ...ids, status: { state: name } } });
const file = (text: string, filename = "a.txt"): Part => ({ raw: raw(text), filename });

function chunk(parts: readonly Part[], { append = false, last = false, artifactId = "a" } = {}): StreamResponse {
  return { artifactUpdate: { ...ids, artifact: { artifactId, parts }, append, lastChunk: last } };
}

async function saved(out: string, events: readonly StreamResponse[]): Promise<readonly string[]> {
  const to = await saver(out);
  for (const event of events) await to.take(event);
  await to.end();
  return (await readdir(join(folder, out))).toSorted();
}

describe("the files of an artifact", () => {
  test("are saved once, even if the task is read meanwhile and has merged texts", async () => {
    const task = (text: string): StreamResponse => ({
      task: { id: "t", status: { state: "TASK_STATE_WORKING" }, artifacts: [{ artifactId: "a", parts: [{ text }] }] },
    });
    const events = [
      chunk([{ text: "one " }]),
      chunk([{ text: "two " }], { append: true }),
      task("one two three "),
      chunk([{ text: "four" }], { append: true, last: true }),
      task("one two three four"),
    ];
    expect(await saved("out", events)).toEqual(["a.txt"]);
    expect(await read("out/a.txt")).toBe("one two three four");
    expect(notes).toHaveLength(1);
  });

  test("text that arrived in chunks is one file, named after the artifact", async () => {
    await save("out", { artifactId: "1", name: "notes", parts: [{ text: "a" }, { text: "b" }] });
    expect(notes).toEqual(["saved out/notes.txt (2 B)"]);
    expect(await read("out/notes.txt")).toBe("ab");
  });

  test("each kind of part gets its extension; a link is not saved, and the output says where it leads", async () => {
    await save("out", {
      artifactId: "report",
      parts: [
        { text: "# x", mediaType: "text/markdown" },
        { raw: "AAE=", mediaType: "image/png" },
        { raw: "AAE=" },
        { data: { a: 1 } },
        { url: "https://example.com/x" },
      ],
    });
    expect((await readdir(join(folder, "out"))).toSorted()).toEqual([
      "report.bin",
      "report.json",
      "report.md",
      "report.png",
    ]);
    expect(notes).toContain("saved out/report.png (image/png, 2 B)");
    expect(notes.at(-1)).toMatch(/^not saved: x is at https:\/\/example\.com\/x: /);
  });

  test("do not overwrite files or follow links", async () => {
    await mkdir(join(folder, "out"));
    await writeFile(join(folder, "victim"), "untouched");
    await symlink(join(folder, "victim"), join(folder, "out", "a.txt"));
    await writeFile(join(folder, "out", "a-2.txt"), "mine");
    await save("out", { artifactId: "a", parts: [{ text: "new", filename: "a.txt" }] });
    expect(notes).toEqual(["saved out/a-3.txt (3 B)"]);
    expect([await read("victim"), await read("out/a-2.txt"), await read("out/a-3.txt")]).toEqual([
      "untouched",
      "mine",
      "new",
    ]);
  });

  test("replace files of earlier runs with --overwrite, but not each other, and no target of a link", async () => {
    await writeFile(join(folder, "victim"), "untouched");
    await mkdir(join(folder, "out"));
    await symlink(join(folder, "victim"), join(folder, "out", "a.txt"));
    const parts = [{ text: "one", filename: "a.txt" }, { data: 1 }, { text: "two", filename: "a.txt" }];
    await (await saver("out", true)).save({ artifactId: "a", parts });
    expect(await Promise.all(["victim", "out/a.txt", "out/a-2.txt"].map(read))).toEqual(["untouched", "one", "two"]);
  });

  test("that cannot be written are reported with the path and the reason", async () => {
    await writeFile(join(folder, "file"), "");
    const saving = save("file/", { artifactId: "a", parts: [{ text: "x" }] });
    await expect(saving).rejects.toThrow(UsageError);
    const below = save("file/below", { artifactId: "a", parts: [{ text: "x" }] });
    await expect(below).rejects.toThrow(CommandError);
    await expect(below).rejects.toThrow(/cannot save a in .*: a file with that name exists/);
  });
});

describe("--out", () => {
  test("is a file if it has an extension and is not a folder", async () => {
    await save("new/report.txt", { artifactId: "a", parts: [file("hi", "other.bin")] });
    expect(notes).toEqual(["saved new/report.txt (2 B)"]);
    await mkdir(join(folder, "v1.0"));
    await save("v1.0", { artifactId: "a", parts: [file("hi", "other.bin")] });
    expect(notes.at(-1)).toBe("saved v1.0/other.bin (2 B)");
  });

  test("is not overwritten, and the command says so before it sends anything", async () => {
    await writeFile(join(folder, "report.txt"), "mine");
    await expect(saver("report.txt")).rejects.toThrow(
      /^report.txt already exists: pass another --out, or --overwrite$/,
    );
    await (await saver("report.txt", true)).save({ artifactId: "a", parts: [file("new")] });
    expect(await read("report.txt")).toBe("new");
  });

  test("reports that no file arrived", async () => {
    expect(await saved("./", [state("TASK_STATE_COMPLETED")])).toEqual([]);
    const to = await saver("report.txt");
    await to.end();
    expect(notes).toEqual(["the agent sent no file, so nothing was saved as report.txt"]);
  });
});

describe("growing artifacts", () => {
  test("are one file each, which gets its name when it is complete", async () => {
    const to = await saver("out");
    await to.take(chunk([file("one ")]));
    await to.take(chunk([file("b", "b.txt")], { artifactId: "b" }));
    expect(await readdir(join(folder, "out"))).toSatisfy((names: string[]) =>
      names.every((name) => name.endsWith(".part")),
    );
    await to.take(chunk([file("two ")], { append: true }));
    await to.take(chunk([file("three")], { append: true, last: true }));
    expect(notes).toEqual(["saved out/a.txt (13 B)"]);
    await to.take(state("TASK_STATE_COMPLETED"));
    await to.end();
    expect(await read("out/a.txt")).toBe("one two three");
    expect((await readdir(join(folder, "out"))).toSorted()).toEqual(["a.txt", "b.txt"]);
  });

  test("are written again if the agent replaces them, and not if a snapshot repeats them", async () => {
    const task = (parts: readonly Part[]): StreamResponse => ({
      task: { id: "t", status: { state: "TASK_STATE_WORKING" }, artifacts: [{ artifactId: "a", parts }] },
    });
    const names = await saved("out", [
      chunk([file("1")]),
      chunk([file("2")], { append: true }),
      task([file("1"), file("2"), file("3")]),
      chunk([file("x"), file("y")]),
      chunk([file("z")], { append: true, last: true }),
      task([file("x"), file("y"), file("z")]),
      state("TASK_STATE_COMPLETED"),
    ]);
    expect(names).toEqual(["a.txt"]);
    expect(await read("out/a.txt")).toBe("xyz");
  });

  test("are not saved if the task fails first, and nothing of them is left", async () => {
    expect(await saved("out", [chunk([file("half")]), state("TASK_STATE_FAILED")])).toEqual([]);
    expect(notes).toEqual(['not saved: The task ended in TASK_STATE_FAILED before artifact "a" was complete']);
  });

  test("of a known task are saved with their earlier content", async () => {
    const to = await saver("out");
    const artifacts = [
      { artifactId: "a", parts: [file("old ")] },
      { artifactId: "b", parts: [file("b", "b.txt")] },
    ];
    const task = { id: "t", status: { state: "TASK_STATE_WORKING" }, artifacts } as const;
    to.know(task);
    await to.take({ task });
    await to.take(chunk([file("new")], { append: true, last: true }));
    await to.end();
    expect(await readdir(join(folder, "out"))).toEqual(["a.txt"]);
    expect(await read("out/a.txt")).toBe("old new");
  });

  test("are removed if the call breaks off", async () => {
    const to = await saver("out");
    await to.take(chunk([file("half")]));
    await to.discard();
    expect(await readdir(join(folder, "out"))).toEqual([]);
  });
});
