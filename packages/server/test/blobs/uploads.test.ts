import { describe, expect, it } from "vitest";
import { Uploads } from "../../src/blobs/blobs.ts";
import { fakeClock } from "@parley/testing";

/** Simulates uploads of owners' files, which the test completes on command. */
function uploading(uploads: Uploads) {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  return {
    begun,
    store: (owner: string, onWait?: () => void) =>
      uploads.run(owner, () => new Promise<void>((resolve) => void (begun.push(owner), ends.push(resolve))), onWait),
    /** Completes the first upload in progress. */
    async end() {
      ends.shift()?.();
      await new Promise((resolve) => setTimeout(resolve));
    },
  };
}

describe("concurrent uploads", () => {
  it("are as many as fit into memory, and at least one", () => {
    const [some, one] = [uploading(new Uploads(100, 25, fakeClock(0))), uploading(new Uploads(1, 25, fakeClock(0)))];
    for (const { store } of [some, one]) for (let at = 0; at < 9; at += 1) void store("ada");
    expect([some.begun.length, one.begun.length]).toEqual([4, 1]);
  });

  it("wait in order, except that a caller with half of the memory goes last", async () => {
    const { begun, store, end } = uploading(new Uploads(100, 25, fakeClock(0)));
    for (const owner of ["ada", "ada", "ada", "ada", "ada", "ada", "bob", "eve"]) void store(owner);
    await end();
    await end();
    expect(begun.slice(4)).toEqual(["bob", "eve"]);
    await end();
    expect(begun.slice(6)).toEqual(["ada"]);
  });

  it("release their memory when they fail, and report that they wait", async () => {
    const clock = fakeClock(0);
    const uploads = new Uploads(1, 1, clock);
    const { begun, store } = uploading(uploads);
    let fail = (): void => {};
    const failed = uploads.run("ada", () => new Promise((_, reject) => (fail = () => reject(new Error("full")))));
    let told = 0;
    void store("bob", () => (told += 1));
    clock.advance(60_000);
    expect([told, uploads.waiting]).toEqual([7, 1]);
    fail();
    await expect(failed).rejects.toThrow("full");
    await expect.poll(() => begun).toEqual(["bob"]);
    clock.advance(60_000);
    expect([told, uploads.waiting]).toEqual([7, 0]);
  });
});
