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
    await setTimeout(100);
  }
}

/** The calls that the tools got: job, number and key. */
const calls = async (): Promise<string[]> => (await readFile(`${path}.calls`, "utf8")).split("\n").slice(0, -1);

/** Kills the server at a random moment around one of the next calls, so that every kill hits work. */
async function killed(life: Life): Promise<Life> {
  const until = (await calls()).length + Math.ceil(Math.random() * 5);
  await expect.poll(async () => (await calls()).length, { interval: 20 }).toBeGreaterThanOrEqual(until);
  await setTimeout(Math.random() * 30);
  life.kill("SIGKILL");
  expect(await life.end).toBe("SIGKILL");
  return supervisor.start();
}

/** Number of jobs in progress at a time. */
const open = 4;

test(`repeats no tool call whose result was stored: ${kills} kills`, async () => {
  const jobs: string[] = [];
  const ended: Task[] = [];
  let isKilling = true;
  const works = Array.from({ length: open }, async () => {
    while (isKilling) {
      const job = `job-${jobs.length}`;
      jobs.push(job);
      ended.push(await pursue(job));
    }
  });
  let life = await supervisor.start();
  const isRepeated = async (): Promise<boolean> => new Set(await calls()).size < (await calls()).length;
  let count = 0;
  // Until a kill has hit a call: its line is there twice.
  for (; count < kills || !(await isRepeated()); count += 1) life = await killed(life);
  isKilling = false;
  await Promise.all(works);
  life.kill("SIGKILL");
  expect(ended.map(({ status }) => status.message?.parts[0]?.text)).toEqual(
    jobs.map(() => "did 1, did 2, was told yes, did 4"),
  );

  // A call is made only after the previous result is stored, so no earlier call was repeated.
  const lines = await calls();
  for (const job of jobs) {
    const made = lines.filter((line) => line.startsWith(`${job} `)).map((line) => line.split(" "));
    const numbers = made.map(([, number]) => Number(number));
    expect(numbers, job).toEqual(numbers.toSorted((one, other) => one - other));
    // One key per call, shared by its repetitions. The call that asked a question continues under another key.
    expect([...new Set(made.map(([, number, key]) => `${number} ${key}`))], job).toHaveLength(5);
    expect(new Set(numbers), job).toEqual(new Set([1, 2, 3, 4]));
  }
  // Only calls whose process was killed before their result was stored are repeated.
  const least = jobs.length * 5;
  expect(lines.length).toBeGreaterThan(least);
  expect(lines.length).toBeLessThanOrEqual(least + count * open);
});
