import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, type Client, type Task } from "@parley/a2a";
import { expect, onTestFinished, test } from "vitest";
import { times } from "../../../../test/counts.ts";
import { reservePort, Supervisor, type Life } from "../../../../test/crash/supervisor.ts";
import { diskFolder } from "../../../../test/temporary.ts";

const kills = times(3, 50);

interface Job {
  readonly name: string;
  readonly agent: string;
}

const immediately = { returnImmediately: true } as const;

/** A busy machine kills a server more often than it lets a request through. */
const patient = { budget: Infinity, maxDelay: 200 };

/** A server, and clients of its agents. */
class Served {
  readonly #supervisor: Supervisor;
  readonly #path: string;
  readonly #clients = new Map<string, Client>();

  constructor(supervisor: Supervisor, path: string) {
    this.#supervisor = supervisor;
    this.#path = path;
  }

  /** Sends the message again until its task ends, and answers its question: both are safe to repeat. */
  async pursue({ name, agent }: Job): Promise<Task> {
    for (;;) {
      try {
        const client = await this.#clientOf(agent);
        const message = { messageId: name, parts: [{ text: name }] };
        const { task } = await client.sendMessage({ message, configuration: immediately });
        const now = await client.getTask(task?.id ?? "");
        if (/COMPLETED|FAILED/.test(now.status.state)) return now;
        if (now.status.state === "TASK_STATE_INPUT_REQUIRED") {
          const to = { taskId: now.id, contextId: now.contextId ?? "" };
          const yes = { messageId: `${name} yes ${now.status.message?.messageId}`, ...to, parts: [{ text: "yes" }] };
          await client.sendMessage({ message: yes, configuration: immediately });
        }
      } catch {
        // The server was killed.
      }
      await setTimeout(20);
    }
  }

  /** What a person sees who reads a streamed answer, and how often it was replaced. */
  async read({ name, agent }: Job): Promise<{ readonly shown: string; readonly resets: number }> {
    const client = await connect(`${this.#supervisor.url}/${agent}`, { retry: patient, reconnect: patient });
    let [shown, resets] = ["", 0];
    const stream = client.sendStreamingMessage({ message: { messageId: name, parts: [{ text: name }] } });
    for await (const { text, reset } of stream.text()) {
      shown = reset ? text : shown + text;
      if (reset) resets += 1;
    }
    if (stream.status?.state !== "TASK_STATE_COMPLETED") throw new Error(`${name} has ended: ${stream.status?.state}`);
    return { shown, resets };
  }

  async #clientOf(agent: string): Promise<Client> {
    const url = `${this.#supervisor.url}/${agent}`;
    const client = this.#clients.get(agent) ?? (await connect(url, { retry: false, reconnect: false }));
    this.#clients.set(agent, client);
    return client;
  }

  /** What was called so far: lines of the job and the number of the call. */
  async calls(): Promise<readonly string[]> {
    return (await readFile(`${this.#path}.calls`, "utf8")).split("\n").slice(0, -1);
  }

  /** Kills the server in the middle of its work: after some more calls of models and tools. */
  async kill(life: Life): Promise<Life> {
    const count = (await this.calls()).length + 1 + Math.floor(Math.random() * 25);
    while ((await this.calls()).length < count) await setTimeout(5);
    await setTimeout(Math.random() * 20);
    life.kill("SIGKILL");
    const end = await life.end;
    if (end !== "SIGKILL") throw new Error(`The server ended before it was killed: ${end}`);
    return this.#supervisor.start();
  }
}

/** Calls of models and tools for a job, in the order in which they were made: their numbers in its script. */
function callsOf(lines: readonly string[], { name }: Job): readonly number[] {
  const made = lines.filter((line) => line.startsWith(`${name} `)).map((line) => Number(line.split(" ")[1]));
  // A call follows only once the result of the one before is stored: nothing before it was made again.
  expect(made, name).toEqual(made.toSorted((one, other) => one - other));
  return made;
}

/** How many calls the script of each agent of server.ts has. */
const agents: Readonly<Record<string, number>> = {
  "ai-6": 5,
  "ai-7": 5,
  elicits: 6,
  alone: 5,
  hands: 6,
  asks: 5,
  plain: 5,
  durable: 5,
  nested: 5,
  approved: 5,
  suspended: 5,
  claude: 4,
};

/** Agents whose answers are read while the server is killed: one step after the other, until the life that the name of the job says. */
const read = ["ai-6", "ai-7"];

/**
 * A real server on SQLite is killed at random while its agents ask models, run tools and wait for answers. Each says that it looks something up,
 * that it would pay, which it asks about, and that it has paid.
 */
test(`repeats no stored call, and doubles no text: ${kills} kills`, async () => {
  const folder = await mkdtemp(join(diskFolder(), "parley-agents-"));
  const path = join(folder, "tasks.db");
  await writeFile(`${path}.lives`, "0");
  await writeFile(`${path}.calls`, "");
  const script = fileURLToPath(new URL("server.ts", import.meta.url));
  const supervisor = new Supervisor(path, await reservePort(), script);
  onTestFinished(async () => {
    supervisor.stop();
    await rm(folder, { recursive: true });
  });
  const served = new Served(supervisor, path);
  const jobs: Job[] = [];
  const tasks: Promise<Task>[] = [];
  let life = await supervisor.start();
  const readers = read.map((agent) => ({ name: `job-read-${agent}-until-${Math.min(kills, 10)}`, agent }));
  const reads = readers.map((job) => served.read(job));
  for (let kill = 0; kill < kills; kill += 1) {
    for (const agent of Object.keys(agents)) {
      const job = { name: `job-${agent}-${kill}`, agent };
      jobs.push(job);
      tasks.push(served.pursue(job));
    }
    life = await served.kill(life);
  }
  const ended = await Promise.all(tasks);
  const seen = await Promise.all(reads);
  life.kill("SIGKILL");
  const texts = ended.map(({ artifacts }) => artifacts?.map(({ parts }) => parts.map(({ text }) => text).join("")));
  expect(ended.map(({ status }) => status.state)).toEqual(jobs.map(() => "TASK_STATE_COMPLETED"));
  expect(texts).toEqual(jobs.map(() => ["Looking it up.", "I would pay.", "I have paid it."]));

  const lines = await served.calls();
  for (const [at, job] of readers.entries()) {
    const steps = Array.from(
      { length: ((callsOf(lines, job).at(-1) ?? 0) + 1) / 2 },
      (_, step) => `Step ${step} is done.`,
    );
    expect(seen[at]).toEqual({ shown: steps.join("\n"), resets: 0 });
  }
  let [least, all] = [0, 0];
  for (const job of jobs) {
    const made = callsOf(lines, job);
    const count = agents[job.agent] ?? 0;
    least += count;
    all += made.length;
    expect([...new Set(made)], job.name).toEqual(Array.from({ length: count }, (_, at) => at + 1));
  }
  // Calls whose process was killed before their result was stored are made again, and there are such calls.
  expect(all).toBeGreaterThanOrEqual(least);
  expect(all).toBeLessThanOrEqual(least + kills * jobs.length);
});
