import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, type Client, type Task } from "@parley/a2a";
import { afterAll, expect, test } from "vitest";
import { times } from "../../../../test/counts.ts";
import { reservePort, Supervisor, type Life } from "../../../../test/crash/supervisor.ts";
import { diskFolder } from "../../../../test/temporary.ts";

/** A real server on SQLite is killed at random while its agents ask models, run tools and wait for approvals. */
const kills = times(3, 50);

const folder = await mkdtemp(join(diskFolder(), "parley-ai-sdk-"));
const path = join(folder, "tasks.db");
await writeFile(`${path}.lives`, "0");
await writeFile(`${path}.calls`, "");
const script = fileURLToPath(new URL("ai-sdk-server.ts", import.meta.url));
const supervisor = new Supervisor(path, await reservePort(), script);
afterAll(async () => {
  supervisor.stop();
  await rm(folder, { recursive: true });
});

interface Job {
  readonly name: string;
  readonly agent: string;
}

const clients = new Map<string, Client>();
async function clientOf(agent: string): Promise<Client> {
  const client =
    clients.get(agent) ?? (await connect(`${supervisor.url}/${agent}`, { retry: false, reconnect: false }));
  clients.set(agent, client);
  return client;
}

const immediately = { returnImmediately: true } as const;

/** Sends the message again until its task ends, and answers its question: both are safe to repeat. */
async function pursue({ name, agent }: Job): Promise<Task> {
  for (;;) {
    try {
      const client = await clientOf(agent);
      const message = { messageId: name, parts: [{ text: name }] };
      const { task } = await client.sendMessage({ message, configuration: immediately });
      const now = await client.getTask(task?.id ?? "");
      if (/COMPLETED|FAILED/.test(now.status.state)) return now;
      if (now.status.state === "TASK_STATE_INPUT_REQUIRED") {
        const yes = {
          messageId: `${name} yes`,
          taskId: now.id,
          contextId: now.contextId ?? "",
          parts: [{ text: "yes" }],
        };
        await client.sendMessage({ message: yes, configuration: immediately });
      }
    } catch {
      // The server was killed.
    }
    await setTimeout(20);
  }
}

/** What a person sees who reads a streamed answer while the server is killed as often as the name of the job says. */
async function read(name: string, agent: string): Promise<{ readonly shown: string; readonly resets: number }> {
  const client = await connect(`${supervisor.url}/${agent}`);
  let [shown, resets] = ["", 0];
  const stream = client.sendStreamingMessage({ message: { messageId: name, parts: [{ text: name }] } });
  for await (const { text, reset } of stream.text()) {
    shown = reset ? text : shown + text;
    if (reset) resets += 1;
  }
  expect(stream.status?.state).toBe("TASK_STATE_COMPLETED");
  return { shown, resets };
}

/** Calls of the model and the tools for a job, in the order in which they were made: their numbers in its script. */
const callsOf = (lines: readonly string[], job: string): readonly number[] =>
  lines.filter((line) => line.startsWith(`${job} `)).map((line) => Number(line.split(" ")[1]));

async function killed(life: Life): Promise<Life> {
  await setTimeout(200 + Math.random() * 800);
  life.kill("SIGKILL");
  expect(await life.end).toBe("SIGKILL");
  return supervisor.start();
}

test(`repeats no stored call, and doubles no text: ${kills} kills`, async () => {
  const jobs: Job[] = [];
  const tasks: Promise<Task>[] = [];
  let life = await supervisor.start();
  const readers = ["ai-6", "ai-7"].map((agent) => ({ name: `job-read-${agent}-until-${Math.min(kills, 10)}`, agent }));
  const reads = readers.map(({ name, agent }) => read(name, agent));
  for (let kill = 0; kill < kills; kill += 1) {
    for (const agent of ["ai-6", "ai-7"]) {
      const job = { name: `job-${agent}-${kill}`, agent };
      jobs.push(job);
      tasks.push(pursue(job));
    }
    life = await killed(life);
  }
  const ended = await Promise.all(tasks);
  const seen = await Promise.all(reads);
  life.kill("SIGKILL");
  const texts = ended.map(({ artifacts }) => artifacts?.map(({ parts }) => parts.map(({ text }) => text).join("")));
  expect(ended.map(({ status }) => status.state)).toEqual(jobs.map(() => "TASK_STATE_COMPLETED"));
  expect(texts).toEqual(jobs.map(() => ["Looking it up.", "I would pay.", "I have paid it."]));

  // A call follows only once the result of the one before is stored: nothing before it was made again.
  const lines = (await readFile(`${path}.calls`, "utf8")).trim().split("\n");
  for (const [at, { name }] of readers.entries()) {
    const made = callsOf(lines, name);
    expect(made).toEqual(made.toSorted((one, other) => one - other));
    const steps = Array.from({ length: ((made.at(-1) ?? 0) + 1) / 2 }, (_, step) => `Step ${step} is done.`);
    expect(seen[at]).toEqual({ shown: steps.join("\n"), resets: 0 });
  }
  for (const { name } of jobs) {
    const made = callsOf(lines, name);
    expect(made, name).toEqual(made.toSorted((one, other) => one - other));
    expect([...new Set(made)], name).toEqual([1, 2, 3, 4, 5]);
  }
  // Calls whose process was killed before their result was stored are made again, and there are such calls.
  const least = jobs.length * 5;
  const all = jobs.flatMap(({ name }) => callsOf(lines, name)).length;
  expect(all).toBeGreaterThanOrEqual(least);
  expect(all).toBeLessThanOrEqual(least + kills * jobs.length);
});
