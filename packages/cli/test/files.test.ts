import { mkdtemp, rm, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { filePart } from "../src/message.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-files-"));
  await mkdir(join(folder, "folder"));
});
afterAll(() => rm(folder, { recursive: true }));

async function typeOf(name: string, content: string | Uint8Array = "x"): Promise<string | undefined> {
  await writeFile(join(folder, name), content);
  return (await filePart(name, folder)).mediaType;
}

test.each([
  ["a.csv", "text/csv"],
  ["a.CSV", "text/csv"],
  ["a.svg", "image/svg+xml"],
  ["a.json", "application/json"],
  ["a.png", "image/png"],
  ["a.pdf", "application/pdf"],
  ["a.txt", "text/plain"],
  ["a.md", "text/markdown"],
  ["a.tsv", "text/tab-separated-values"],
  ["a.jsonl", "application/x-ndjson"],
  ["a.ts", "text/x-typescript"],
  ["a.avi", "video/x-msvideo"],
  ["a.parquet", "application/vnd.apache.parquet"],
])("%s is %s", async (name, type) => {
  expect(await typeOf(name)).toBe(type);
});

test("without a known extension, text is text and everything else is bytes", async () => {
  expect(await typeOf("LICENSE", "Grüße\n")).toBe("text/plain");
  expect(await typeOf("blob", new Uint8Array([0, 1, 2]))).toBe("application/octet-stream");
  expect(await typeOf("latin1", new Uint8Array([0xe4, 0x20]))).toBe("application/octet-stream");
});

test("a path gives its bytes as base64 under its own name, without the folders", async () => {
  await writeFile(join(folder, "a.csv"), new Uint8Array([0xfb, 0xff]));
  expect(await filePart(join(folder, "a.csv"), "/")).toEqual({ raw: "+/8=", filename: "a.csv", mediaType: "text/csv" });
});

test("a media type may be given", async () => {
  await writeFile(join(folder, "a.dat"), "a,b");
  expect(await filePart("a.dat;type=text/csv", folder)).toMatchObject({ filename: "a.dat", mediaType: "text/csv" });
});

test("a URL becomes a part with that URL", async () => {
  expect(await filePart("https://example.com/data/flights.csv?x=1", folder)).toEqual({
    url: "https://example.com/data/flights.csv?x=1",
    filename: "flights.csv",
    mediaType: "text/csv",
  });
  expect(await filePart("https://example.com/;type=text/csv", folder)).toEqual({
    url: "https://example.com/",
    mediaType: "text/csv",
  });
});

test("a file that cannot be read is named with the reason", async () => {
  await expect(filePart("nothing", folder)).rejects.toThrow("cannot read nothing: no such file");
  await expect(filePart("folder", folder)).rejects.toThrow("cannot read folder: is a folder");
});
