import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineAgent, serve } from "@parley/node";
import { connect, text } from "@parley/a2a";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, expect, test, vi } from "vitest";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor } from "./supervisor.ts";

/**
 * A real server on SQLite is killed while its agent delegates to two tasks of another agent, just before or just after each of its appends.
 * The delegating agent is not resumable. The other agent counts its messages.
 */
const kills = times(2, 18);

const folder = await mkdtemp(join(diskFolder(), "parley-delegation-"));
const path = join(folder, "tasks.db");
const script = fileURLToPath(new URL("delegation-server.ts", import.meta.url));
const supervisor = new Supervisor(path, await reservePort(), script);
const got: string[] = [];
const words = ["a", "b", "c", "d"];
const other = await serve(
  defineAgent({
    name: "Writer",
    description: "Writes",
    version: "1",
    skills: [],
    async *onMessage(turn) {
      got.push(turn.text);
      yield turn.artifact({ artifactId: "words", parts: [text(turn.text)], open: true });
      for (const word of words) {
        yield turn.append("words", [text(` ${word}`)], { last: word === "d" });
        await turn.flush();
      }
    },
  }),
  { port: 0, store: await sqliteStore({ path: join(folder, "other.db") }), logger: false },
);
await writeFile(`${path}.lives`, "0");
await writeFile(`${path}.other`, other.url);
afterAll(async () => {
  supervisor.stop();
  await other.close();
  await rm(folder, { recursive: true });
});

test(`sends each message once, and has each artifact once: ${kills} kills at an append`, async () => {
  for (let kill = 0; kill < kills; kill += 1) {
    // Append 1 creates the task. The rows come next, then chunks, then the end.
    let life = await supervisor.start({ moment: kill % 2 === 0 ? "before" : "after", append: 2 + (kill % 9) });
    const messageId = `kill-${kill}`;
    const send = async (): Promise<string> => {
      const client = await connect(supervisor.url, { retry: false });
      const configuration = { returnImmediately: true };
      const { task } = await client.sendMessage({ message: { messageId, parts: [text(messageId)] }, configuration });
      return task?.id ?? "";
    };
    // Until the server has killed itself, or the task has ended before that append.
    const over = async (taskId: string): Promise<unknown> =>
      (await connect(supervisor.url, { retry: false, reconnect: false })).waitFor(taskId);
    await Promise.race([
      life.end,
      send()
        .then(over)
        .catch(() => life.end),
    ]);
    life.kill("SIGKILL");
    await life.end;
    life = await supervisor.start();
    const id = await send();
    const client = await connect(supervisor.url);
    await vi.waitFor(async () => expect((await client.getTask(id)).status.state).toMatch(/COMPLETED|FAILED/), {
      timeout: 60_000,
      interval: 20,
    });
    const task = await client.getTask(id);
    // If the process died before the first delegation, the agent may fail, because it is not resumable. In that case nothing was sent.
    const sent = got.filter((each) => each.startsWith(`${messageId} `));
    if (task.status.state === "TASK_STATE_COMPLETED") {
      const whole = ["one", "two"].map((each) => `${messageId} ${each} a b c d`);
      expect(task.status.message?.parts[0]?.text).toBe(whole.join(" and "));
      const texts = task.artifacts?.map(({ parts }) => parts.map((part) => part.text).join(""));
      expect(texts?.toSorted()).toEqual(whole);
      expect(sent.toSorted()).toEqual([`${messageId} one`, `${messageId} two`]);
    } else expect(new Set(sent).size).toBe(sent.length);
    life.kill("SIGKILL");
    await life.end;
  }
  expect(supervisor.complaints.filter((line) => !line.startsWith("A lost task"))).toEqual([]);
}, 600_000);
