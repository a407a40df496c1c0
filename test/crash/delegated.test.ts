import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@parley/a2a";
import { afterAll, expect, test, vi } from "vitest";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor, type Life } from "./supervisor.ts";

/**
 * An agent delegates to two tasks of another agent. That agent's process is killed just before or just after each of its appends. In every
 * other case, the delegating process is killed as well.
 */
const kills = times(2, 14);

const folder = await mkdtemp(join(diskFolder(), "parley-delegated-"));
const supervised = async (name: string, script: URL): Promise<Supervisor> => {
  const path = join(folder, `${name}.db`);
  await writeFile(`${path}.lives`, "0");
  return new Supervisor(path, await reservePort(), fileURLToPath(script));
};
const other = await supervised("other", new URL("delegated-server.ts", import.meta.url));
const main = await supervised("main", new URL("delegation-server.ts", import.meta.url));
await writeFile(join(folder, "main.db.other"), other.url);
afterAll(async () => {
  for (const each of [main, other]) each.stop();
  await rm(folder, { recursive: true });
});

async function ended(life: Life): Promise<void> {
  life.kill("SIGKILL");
  await life.end;
}

async function send(messageId: string): Promise<string> {
  const client = await connect(main.url, { retry: false });
  const configuration = { returnImmediately: true };
  const { task } = await client.sendMessage({ message: { messageId, parts: [{ text: messageId }] }, configuration });
  return task?.id ?? "";
}

/** Resolves once the task has ended. */
async function over(id: string): Promise<void> {
  const client = await connect(main.url);
  await vi.waitFor(async () => expect((await client.getTask(id)).status.state).toMatch(/COMPLETED|FAILED/), {
    timeout: 60_000,
    interval: 20,
  });
}

/** The messages to the other agent that begin with this text. */
async function sent(begin: string): Promise<readonly string[]> {
  const client = await connect(other.url);
  const { tasks } = await client.listTasks({ pageSize: 100, historyLength: 100 });
  const said = tasks.flatMap(({ history = [] }) =>
    history.flatMap(({ role, parts }) => (role === "ROLE_USER" ? [parts[0]?.text ?? ""] : [])),
  );
  return said.filter((each) => each.startsWith(begin)).toSorted();
}

test(`sends each message once, and has each artifact once: ${kills} kills of the other agent`, async () => {
  let working = await main.start();
  for (let kill = 0; kill < kills; kill += 1) {
    const both = kill % 2 === 1;
    const at = 2 + (Math.floor(kill / 2) % 9);
    let asked = await other.start({ moment: kill % 4 < 2 ? "before" : "after", append: at });
    if (both) {
      await ended(working);
      working = await main.start({ moment: kill % 4 < 2 ? "after" : "before", append: at + 2 });
    }
    const messageId = `kill-${kill}`;
    const first = await send(messageId).catch(() => "");
    const deaths = both ? [asked.end, working.end] : [asked.end];
    // The task may end before the append. If one of the processes dies, the other one may not reach its own append.
    const enough = both ? new Promise((resolve) => setTimeout(resolve, 500)) : over(first);
    await Promise.race([Promise.all(deaths), enough]);
    await ended(asked);
    if (both) await ended(working);
    asked = await other.start();
    if (both) working = await main.start();
    const id = await send(messageId);
    await over(id);
    const { status, artifacts } = await (await connect(main.url)).getTask(id);
    const words = await sent(`${messageId} `);
    // An agent that is not resumable may fail if it died before its first delegation. In that case nothing was sent.
    if (status.state === "TASK_STATE_COMPLETED" || !both) {
      const whole = ["one", "two"].map((each) => `${messageId} ${each} a b c d`);
      expect(status.message?.parts[0]?.text).toBe(whole.join(" and "));
      expect(artifacts?.map(({ parts }) => parts.map((part) => part.text).join("")).toSorted()).toEqual(whole);
      expect(words).toEqual([`${messageId} one`, `${messageId} two`]);
    } else expect(new Set(words).size).toBe(words.length);
    await ended(asked);
  }
  await ended(working);
  const complaints = [...main.complaints, ...other.complaints];
  expect(complaints.filter((line) => !line.startsWith("A lost task"))).toEqual([]);
}, 600_000);
