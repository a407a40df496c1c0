import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, type Client, type Task } from "@parley/a2a";
import { expect } from "vitest";
import { reservePort, Supervisor } from "../../../../test/crash/supervisor.ts";
import { diskFolder } from "../../../../test/temporary.ts";

interface KillTest {
  /** The program of the server, beside this file. */
  readonly program: string;
  /** Paths of its agents. */
  readonly agents: readonly string[];
  readonly kills: number;
  /** The text that answers each question. */
  readonly answer: string;
  /** The texts of each task's artifacts, in order. */
  readonly texts: readonly string[];
  /** Numbers of the calls of a job, in order. */
  readonly calls: readonly number[];
}

const immediately = { returnImmediately: true } as const;

/**
 * Kills a server at random while its agents ask models, run tools and wait for answers. Every task ends with its texts, and no call is made
 * again after a later one: a call follows only once the result of the one before is stored.
 */
export async function killTest({ program, agents, kills, answer, texts, calls }: KillTest): Promise<void> {
  const folder = await mkdtemp(join(diskFolder(), "parley-kills-"));
  const path = join(folder, "tasks.db");
  await writeFile(`${path}.lives`, "0");
  await writeFile(`${path}.calls`, "");
  const script = fileURLToPath(new URL(program, import.meta.url));
  const supervisor = new Supervisor(path, await reservePort(), script);
  const clients = new Map<string, Client>();

  /** Sends the message again until its task ends, and answers its question: both are safe to repeat. */
  const pursue = async (name: string, agent: string): Promise<Task> => {
    for (;;) {
      try {
        const client =
          clients.get(agent) ?? (await connect(`${supervisor.url}/${agent}`, { retry: false, reconnect: false }));
        clients.set(agent, client);
        const message = { messageId: name, parts: [{ text: name }] };
        const { task } = await client.sendMessage({ message, configuration: immediately });
        const now = await client.getTask(task?.id ?? "");
        if (/COMPLETED|FAILED/.test(now.status.state)) return now;
        if (now.status.state === "TASK_STATE_INPUT_REQUIRED") {
          const { id: taskId, contextId = "" } = now;
          const reply = { messageId: `${name} answer`, taskId, contextId, parts: [{ text: answer }] };
          await client.sendMessage({ message: reply, configuration: immediately });
        }
      } catch {
        // The server was killed.
      }
      await setTimeout(20);
    }
  };

  try {
    const names: string[] = [];
    const tasks: Promise<Task>[] = [];
    let life = await supervisor.start();
    for (let kill = 0; kill < kills; kill += 1) {
      for (const agent of agents) {
        const name = `job-${agent}-${kill}`;
        names.push(name);
        tasks.push(pursue(name, agent));
      }
      await setTimeout(200 + Math.random() * 800);
      life.kill("SIGKILL");
      expect(await life.end).toBe("SIGKILL");
      life = await supervisor.start();
    }
    const ended = await Promise.all(tasks);
    const shown = ended.map(({ artifacts }) => artifacts?.map(({ parts }) => parts.map(({ text }) => text).join("")));
    expect(ended.map(({ status }) => status.state)).toEqual(names.map(() => "TASK_STATE_COMPLETED"));
    expect(shown).toEqual(names.map(() => texts));

    const lines = (await readFile(`${path}.calls`, "utf8")).trim().split("\n");
    for (const name of names) {
      const made = lines.filter((line) => line.startsWith(`${name} `)).map((line) => Number(line.split(" ")[1]));
      expect(made, name).toEqual(made.toSorted((one, other) => one - other));
      expect([...new Set(made)], name).toEqual(calls);
    }
    // Calls whose process was killed before their result was stored are made again.
    const least = names.length * calls.length;
    expect(lines.length).toBeGreaterThanOrEqual(least);
    expect(lines.length).toBeLessThanOrEqual(least + kills * names.length);
  } finally {
    supervisor.stop();
    await rm(folder, { recursive: true });
  }
}
