import { createHash } from "node:crypto";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connect } from "@parley/a2a";
import { grpcBinding } from "@parley/grpc/client";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";
import { mebibytes } from "./processes/agents.ts";

/* Files outside of the database, as base64 and in JSON, that exceed their server's heap of 256 MiB. */

const attacked = servers();
const size = 104;

async function digest(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of bytes) hash.update(piece);
  return hash.digest("hex");
}

interface Asked {
  readonly path: string;
  readonly version?: string;
  readonly call?: object;
  readonly headers?: Record<string, string>;
}

/** Returns the digest of the longest base64 string in a response. Decodes the string while it arrives. */
async function fileIn(url: string, { path, version = "1.0", call, headers = {} }: Asked): Promise<string> {
  const response = await new Promise<AsyncIterable<Buffer>>((resolve, reject) => {
    const sent = request(`${url}${path}`, {
      method: call === undefined ? "GET" : "POST",
      headers: {
        "a2a-version": version,
        "a2a-extensions": "urn:parley:extension:inline-files:v1",
        "content-type": "application/json",
        ...headers,
      },
    });
    const body = call === undefined || "after" in call ? undefined : JSON.stringify({ jsonrpc: "2.0", id: 1, ...call });
    sent.on("response", resolve).on("error", reject).end(body);
  });
  const hash = createHash("sha256");
  let text = "";
  let inside = false;
  for await (const piece of response) {
    text += piece.toString("latin1");
    if (!inside) {
      const begins = /"(?:raw|bytes)":"/.exec(text);
      if (begins === null) continue;
      inside = true;
      text = text.slice(begins.index + begins[0].length);
    }
    const end = text.indexOf('"');
    const ready = end === -1 ? text.length - (text.length % 4) : end;
    hash.update(Buffer.from(text.slice(0, ready), "base64"));
    text = text.slice(ready);
    if (end !== -1) break;
  }
  return hash.digest("hex");
}

describe(`a file of ${size} MiB outside of the database`, () => {
  it("is inline over JSON-RPC and REST, in 1.0 and 0.3, in answers and streams, and at its link, at the same time", async () => {
    const folder = await attacked.folder();
    const mounts = [{ agent: "actor" }, { agent: "files", path: "/files" }] as const;
    const server = await attacked.start({ mounts, blobs: join(folder, "blobs") });
    const url = `${server.url}/files`;
    const client = await connect(url);
    const expected = await digest(mebibytes(size));
    await withstands(server, async (other) => {
      const { task } = await client.sendMessage(String(size));
      const id = task?.id ?? "";
      const link = task?.artifacts?.[0]?.parts[0]?.url ?? "";
      expect(link).toContain("/.well-known/parley/file?link=");
      const got = await Promise.all([
        fileIn(url, { path: "", call: { method: "GetTask", params: { id } } }),
        fileIn(url, { path: `/tasks/${id}` }),
        fileIn(url, { path: "", version: "0.3", call: { method: "tasks/get", params: { id } } }),
        fileIn(url, { path: `/tasks/${id}:subscribe`, call: { after: 0 }, headers: { "last-event-id": "0" } }),
        digest((await fetch(link)).body as unknown as AsyncIterable<Uint8Array>),
      ]);
      expect(got).toEqual(got.map(() => expected));
      await other.answers(3);
    });
    const grpc = await connect(url, { bindings: [grpcBinding()], binding: "GRPC" });
    const { tasks } = await grpc.listTasks({ includeArtifacts: true });
    const large = tasks.find(({ artifacts }) => artifacts?.[0]?.name === "large.bin");
    expect(large?.artifacts?.[0]?.parts[0]?.url).toContain("/.well-known/parley/file?link=");
  });
});

describe("an export of more than 200 MiB", () => {
  it("is read in pieces, of tasks and of files outside of the database", async () => {
    const folder = await attacked.folder();
    const mounts = [{ agent: "actor" }, { agent: "files", path: "/files" }] as const;
    const server = await attacked.start({ mounts, blobs: join(folder, "blobs") });
    const [actor, files] = await Promise.all([connect(server.url), connect(`${server.url}/files`)]);
    await withstands(server, async (other) => {
      await files.sendMessage(String(size));
      for (let count = 0; count < 4; count += 1) await actor.sendMessage(`artifacts 160 ${128 << 10}`);
      const { length, end } = (await server.ask("exported")) as { readonly length: number; readonly end: string };
      // The response contains the file as base64, and four tasks of 20 MiB each.
      expect(length).toBeGreaterThan((size * 1.3 + 4 * 20) * 2 ** 20);
      expect(JSON.parse(end)).toMatchObject({ type: "end" });
      await other.answers(3);
    });
  });
});

describe("40 agents that send 20 MiB each to a slow bucket", () => {
  it("hold together at most `blobs.uploadBytes`, and all files are stored", async () => {
    const mounts = [{ agent: "actor" }, { agent: "files", path: "/files" }] as const;
    const server = await attacked.start({ mounts, blobs: "bucket" });
    const client = await connect(`${server.url}/files`);
    await withstands(server, async (other) => {
      const sends = await Promise.all(Array.from({ length: 40 }, () => client.sendMessage("20")));
      expect(new Set(sends.map(({ task }) => task?.status.state))).toEqual(new Set(["TASK_STATE_COMPLETED"]));
      // Without the limit, the peak is 672 MiB.
      expect(server.peak, "peak of memory, in MiB").toBeLessThan(540);
      await other.answers(3);
    });
  });
});
