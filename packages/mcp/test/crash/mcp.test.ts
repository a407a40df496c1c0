import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { connect, type Client, type Task } from "@parley/a2a";
import { defineAgent, serve } from "@parley/node";
import { afterAll, expect, test } from "vitest";
import { times } from "../../../../test/counts.ts";
import { reservePort, Supervisor, type Life } from "../../../../test/crash/supervisor.ts";
import { diskFolder } from "../../../../test/temporary.ts";
import { toolsOf } from "./tools.mjs";

/** Kills a real server on SQLite at random while its agent calls tools over HTTP and stdio, one of which asks a question. */
const kills = times(3, 50);

const folder = await mkdtemp(join(diskFolder(), "parley-mcp-"));
const path = join(folder, "tasks.db");
await writeFile(`${path}.lives`, "0");
await writeFile(`${path}.calls`, "");

// The MCP server over HTTP is not killed.
const mcp = createMcpHandler(toolsOf(`${path}.calls`));
const host = await serve(
  defineAgent({ name: "Host", description: "Has a route", version: "1.0.0", skills: [], async *onMessage() {} }),
  { port: 0, logger: false, routes: (request) => (request.url.endsWith("/mcp") ? mcp.fetch(request) : undefined) },
);
await writeFile(`${path}.tools`, `${host.url}/mcp\n${join(import.meta.dirname, "tools.mjs")}`);
const supervisor = new Supervisor(path, await reservePort(), join(import.meta.dirname, "agent.ts"));
afterAll(async () => {
  supervisor.stop();
  await host.close();
  await rm(folder, { recursive: true });
});

let client: Client | undefined;
const immediately = { returnImmediately: true } as const;

/** Retries the message until its task ends, and answers its question. Both are idempotent. */
async function pursue(name: string): Promise<Task> {
  for (;;) {
    try {
      client ??= await connect(supervisor.url, { retry: false, reconnect: false });
      const message = { messageId: name, parts: [{ text: name }] };
      const { task } = await client.sendMessage({ message, configuration: immediately });
      const now = await client.getTask(task?.id ?? "");
      if (/COMPLETED|FAILED/.test(now.status.state)) return now;
      if (now.status.state === "TASK_STATE_INPUT_REQUIRED") {
        const yes = { messageId: `${name} yes`, taskId: now.id, parts: [{ data: { answer: "yes" } }] };
        await client.sendMessage({ message: yes, configuration: immediately });
      }
    } catch {
      // The server was killed.
    }
    await setTimeout(20);
  }
}

async function killed(life: Life): Promise<Life> {
  await setTimeout(200 + Math.random() * 800);
  life.kill("SIGKILL");
  expect(await life.end).toBe("SIGKILL");
  return supervisor.start();
}

test(`repeats no tool call whose result was stored: ${kills} kills`, async () => {
  const jobs: string[] = [];
  const tasks: Promise<Task>[] = [];
  let life = await supervisor.start();
  for (let kill = 0; kill < kills; kill += 1) {
    for (const half of ["a", "b"]) {
      jobs.push(`job-${kill}-${half}`);
      tasks.push(pursue(`job-${kill}-${half}`));
    }
    life = await killed(life);
  }
  const ended = await Promise.all(tasks);
  life.kill("SIGKILL");
  expect(ended.map(({ status }) => status.message?.parts[0]?.text)).toEqual(
    jobs.map(() => "did 1, did 2, was told yes, did 4"),
  );

  // A call is made only after the previous result is stored, so no earlier call was repeated.
  const lines = (await readFile(`${path}.calls`, "utf8")).trim().split("\n");
  for (const job of jobs) {
    const made = lines.filter((line) => line.startsWith(`${job} `)).map((line) => line.split(" "));
    const numbers = made.map(([, number]) => Number(number));
    expect(numbers, job).toEqual(numbers.toSorted((one, other) => one - other));
    // One key per call, shared by its repetitions. The call that asked a question continues under another key.
    expect([...new Set(made.map(([, number, key]) => `${number} ${key}`))], job).toHaveLength(5);
    expect(new Set(numbers), job).toEqual(new Set([1, 2, 3, 4]));
  }
  // Calls are repeated if the process was killed before their result was stored. There must be such calls.
  const least = jobs.length * 5;
  expect(lines.length).toBeGreaterThanOrEqual(least);
  expect(lines.length).toBeLessThanOrEqual(least + kills * jobs.length);
});
