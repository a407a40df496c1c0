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

/** On a busy machine, kills are more frequent than successful requests. */
const patient = { budget: Infinity, maxDelay: 200 };

/** A server, and clients for its agents. */
class Served {
  readonly #supervisor: Supervisor;
  readonly #path: string;
  readonly #clients = new Map<string, Client>();

  constructor(supervisor: Supervisor, path: string) {
    this.#supervisor = supervisor;
    this.#path = path;
  }

  /** Retries the message until its task ends, and answers its question. Both are idempotent. */
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

  /** The text of a streamed answer as its reader sees it, and how often it was reset. */
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

  /** The calls so far: a line with the job and the number of each call. */
  async calls(): Promise<readonly string[]> {
    return (await readFile(`${this.#path}.calls`, "utf8")).split("\n").slice(0, -1);
  }

  /** Kills the server during its work, after some more model and tool calls. */
  async kill(life: Life): Promise<Life> {
    const count = (await this.calls()).length + 1 + Math.floor(Math.random() * 25);
    let isAlive = true;
    void life.end.then(() => (isAlive = false));
    while (isAlive && (await this.calls()).length < count) await setTimeout(5);
    await setTimeout(Math.random() * 20);
    life.kill("SIGKILL");
    const end = await life.end;
    if (end !== "SIGKILL") throw new Error(`The server ended before it was killed: ${end}`);
    return this.#supervisor.start();
  }
}

/** The script numbers of a job's model and tool calls, in the order of the calls. */
function callsOf(lines: readonly string[], { name }: Job): readonly number[] {
  const made = lines.filter((line) => line.startsWith(`${name} `)).map((line) => Number(line.split(" ")[1]));
  // A call is made only after the previous result is stored, so no earlier call was repeated.
  expect(made, name).toEqual(made.toSorted((one, other) => one - other));
  return made;
}

/** Number of calls in the script of each agent in server.ts. */
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

/** Agents whose answers are read across kills: one step after the other, for as many lives as the name of the job says. */
const read = ["ai-6", "ai-7"];

/**
 * Kills a real server on SQLite at random while its agents call models, run tools and wait for answers. Each agent looks something up, asks
 * whether to pay, and pays.
 */
test(`repeats no stored call, and duplicates no text: ${kills} kills`, async () => {
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
  const ended: (readonly [Job, Task])[] = [];
  let life = await supervisor.start();
  const readers = read.map((agent) => ({ name: `job-read-${agent}-until-${Math.min(kills, 10)}`, agent }));
  const reads = readers.map((job) => served.read(job));
  let isOver = false;
  // Each agent has a job at each kill.
  const work = Object.keys(agents).map(async (agent) => {
    for (let count = 0; !isOver; count += 1) {
      const job = { name: `job-${agent}-${count}`, agent };
      ended.push([job, await served.pursue(job)]);
    }
  });
  for (let kill = 0; kill < kills; kill += 1) life = await served.kill(life);
  isOver = true;
  await Promise.all(work);
  const seen = await Promise.all(reads);
  life.kill("SIGKILL");
  for (const [{ name }, { status, artifacts }] of ended) {
    const texts = artifacts?.map(({ parts }) => parts.map(({ text }) => text).join(""));
    const said = ["Looking it up.", "I would pay.", "I have paid it."];
    expect([status.state, texts], name).toEqual(["TASK_STATE_COMPLETED", said]);
  }

  const lines = await served.calls();
  for (const [at, job] of readers.entries()) {
    const steps = Array.from(
      { length: ((callsOf(lines, job).at(-1) ?? 0) + 1) / 2 },
      (_, step) => `Step ${step} is done.`,
    );
    expect(seen[at]).toEqual({ shown: steps.join("\n"), resets: 0 });
  }
  let [least, all] = [0, 0];
  for (const [job] of ended) {
    const made = callsOf(lines, job);
    const count = agents[job.agent] ?? 0;
    least += count;
    all += made.length;
    expect([...new Set(made)], job.name).toEqual(Array.from({ length: count }, (_, at) => at + 1));
  }
  // Calls are repeated if the process was killed before their result was stored. There must be such calls.
  expect(all).toBeGreaterThanOrEqual(least);
  expect(all).toBeLessThanOrEqual(least + kills * work.length);
});
