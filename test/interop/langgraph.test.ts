import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@parley/a2a";
import { afterAll, beforeAll, expect, inject, it, vi } from "vitest";
import { reservePort } from "../crash/supervisor.ts";
import { peers } from "./environments.ts";
import { describePeer, type PeerProgram } from "./peer.ts";

/* Our client calls LangGraph's own A2A server, offline, with a scripted model. Its card declares 1.0, but its answers have the `kind` of 0.3. */

const langgraph: PeerProgram = { name: "LangGraph's server 0.16.7", environment: "langgraph", program: "langgraph" };

interface Served {
  readonly card: string;
  stop(): Promise<void>;
}

/** Serves an agent in `peers/python` like its developers would, and returns the URL of its card. */
async function serveGraph(name: string): Promise<Served> {
  const made = inject("environments").langgraph;
  if ("missing" in made) throw new Error(made.missing);
  const folder = await mkdtemp(join(tmpdir(), "parley-langgraph-"));
  await cp(join(peers, "python", name), folder, { recursive: true });
  const port = await reservePort();
  const url = `http://127.0.0.1:${port}`;
  const env = {
    PATH: `${made.programs}:${process.env["PATH"] ?? ""}`,
    HOME: folder,
    LANGGRAPH_CLI_NO_ANALYTICS: "1",
    LANGSMITH_TRACING: "false",
    PYTHONDONTWRITEBYTECODE: "1",
  };
  const options = ["dev", "--no-browser", "--no-reload", "--port", `${port}`];
  const child = spawn(join(made.programs, langgraph.program), options, { cwd: folder, env, stdio: "ignore" });
  const ended = once(child, "exit");
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const assistants = await vi.waitFor(
    async () => {
      if (child.exitCode !== null) throw new Error("LangGraph's server ended");
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch(`${url}/assistants/search`, { method: "POST", headers, body: "{}" });
      return (await answer.json()) as readonly { readonly assistant_id: string }[];
    },
    { timeout: 100_000, interval: 200 },
  );
  const card = `${url}/.well-known/agent-card.json?assistant_id=${assistants[0]?.assistant_id ?? ""}`;
  return { card, stop };
}

describePeer(langgraph, () => {
  let [server, bursar]: (Served | undefined)[] = [];
  beforeAll(async () => {
    [server, bursar] = await Promise.all(["storyteller", "bursar"].map(serveGraph));
  });
  afterAll(() => Promise.all([server?.stop(), bursar?.stop()]));

  it.each([{}, { version: "0.2.5" }])("answers our client with %j, as a whole and as a stream", async (options) => {
    const client = await connect(server?.card ?? "", options);
    const { task } = await client.sendMessage("the hills");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("The rain came over the hills.");
    const texts: (string | undefined)[] = [];
    let last: string | undefined;
    for await (const event of client.sendStreamingMessage("the hills")) {
      texts.push(event.artifactUpdate?.artifact.parts[0]?.text);
      last = (event.statusUpdate ?? event.task)?.status.state ?? last;
    }
    expect(texts).toContain("The rain came over the hills.");
    expect(last).toBe("TASK_STATE_COMPLETED");
  });

  it("asks our client before it pays, as docs/frameworks.md states", async () => {
    const conversation = (await connect(bursar?.card ?? "")).conversation();
    const { task: asked } = await conversation.send("Pay invoice 7");
    expect(asked?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(asked?.status.message).toBeUndefined();
    expect(asked?.artifacts?.[0]?.parts[0]?.data).toMatchObject({ value: "Pay CHF 70 for invoice 7?" });
    const { task } = await conversation.send("yes");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe('Invoice 7 is paid: {"receipt": 1}');
  });
});
