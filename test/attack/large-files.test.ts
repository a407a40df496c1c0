import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { compiled } from "../programs.ts";
import { connect } from "@parley/a2a";
import { mebi } from "./harness/bodies.ts";
import { Connection, head } from "./harness/connection.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";
import { mebibytes } from "./processes/agents.ts";

/* Files, as base64 and in JSON, that exceed the heap of every process on their way, 256 MiB each. */

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
  it("is sent by an agent over HTTP to the disk of a client, and later once more, in heaps of 256 MiB", async () => {
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

    // Reads the log of the finished task from the beginning.
    const [, taskId = ""] = /^task (\S+),/m.exec(sent.stderr) ?? [];
    const download = fileURLToPath(new URL("processes/download.ts", import.meta.url));
    const again = await run(process.execPath, [small, compiled(download), url, taskId]);
    expect(again.stdout).toBe(`large.bin ${expected}\n`);
  });

  it("passes through an agent that delegates, while nobody reads the stream of its task, in heaps of 256 MiB", async () => {
    const folder = await attacked.folder();
    const options = { limits: { taskBytes: 400 * mebi } };
    const files = await attacked.start({ mounts: [{ agent: "files" }], options, store: join(folder, "files.db") });
    const mounts = [{ agent: "actor" }, { agent: "passing", path: "/passing" }] as const;
    const passing = await attacked.start({ mounts, options });
    const url = `${passing.url}/passing`;
    const client = await connect(url);
    // Makes the first delegation, because the modules that it loads stay in memory.
    await client.sendMessage(`${files.url} 1`);
    let id = "";
    await withstands(passing, async (other) => {
      const configuration = { returnImmediately: true };
      ({ task: { id } = { id } } = await client.sendMessage({ message: `${files.url} ${size}`, configuration }));
      const reader = await Connection.to(passing.port);
      const begun = new Promise<unknown>((resolve) => reader.socket.once("data", resolve));
      await reader.send(head(`/passing/tasks/${id}:subscribe`, { "a2a-version": "1.0", "content-length": 0 }));
      await begun;
      reader.socket.pause();
      const state = async (): Promise<string> => {
        const { tasks } = await client.listTasks({ historyLength: 0 });
        return tasks[0]?.status.state ?? "";
      };
      await expect.poll(state, { timeout: 240_000, interval: 500 }).toBe("TASK_STATE_COMPLETED");
      await other.answers(3);
      reader.close();
    });
    const download = fileURLToPath(new URL("processes/download.ts", import.meta.url));
    const got = await run(process.execPath, [small, compiled(download), url, id]);
    expect(got.stdout).toBe(`large.bin ${await digest(mebibytes(size))}\n`);
  });

  it("fails its task with the default limits.taskBytes, and nothing of it is saved", async () => {
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
