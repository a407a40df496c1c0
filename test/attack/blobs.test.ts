import { createHash } from "node:crypto";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connect } from "@parley/a2a/client";
import { grpcBinding } from "@parley/grpc/client";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";
import { mebibytes } from "./processes/agents.ts";

/* Files outside of the database that do not fit into the heap of their server, 256 MiB, as base64 and in JSON. */

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

/** The digest of the longest base64 string of an answer, which is decoded as it comes. */
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
  it("comes inline over JSON-RPC and REST, in 1.0 and 0.3, in answers and streams, and by its link, at the same time", async () => {
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
