import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { PartFile } from "../src/artifacts.ts";

test("a file has all of its bytes, even if the system writes only part of them at a time", async () => {
  const folder = await mkdtemp(join(tmpdir(), "parley-part-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const probe = await open(join(folder, "probe"), "w");
  const handles = Object.getPrototypeOf(probe) as typeof probe;
  await probe.close();
  const write: (bytes: Uint8Array, at: number, length: number) => Promise<unknown> = Reflect.get(handles, "write");
  const short = vi.spyOn(handles, "write").mockImplementation(function (this: unknown, ...given: unknown[]) {
    const [bytes, at = 0] = given as [Uint8Array, number?];
    return Reflect.apply(write, this, [bytes, at, Math.min(3, bytes.byteLength - at)]) as never;
  });
  onTestFinished(() => short.mockRestore());
  const file = new PartFile(folder);
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("one two ");
    yield Buffer.from("three");
  }
  await file.write(pieces());
  expect(await readFile(file.path, "utf8")).toBe("one two three");
});
