import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Client } from "@parley/a2a";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor } from "./supervisor.ts";

/** A real server on SQLite is killed while its agents have side effects, questions and waits. Each side effect is a line of a file. */
const kills = times(1, 10);

const folder = await mkdtemp(join(diskFolder(), "parley-steps-"));
const path = join(folder, "tasks.db");
await writeFile(`${path}.lives`, "0");
await writeFile(`${path}.effects`, "");
const script = fileURLToPath(new URL("steps-server.ts", import.meta.url));
const supervisor = new Supervisor(path, await reservePort(), script);
afterAll(async () => {
  supervisor.stop();
  await rm(folder, { recursive: true });
});

// Runs even if a test has failed, because the next one needs the port.
afterEach(() => supervisor.stop());

const patient = { interval: 20 };
const immediately = { returnImmediately: true } as const;

const clientOf = (agent: string): Promise<Client> =>
  connect(`${supervisor.url}/${agent}`, { retry: false, reconnect: false });

/** Sends a message, and returns the id of its task. A repeated message returns the existing task. */
async function send(agent: string, words: string, taskId?: string): Promise<string> {
  const message = { messageId: `${words} ${taskId}`, parts: [{ text: words }], ...(taskId && { taskId }) };
  const { task } = await (await clientOf(agent)).sendMessage({ message, configuration: immediately });
  return task?.id ?? "";
}

async function reached(agent: string, taskId: string, state: string): Promise<string | undefined> {
  const client = await clientOf(agent);
  await vi.waitFor(async () => expect((await client.getTask(taskId)).status.state).toMatch(new RegExp(state)), patient);
  return (await client.getTask(taskId)).status.message?.parts[0]?.text;
}

/** The idempotency keys of a message's side effects, and whether each call learned that an earlier one may have taken effect. */
async function effectsOf(
  words: string,
): Promise<{ readonly keys: Set<string>; readonly uncertain: readonly string[] }> {
  const lines = (await readFile(`${path}.effects`, "utf8")).split("\n").filter((line) => line.startsWith(`${words} `));
  const parts = lines.map((line) => line.slice(words.length + 1).split(" "));
  return { keys: new Set(parts.map(([key = ""]) => key)), uncertain: parts.map(([, told = ""]) => told) };
}

/** The moment of the kill, and the `uncertain` flag of each call of the function. */
const moments = [
  { at: "book before", uncertain: ["false"] },
  { at: "book inside", uncertain: ["true"] },
  { at: "book asking effect", uncertain: ["false"] },
  { at: "book recorded", uncertain: ["false"] },
  { at: "book effect", uncertain: ["false", "true"] },
].slice(-times(2, 5));

describe("turn.step()", () => {
  // A side effect without a stored result may happen twice, with the same key. One with a stored result is not repeated.
  test.each(moments)("takes effect under one key if its process is killed: $at", async ({ at, uncertain }) => {
    let life = await supervisor.start();
    await send("booker", at).catch(() => {});
    expect(await life.end).toBe("SIGKILL");
    life = await supervisor.start();
    const id = await send("booker", at);
    expect(await reached("booker", id, "COMPLETED")).toMatch(/^booked in life \d+$/);
    const effects = await effectsOf(at);
    expect(effects.keys.size).toBe(1);
    expect(effects.uncertain).toEqual(uncertain);
    life.kill("SIGKILL");
    await life.end;
  });

  test(`takes effect under one key: ${kills} kills at an append`, async () => {
    for (let kill = 0; kill < kills; kill += 1) {
      const words = `kill ${kill} x`;
      // Append 1 creates the task. The start of the step comes next, then its result, then the end.
      let life = await supervisor.start({ moment: kill % 2 === 0 ? "after" : "before", append: 1 + (kill % 5) });
      await Promise.race([life.end, send("booker", words).then((id) => reached("booker", id, "COMPLETED"))]).catch(
        () => {},
      );
      life.kill("SIGKILL");
      await life.end;
      life = await supervisor.start();
      const id = await send("booker", words);
      expect(await reached("booker", id, "COMPLETED|FAILED")).toMatch(/^booked in life/);
      const { keys, uncertain } = await effectsOf(words);
      expect(keys.size).toBe(1);
      expect(uncertain.length).toBeLessThan(3);
      life.kill("SIGKILL");
      await life.end;
    }
    expect(supervisor.complaints).toEqual([]);
  });
});

