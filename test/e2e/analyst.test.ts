import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { Role, TaskState, type SendMessageRequest, type StreamResponse } from "@a2a-js/sdk";
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client";
import type { Artifact, Part, Task } from "@parley/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { atLength } from "../counts.ts";

/**
 * The steps of a new user: `npm start`, then curl, the official client and `parley send`, each with real files, over both
 * bindings. The server is the built one of `npm start`, in its own process, on SQLite.
 */

const root = join(import.meta.dirname, "../..");
const data = join(root, "node_modules/vega-datasets/data");
const run = promisify(execFile);

let folder: string;
let server: ChildProcess;
let url: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-e2e-"));
  server = spawn(process.execPath, [join(root, "scripts/start.mjs"), "--port", "0"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  for await (const chunk of server.stdout as AsyncIterable<Buffer>) {
    said += chunk.toString();
    const found = /^Data analyst at (http:\S+)\n/m.exec(said)?.[1];
    if (found !== undefined) {
      url = found;
      break;
    }
  }
  if (!said.includes(" at http:")) throw new Error(`It did not start: ${said}`);
}, 120_000);

afterAll(async () => {
  const gone = server.exitCode === null ? once(server, "exit") : undefined;
  server.kill("SIGTERM");
  await gone;
  await rm(folder, { recursive: true });
});

/** A question about each file, with the columns of the numbers behind the chart. */
const questions = [
  { file: "weather.csv", ask: "chart average temp_max by location", columns: ["location", "temp_max"], rows: 2 },
  { file: "seattle-weather.csv", ask: "bar chart of count by weather", columns: ["weather"], rows: 5 },
  { file: "flights-airport.csv", ask: "chart total count by origin", columns: ["origin"], rows: 1 },
] as const;

async function partsOf({ file, ask }: (typeof questions)[number]): Promise<readonly Part[]> {
  const raw = (await readFile(join(data, file))).toString("base64");
  return [{ text: ask }, { raw, filename: file, mediaType: "text/csv" }];
}

/** Expects the picture and its numbers, whatever client received them. */
function expectChart(artifacts: readonly Artifact[] = [], { columns, rows }: (typeof questions)[number]): void {
  const parts = artifacts.flatMap((artifact) => artifact.parts);
  const svg = parts.find(({ mediaType }) => mediaType === "image/svg+xml");
  const picture = svg?.text ?? Buffer.from(svg?.raw ?? "", "base64").toString();
  expect(picture).toMatch(/^<svg[\s\S]*<\/svg>\s*$/);
  const chart = artifacts.find(({ parts: own }) => svg !== undefined && own.includes(svg));
  const numbers = JSON.stringify(
    chart?.parts.find((part) => part.data !== undefined)?.data ?? parts.map((part) => part.data),
  );
  for (const column of columns) expect(numbers).toContain(column);
  expect((numbers.match(/\{/g) ?? []).length).toBeGreaterThanOrEqual(rows);
}

/** A short run asks only one of them: the others differ in their columns, not in their clients. */
const asked = atLength ? questions : questions.slice(0, 1);

describe.each(asked)("npm start, and $file", (question) => {
  it.each(["JSON-RPC", "REST"])("curl, over %s", async (binding) => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: await partsOf(question) };
    const request =
      binding === "REST" ? { message } : { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } };
    const body = join(folder, `${message.messageId}.json`);
    await writeFile(body, JSON.stringify(request));
    const target = binding === "REST" ? `${url}/message:send` : url;
    const { stdout } = await run(
      "curl",
      [
        "-sS",
        "--fail",
        target,
        "-H",
        "Content-Type: application/json",
        "-H",
        "A2A-Version: 1.0",
        "--data-binary",
        `@${body}`,
      ],
      { maxBuffer: 64 << 20 },
    );
    const answer = JSON.parse(stdout) as { task?: Task; result?: { task?: Task } };
    const task = answer.task ?? answer.result?.task;
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expectChart(task?.artifacts, question);
  });

  it.each([
    ["JSON-RPC", new JsonRpcTransportFactory()],
    ["REST", new RestTransportFactory()],
  ])("the official client, over %s, sending and streaming", async (_binding, transport) => {
    const client = await new ClientFactory({ transports: [transport] }).createFromUrl(`${url}/`);
    const raw = await readFile(join(data, question.file));
    const none = { metadata: {}, filename: "", mediaType: "" };
    const request = (): SendMessageRequest => ({
      tenant: "",
      message: {
        messageId: crypto.randomUUID(),
        contextId: "",
        taskId: "",
        role: Role.ROLE_USER,
        parts: [
          { ...none, content: { $case: "text", value: question.ask } },
          { ...none, content: { $case: "raw", value: raw }, filename: question.file, mediaType: "text/csv" },
        ],
        metadata: {},
        extensions: [],
        referenceTaskIds: [],
      },
      configuration: undefined,
      metadata: {},
    });
    const sent = await client.sendMessage(request());
    if (!("status" in sent)) throw new Error("Expected a task");
    expect(sent.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const pictures = sent.artifacts
      .flatMap(({ parts }) => parts)
      .filter(({ mediaType }) => mediaType === "image/svg+xml");
    expect(pictures).toHaveLength(1);

    const events: StreamResponse[] = [];
    for await (const event of client.sendMessageStream(request())) events.push(event);
    expect(events[0]?.payload?.$case).toBe("task");
    const last = events.at(-1)?.payload;
    expect(last?.$case === "statusUpdate" && last.value.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const streamed = events.flatMap(({ payload }) =>
      payload?.$case === "artifactUpdate" ? (payload.value.artifact?.parts ?? []) : [],
    );
    expect(streamed.some(({ mediaType }) => mediaType === "image/svg+xml")).toBe(true);
  });

  it.each(["JSONRPC", "HTTP+JSON"])("parley send, over %s", async (binding) => {
    const out = await mkdtemp(join(folder, "out-"));
    const cli = join(root, "packages/cli/dist/main.js");
    const file = join(data, question.file);
    const args = ["send", url, question.ask, "--file", file, "--out", out, "--binding", binding, "--json"];
    const { stdout } = await run(process.execPath, [cli, ...args], { maxBuffer: 64 << 20 });
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(lines.length).toBeGreaterThan(3);
    const saved = await readdir(out);
    const svg = saved.find((name) => name.endsWith(".svg")) ?? "";
    expect(await readFile(join(out, svg), "utf8")).toMatch(/^<svg/);
    expect(saved.map((name) => basename(name))).toContain("chart.json");
  });
});
