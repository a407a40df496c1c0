import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, readAuthorization } from "@parley/a2a";
import { afterAll, describe, expect, test, vi } from "vitest";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor } from "./supervisor.ts";

/**
 * A real server on SQLite is killed while a turn waits for an authorization: before the link is shown, while it is open, after the
 * credential has arrived, and just before or after the appends in between. Its agent is not resumable.
 */
const kills = times(1, 12);

const folder = await mkdtemp(join(diskFolder(), "parley-intask-"));
const path = join(folder, "tasks.db");
await writeFile(`${path}.lives`, "0");
const script = fileURLToPath(new URL("intask-server.ts", import.meta.url));
const supervisor = new Supervisor(path, await reservePort(), script);
afterAll(async () => {
  supervisor.stop();
  await rm(folder, { recursive: true });
});

const patient = { timeout: 60_000, interval: 20 };

async function requestOf(taskId: string) {
  const client = await connect(supervisor.url);
  const { status } = await client.getTask(taskId);
  expect(status.state).toBe("TASK_STATE_AUTH_REQUIRED");
  return readAuthorization(status.message);
}

async function give(url: string, secret: string): Promise<number> {
  const body = new URLSearchParams({
    request: new URL(url).searchParams.get("request") ?? "",
    decision: "give",
    secret,
  });
  return (await fetch(url, { method: "POST", body })).status;
}

describe("a turn that waits for an authorization (A2A 1.0 §7.6)", () => {
  test("continues after the server was killed, with the link that was shown", async () => {
    let life = await supervisor.start();
    const { task } = await (await connect(supervisor.url)).sendMessage("Buy bread");
    const taskId = task?.id ?? "";
    const request = await requestOf(taskId);
    for (let kill = 0; kill < times(1, 3); kill += 1) {
      life.kill("SIGKILL");
      expect(await life.end).toBe("SIGKILL");
      life = await supervisor.start();
      expect(await requestOf(taskId)).toEqual(request);
    }
    const secret = "MARK-crash-0815";
    expect(await give(request?.url ?? "", secret)).toBe(200);
    const client = await connect(supervisor.url);
    await vi.waitFor(
      async () => expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_COMPLETED"),
      patient,
    );
    expect((await client.getTask(taskId)).artifacts?.[0]?.parts[0]?.text).toBe(String(secret.length));
    life.kill("SIGKILL");
    await life.end;
    for (const file of await readdir(folder)) {
      expect(await readFile(join(folder, file), "latin1")).not.toContain(secret);
    }
    expect(supervisor.complaints).toEqual([]);
  }, 120_000);

  test(`never waits forever, and never continues without the credential: ${kills} kills at an append`, async () => {
    for (let kill = 0; kill < kills; kill += 1) {
      // Append 1 creates the task, the next one stores its row, and the one after that its link. Then come the answer and the end.
      let life = await supervisor.start({ moment: kill % 2 === 0 ? "before" : "after", append: 2 + (kill % 12) });
      const secret = `MARK-kill-${kill}`;
      const messageId = `kill-${kill}`;
      await sendAndGive(messageId, secret).catch(() => {
        // The server was killed during a call.
      });
      life.kill("SIGKILL");
      await life.end;
      life = await supervisor.start();
      // A repeated message finds its task, or creates it.
      await settled(await sendAndGive(messageId, secret), secret);
      life.kill("SIGKILL");
      await life.end;
    }
    expect(supervisor.complaints.filter((line) => !line.startsWith("A lost task"))).toEqual([]);
  }, 300_000);
});

/** Sends a message, and answers its task's request. */
async function sendAndGive(messageId: string, secret: string): Promise<string> {
  const client = await connect(supervisor.url, { retry: false });
  const { task } = await client.sendMessage({ messageId, parts: [{ text: "Buy" }] });
  const url = readAuthorization(task?.status.message)?.url;
  if (url !== undefined) await give(url, secret);
  await client.getTask(task?.id ?? "");
  return task?.id ?? "";
}

/** A task that has not received its credential can still get it. A task that was interrupted elsewhere has failed. */
async function settled(taskId: string, secret: string): Promise<void> {
  const client = await connect(supervisor.url);
  await vi.waitFor(async () => {
    const { status, artifacts } = await client.getTask(taskId);
    if (status.state === "TASK_STATE_AUTH_REQUIRED") await give(readAuthorization(status.message)?.url ?? "", secret);
    expect(["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"]).toContain(status.state);
    if (status.state === "TASK_STATE_COMPLETED") {
      expect(artifacts?.[0]?.parts[0]?.text).toBe(String(secret.length));
    }
  }, patient);
}