describe("an agent that is not resumable", () => {
  test("waits for the answer to its question after its process was killed, whether or not its function had returned", async () => {
    let life = await supervisor.start();
    const asked = [await send("asker", "asks"), await send("asker", "asks slowly")];
    const lost = await send("asker", "never asks");
    for (const id of asked) expect(await reached("asker", id, "INPUT_REQUIRED")).toBe("Which city?");
    await reached("asker", lost, "WORKING");
    life.kill("SIGKILL");
    await life.end;
    life = await supervisor.start();
    // Once this task has failed, the server has also handled the lost ones.
    expect(await reached("asker", lost, "FAILED")).toContain("interrupted");
    for (const id of asked) {
      expect(await reached("asker", id, "INPUT_REQUIRED")).toBe("Which city?");
      await send("asker", "Basel", id);
      expect(await reached("asker", id, "COMPLETED|FAILED")).toBe("You said Basel");
    }
    life.kill("SIGKILL");
    await life.end;
  });

  test("gets an answer that came before its process was killed, and its function had not returned", async () => {
    let life = await supervisor.start();
    const id = await send("asker", "asks slowly again");
    await reached("asker", id, "INPUT_REQUIRED");
    await send("asker", "Zurich", id);
    life.kill("SIGKILL");
    await life.end;
    life = await supervisor.start();
    expect(await reached("asker", id, "COMPLETED|FAILED")).toBe("You said Zurich");
    life.kill("SIGKILL");
    await life.end;
  });

  test("continues after its process was killed while it waited, with a sleep that ended meanwhile", async () => {
    const life = await supervisor.start();
    const id = await sleeping("plain-waiter", "plain x");
    life.kill("SIGKILL");
    await life.end;
    await supervisor.start();
    await tell(id);
    expect(await reached("plain-waiter", id, "COMPLETED|FAILED")).toMatch(/^\{"booked":\d+,"word":"hello"\}$/);
    expect((await effectsOf("plain x")).uncertain).toEqual(["false"]);
  });
});

describe("a task that waits", () => {
  test(`waits through kills, and books once: ${kills} kills at an append`, async () => {
    for (let kill = 0; kill < kills; kill += 1) {
      const words = `wait ${kill} x`;
      let life = await supervisor.start();
      // Its sleep ends in the next process, which kills itself while it wakes the task, or takes the event.
      const id = await sleeping("waiter", words);
      life.kill("SIGKILL");
      await life.end;
      life = await supervisor.start({ moment: kill % 2 === 0 ? "before" : "after", append: 1 + (kill % 6) });
      await Promise.race([life.end, tell(id).then(() => reached("waiter", id, "COMPLETED|FAILED"))]).catch(() => {});
      life.kill("SIGKILL");
      await life.end;
      life = await supervisor.start();
      await tell(id);
      const said = await reached("waiter", id, "COMPLETED|FAILED");
      const { keys, uncertain } = await effectsOf(words);
      expect([keys.size, uncertain]).toEqual([1, ["false"]]);
      expect(said).toMatch(/^\{"booked":\d+,"word":"hello"\}$/);
      life.kill("SIGKILL");
      await life.end;
    }
    expect(supervisor.complaints).toEqual([]);
  });
});

/** Sends a message, and waits until its task sleeps. Returns the id of the task. */
async function sleeping(agent: string, words: string): Promise<string> {
  const id = await send(agent, words);
  // If the process died earlier, it would lose a run instead of a wait.
  await vi.waitFor(async () => {
    expect((await effectsOf(words)).keys.size).toBe(1);
    expect(await (await fetch(`${supervisor.url}/run/${id}`)).json()).toBe(false);
  }, patient);
  return id;
}

/** Sends a task its event, perhaps repeatedly: the event has an id. A terminal task rejects it. */
async function tell(taskId: string): Promise<void> {
  await fetch(`${supervisor.url}/word/${taskId}`);
}
