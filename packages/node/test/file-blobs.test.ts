import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobStoreContract } from "@parley/testing";
import { fileBlobs } from "@parley/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "blobs-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

blobStoreContract({ describe, it, expect }, { open: () => fileBlobs(folder) });

async function* one(text: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

describe("blobs in a folder", () => {
  it("are files that only their user can read", async () => {
    const own = await mkdtemp(join(folder, ".modes-"));
    await fileBlobs(join(own, "deep", "er")).put("a/b/c", one("x"));
    const file = await stat(join(own, "deep", "er", "a", "b", "c"));
    expect(file.mode & 0o777).toBe(0o600);
    expect((await stat(join(own, "deep", "er", "a"))).mode & 0o777).toBe(0o700);
  });

  it("leave no empty folders behind, and accept a blob while the folder of its task is removed", async () => {
    const own = await mkdtemp(join(folder, ".empty-"));
    const store = fileBlobs(own);
    await store.put("agent/owner/task/one", one("1"));
    const rounds = Array.from({ length: 20 }, async (_, at) => {
      await store.put(`agent/owner/task/x${at}`, one("2"));
      await store.delete([`agent/owner/task/x${at}`]);
    });
    await Promise.all([...rounds, store.delete(["agent/owner/task/one"])]);
    expect(await readdir(own)).toEqual([".unfinished"]);
    expect(await readdir(join(own, ".unfinished"))).toEqual([]);
  });

  it("exclude partial uploads of dead processes, which are deleted after a day", async () => {
    const own = await mkdtemp(join(folder, ".left-"));
    const store = fileBlobs(own);
    await mkdir(join(own, ".unfinished"), { recursive: true });
    await writeFile(join(own, ".unfinished", "old"), "half");
    await writeFile(join(own, ".unfinished", "new"), "half");
    const before = new Date(Date.now() - 25 * 60 * 60 * 1000);
    await utimes(join(own, ".unfinished", "old"), before, before);
    expect(await store.list({ prefix: "", limit: 10 })).toEqual({ blobs: [] });
    expect(await readdir(join(own, ".unfinished"))).toEqual(["new"]);
  });

  it("name no path when the file system fails", async () => {
    const own = await mkdtemp(join(folder, ".fails-"));
    await writeFile(join(own, "agent"), "a file where a folder has to be");
    await expect(fileBlobs(own).put("agent/owner/x", one("1"))).rejects.toMatchObject({
      code: "Unavailable",
      message: expect.not.stringContaining(own) as unknown,
    });
  });

  it("are never reached through a symbolic link that someone else put into the folder", async () => {
    const own = await mkdtemp(join(folder, ".links-"));
    const outside = await mkdtemp(join(folder, ".outside-"));
    await mkdir(join(outside, "owner"));
    await writeFile(join(outside, "owner", "passwords"), "not a blob");
    const old = new Date(Date.now() - 25 * 60 * 60 * 1000);
    await utimes(join(outside, "owner", "passwords"), old, old);
    const store = fileBlobs(own);
    await store.put("plain/owner/x", one("a blob"));
    await symlink(outside, join(own, "agent"));
    await symlink(join(outside, "owner", "passwords"), join(own, "plain", "owner", "link"));

    expect(await store.get("agent/owner/passwords")).toBeUndefined();
    expect(await store.get("plain/owner/link")).toBeUndefined();
    expect((await store.list({ prefix: "", limit: 10 })).blobs.map(({ key }) => key)).toEqual(["plain/owner/x"]);
    await expect(store.put("agent/owner/new", one("2"))).rejects.toMatchObject({ code: "Unavailable" });
    await expect(store.move?.("plain/owner/x", "agent/owner/new")).rejects.toMatchObject({ code: "Unavailable" });
    await expect(store.move?.("agent/owner/passwords", "plain/owner/y")).rejects.toMatchObject({ code: "Unavailable" });
    await store.delete(["agent/owner/passwords", "plain/owner/link"]);

    // The store deletes old files from the folder of unfinished uploads, so this folder must not link to another place, either.
    await rm(join(own, ".unfinished"), { recursive: true });
    await symlink(join(outside, "owner"), join(own, ".unfinished"));
    await store.list({ prefix: "", limit: 10 });
    await expect(store.put("plain/owner/z", one("3"))).rejects.toMatchObject({ code: "Unavailable" });
    expect(await readdir(join(outside, "owner"))).toEqual(["passwords"]);
    expect(await readFile(join(outside, "owner", "passwords"), "utf8")).toBe("not a blob");
  });

  it("may be in a folder that is itself a symbolic link", async () => {
    const own = await mkdtemp(join(folder, ".linked-"));
    await mkdir(join(own, "real"));
    await symlink(join(own, "real"), join(own, "link"));
    const store = fileBlobs(join(own, "link"));
    await store.put("agent/owner/x", one("1"));
    expect((await store.get("agent/owner/x"))?.size).toBe(1);
  });
});
