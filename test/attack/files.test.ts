import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { send } from "./harness/bodies.ts";
import { servers } from "./harness/servers.ts";

/* Removes database files while a server uses them. */

const attacked = servers();

describe("a server whose database files are removed", () => {
  it("logs it, and accepts no task that it could not find again", async () => {
    const server = await attacked.start();
    const folder = await attacked.folder();
    expect((await send(server.url, { words: "work" })).status).toBe(200);
    for (const name of await readdir(folder)) await rm(join(folder, name));
    await vi.waitFor(async () => {
      expect((await send(server.url, { words: "work" })).status).toBe(503);
    }, 30_000);
    // The call that notices the missing files may come after the first call that fails.
    await vi.waitFor(async () => {
      expect((await send(server.url, { words: "work" })).status).toBe(503);
      expect(server.log.join("\n")).toMatch(/tasks\.db/);
    }, 30_000);
    expect(server.alive).toBe(true);
  });
});
