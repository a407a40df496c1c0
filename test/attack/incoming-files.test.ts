import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connect } from "@parley/a2a";
import { mebi } from "./harness/bodies.ts";
import { servers } from "./harness/servers.ts";
import { upload, uploadByGrpc } from "./harness/uploads.ts";
import { withstands } from "./harness/withstand.ts";
import { mebibytes } from "./processes/agents.ts";

/* Messages with files, as base64 and in JSON, that exceed their server's heap of 256 MiB (docs/files.md). */

const attacked = servers();
/** The size of files in MiB. With `ATTACK_FIGURES`, files of 1 GiB are sent, which takes minutes. */
const size = process.env["ATTACK_FIGURES"] === undefined ? 100 : 1023;

async function digest(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of bytes) hash.update(piece);
  return hash.digest("hex");
}

async function started(): Promise<{ server: Awaited<ReturnType<typeof attacked.start>>; url: string; blobs: string }> {
  const blobs = join(await attacked.folder(), "blobs");
  const mounts = [{ agent: "actor" }, { agent: "digests", path: "/digests" }] as const;
  const server = await attacked.start({ mounts, blobs });
  return { server, url: `${server.url}/digests`, blobs };
}

/** Returns the files of the store, including those that are still being written. */
async function filesIn(folder: string): Promise<readonly string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return found.filter((entry) => entry.isFile()).map(({ name }) => name);
}

describe("messages with large files", () => {
  it("of 100 MiB arrive over JSON-RPC, REST and gRPC at the same time, one of them slowly, and one is sent back", async () => {
    const { server, url } = await started();
    const expected = await digest(mebibytes(size));
    await withstands(server, async (other) => {
      let go: () => void = () => {};
      const others = new Promise<void>((resolve) => (go = resolve));
      const slow = upload(url, "JSONRPC", { size, onWritten: (written) => (written === 51 ? others : undefined) });
      const sent = [
        upload(url, "HTTP+JSON", { size, text: "back" }),
        // The tenant is part of the message, so the server learns the agent only after the file.
        uploadByGrpc(server.url, "digests", { size }),
      ];
      const answers = await Promise.all(sent).finally(go);
      for (const answer of [...answers, await slow]) expect(answer).toContain(`large.bin ${size * mebi} ${expected}`);
      await other.answers(3);
    });
    const client = await connect(url);
    const { tasks } = await client.listTasks({ includeArtifacts: true });
    const back = tasks.flatMap(({ artifacts = [] }) => artifacts).find(({ name }) => name === "back.bin");
    const response = await fetch(back?.parts[0]?.url ?? "");
    expect(await digest(response.body as unknown as AsyncIterable<Uint8Array>)).toBe(expected);
  });

  it("that break off in the middle leave nothing, over all bindings", async () => {
    const { server, url, blobs } = await started();
    await withstands(server, async (other) => {
      const breaks = (written: number): void => {
        if (written > 20) throw new Error("breaks off");
      };
      const options = { size, onWritten: breaks };
      const sent = [
        upload(url, "JSONRPC", options),
        upload(url, "HTTP+JSON", options),
        uploadByGrpc(server.url, "digests", options),
      ];
      const ends = await Promise.allSettled(sent);
      expect(ends.every(({ status }) => status === "rejected")).toBe(true);
      await expect.poll(() => filesIn(blobs), { timeout: 30_000 }).toEqual([]);
      await other.answers(3);
    });
  });
});
