import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, memoryStore, type Agent } from "@parley/server";
import { connect } from "@parley/a2a";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { fileBlobs } from "../src/blobs.ts";
import { serve, type Server } from "../src/index.ts";

/* Tests `turn.delegate()` with files outside of the database (docs/files.md). */

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close({ grace: 0 })));
});

function agentOf(onMessage: Parameters<typeof defineAgent>[0]["onMessage"]): Agent {
  const defaultInputModes = ["text/plain", "application/octet-stream"];
  return defineAgent({
    name: "Files",
    description: "Has files",
    version: "1.0.0",
    skills: [],
    defaultInputModes,
    onMessage,
  });
}

async function start(agent: Agent): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), "blobs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const options = { port: 0, signals: false, logger: false, store: memoryStore() } as const;
  const server = await serve(agent, { ...options, blobs: { store: fileBlobs(folder) } });
  servers.push(server);
  return server;
}

/** An agent that reports whether each file arrived as a link, and the file's size. */
const reader = agentOf(async (turn) => {
  const fetched = async (url: string): Promise<Response> => fetch(url);
  const said: string[] = [];
  for (const file of turn.files({ fetch: fetched })) {
    const hash = createHash("sha256");
    for await (const bytes of file.stream()) hash.update(bytes);
    said.push(`${file.url?.startsWith("http") === true ? "link" : "bytes"} ${hash.digest("hex")}`);
  }
  return turn.reply(said.join("\n"));
});

describe("a message that is delegated with its files", () => {
  it.each([
    ["as bytes", 1 << 20, ["bytes", "bytes"]],
    ["as links if they do not fit into a message", 5 << 20, ["bytes", "link"]],
  ])("passes its files on %s", async (_name, size, kinds) => {
    const other = await connect((await start(reader)).url);
    const { url } = await start(
      agentOf(async function* (turn) {
        const own = turn.message.parts;
        const { message } = yield* turn.delegate(other, { parts: [...own, ...own.map((part) => ({ ...part }))] });
        yield turn.completed(message?.parts.map(({ text }) => ({ text: text ?? "" })));
      }),
    );
    const client = await connect(url);
    const bytes = Buffer.alloc(size, "a");
    const raw = bytes.toString("base64");
    const { task } = await client.sendMessage({ message: { messageId: "m", role: "ROLE_USER", parts: [{ raw }] } });
    const digest = createHash("sha256").update(bytes).digest("hex");
    const said = task?.status.message?.parts[0]?.text ?? task?.status.state;
    expect(said?.split("\n")).toEqual(kinds.map((kind) => `${kind} ${digest}`));
  });
});
