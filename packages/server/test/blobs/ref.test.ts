import { expect, it } from "vitest";
import { aboutOf } from "../../src/blobs/links.ts";
import { refOf } from "../../src/blobs/ref.ts";
import { dispositionOf } from "../../src/blobs/s3.ts";

const key = `~Lw/${"o".repeat(32)}/task/${"i".repeat(24)}`;

function refWith(about: string, of = key): ReturnType<typeof refOf> {
  return refOf(`parley-blob:a.1/${of}:${Buffer.from(about).toString("base64url")}`);
}

it("a reference holds the key of a stored file, and describes it in an object", () => {
  expect(refWith("{}")).toMatchObject({ key, size: 1 });
  for (const about of ["null", "1", '"a"', "{"]) expect(refWith(about)).toBeUndefined();
  for (const of of [
    "a",
    "a/",
    "a//b/c",
    `${key}/x`,
    key.slice(1, -1),
    `${"k/".repeat(300)}k`,
    key.replace("task", ""),
  ]) {
    expect(refWith("{}", of)).toBeUndefined();
  }
});

it("a malformed description in a reference does not get into a link", () => {
  const about = refWith(String.raw`{"filename":"\ud800","mediaType":"a\r\nb"}`)?.about ?? {};
  expect(aboutOf(about).mediaType).toBeUndefined();
  expect(dispositionOf(aboutOf(about).filename)).toMatch(/^attachment/);
  expect(aboutOf(refWith('{"filename":1,"mediaType":{}}')?.about ?? {})).toEqual({});
});
