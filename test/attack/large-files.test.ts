import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { typescript } from "../programs.ts";
import { mebi } from "./harness/bodies.ts";
import { servers } from "./harness/servers.ts";
import { mebibytes } from "./processes/agents.ts";

/* Files that do not fit into the heap of any process that they pass: 256 MiB, as base64 and in JSON. */

const run = promisify(execFile);
const attacked = servers();
const small = "--max-old-space-size=256";
const size = 200;

async function digest(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of bytes) hash.update(piece);
  return hash.digest("hex");
}

describe("a file of 200 MiB", () => {
  it("goes from an agent over HTTP to the disk of a client, and later once more, in heaps of 256 MiB", async () => {
    const limits = { taskBytes: 400 * mebi };
    const { url } = await attacked.start({ mounts: [{ agent: "files" }], options: { limits } });
    const folder = await attacked.folder();
    const parley = fileURLToPath(new URL("../../packages/cli/dist/main.js", import.meta.url));
    const sent = await run(process.execPath, [small, parley, "send", url, String(size), "--out", "got"], {
      cwd: folder,
    });
    expect(sent.stderr).toContain("saved got/large.bin (209.7 MB)");
    const path = join(folder, "got", "large.bin");
    expect((await stat(path)).size).toBe(size * mebi);
    const expected = await digest(mebibytes(size));
    expect(await digest(createReadStream(path))).toBe(expected);

    // The log of the finished task is read from its beginning.
    const [, taskId = ""] = /^task (\S+),/m.exec(sent.stderr) ?? [];
    const download = fileURLToPath(new URL("processes/download.ts", import.meta.url));
    const again = await run(process.execPath, [small, ...typescript, download, url, taskId]);
    expect(again.stdout).toBe(`large.bin ${expected}\n`);
  });

  it("fails its task where limits.taskBytes is as it comes, and nothing of it is saved", async () => {
    const server = await attacked.start({ mounts: [{ agent: "files" }] });
    const folder = await attacked.folder();
    const parley = fileURLToPath(new URL("../../packages/cli/dist/main.js", import.meta.url));
    const sent = run(process.execPath, [small, parley, "send", server.url, String(size), "--out", "got.bin"], {
      cwd: folder,
    });
    await expect(sent).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /✗ failed: The task has become larger than a task may be[^]*not saved: /,
      ) as unknown,
    });
    await expect(stat(join(folder, "got.bin"))).rejects.toThrow("ENOENT");
    expect(server.log.join("\n")).toMatch(/does not fit: limits.taskBytes is 33554432/);
  });
});
