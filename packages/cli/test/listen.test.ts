import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect } from "@parley/a2a";
import type { Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { run } from "../src/program.ts";
import scripted from "./fixtures/agent.ts";
import { recordedIo } from "./support/io.ts";
import { startServer } from "./support/server.ts";

/** `parley listen`: the webhooks of a real server arrive at a real receiver. */

let server: Server;

beforeAll(async () => {
  server = await startServer(scripted, { push: true });
});
afterAll(() => server.close({ grace: 0 }));

/** Starts the command; `until` waits for output. */
function listen(...args: readonly string[]) {
  const recorded = recordedIo();
  const code = run(["listen", ...args], recorded.io);
  const until = (text: string): Promise<void> => vi.waitFor(() => expect(recorded.both()).toContain(text), 60_000);
  return { ...recorded, code, until };
}

async function taskOf(text: string): Promise<string> {
  const client = await connect(server.url);
  const { task } = await client.sendMessage({ message: text, configuration: { returnImmediately: true } });
  return task?.id ?? "";
}

async function webhooksOf(taskId: string): Promise<readonly unknown[]> {
  const client = await connect(server.url);
  return (await client.listTaskPushNotificationConfigs({ taskId })).configs ?? [];
}

function taskIn(text: string): string {
  return /task (\S+)/.exec(text)?.[1] ?? "";
}

describe("parley listen", () => {
  test("sends a message, and shows all webhooks of its task, each verified, until the task ends", async () => {
    const { code, out, err } = listen(server.url, "--message", "stream");
    expect(await code).toBe(0);
    expect(out()).toBe('Roses are red,\nviolets are blue.\n{\n  "petals": 5\n}\n');
    expect(err().replace(/^webhooks of task \S+ arrive at http:\/\/127\.0\.0\.1:\d+\/\n/, "")).toBe(
      [
        "webhook 1, signature verified",
        "● working  Thinking",
        "webhook 2, signature verified",
        "◆ poem",
        "webhook 3, signature verified",
        "◆ facts",
        "webhook 4, signature verified",
        "✓ completed",
        "",
      ].join("\n"),
    );
    expect(await webhooksOf(taskIn(err()))).toEqual([]);
  });

  test("shows a known task, then its webhooks; a failed task exits with 1", async () => {
    const id = await taskOf("hang");
    const { code, err, until } = listen(server.url, id);
    await until("arrive at");
    expect(await webhooksOf(id)).toHaveLength(1);
    const client = await connect(server.url);
    await client.cancelTask(id);
    expect(await code).toBe(1);
    expect(err()).toMatch(
      /^task .*\n● working {2}Hanging\nwebhooks of .*\nwebhook 1, signature verified\n✗ canceled\n$/,
    );
    expect(await webhooksOf(id)).toEqual([]);
  });

  test("ends at once for a terminal task, and for a direct reply", async () => {
    const id = await taskOf("fail");
    await vi.waitFor(async () =>
      expect((await (await connect(server.url)).getTask(id)).status.state).toMatch(/FAILED/),
    );
    const over = listen(server.url, id);
    expect(await over.code).toBe(1);
    expect(over.err()).toMatch(/✗ failed: It broke\.\n$/);
    const reply = listen(server.url, "--message", "hello");
    expect(await reply.code).toBe(0);
    expect(reply.out()).toBe("You said: hello\n");
  });

  test("removes the webhook at Ctrl-C, and says how to continue", async () => {
    const { code, err, until, interrupt } = listen(server.url, "--message", "hang");
    await until("● working");
    interrupt("SIGINT");
    expect(await code).toBe(130);
    expect(err()).toContain("Interrupted; the task keeps running.");
    expect(await webhooksOf(taskIn(err()))).toEqual([]);
  });

  test("continues through a question, so it can be answered from elsewhere", async () => {
    const { code, err, until } = listen(server.url, "--message", "ask");
    await until("The agent is waiting for your answer");
    const taskId = taskIn(err());
    const client = await connect(server.url);
    await client.sendMessage({ message: { messageId: "a", role: "ROLE_USER", taskId, parts: [{ text: "Blue" }] } });
    expect(await code).toBe(0);
    expect(err()).toMatch(/✓ completed\n$/);
  });

  test("with --json prints each webhook as a line of JSON", async () => {
    const { code, out } = listen(server.url, "--message", "stream", "--json");
    expect(await code).toBe(0);
    const events = out()
      .trim()
      .split("\n")
      .map((each) => Object.keys(JSON.parse(each) as object));
    expect(events).toEqual([["statusUpdate"], ["artifactUpdate"], ["artifactUpdate"], ["statusUpdate"]]);
  });

  test("rejects an unverified webhook, says so, and shows nothing of it", async () => {
    const { code, both, until, interrupt } = listen(server.url, "--message", "hang");
    await until("● working");
    const url = /arrive at (\S+)/.exec(both())?.[1] ?? "";
    const status = { state: "TASK_STATE_COMPLETED" };
    const forged = JSON.stringify({ statusUpdate: { taskId: taskIn(both()), contextId: "\u001b[2Jc", status } });
    const response = await fetch(url, {
      method: "POST",
      body: forged,
      headers: { "content-type": "application/a2a+json" },
    });
    expect(response.status).toBe(401);
    await until("Webhook rejected");
    expect(both()).not.toMatch(/completed/);
    interrupt("SIGTERM");
    expect(await code).toBe(143);
  });
});

describe("parley listen reports mistakes", () => {
  test.each([
    [["http://127.0.0.1:1"], /pass either \[task\], the ID of a task, or --message <text>/],
    [["http://127.0.0.1:1", "t", "--message", "x"], /pass either \[task\], the ID of a task, or --message <text>/],
    [["https://agent.example", "t"], /cannot reach 127\.0\.0\.1 on this machine\..*--public-url/],
    [["http://127.0.0.1:1", "t", "--public-url", "nonsense"], /must be an http or https URL/],
  ])("%j", async (args, message) => {
    const { code, out, err } = listen(...args);
    expect(await code).toBe(2);
    expect(out()).toBe("");
    expect(err()).toMatch(message);
  });

  test("for an agent without webhooks, a missing task, and a port that is taken", async () => {
    const without = await startServer(scripted);
    const { code, err } = listen(without.url, "t");
    expect(await code).toBe(1);
    expect(err()).toMatch(/does not send webhooks: its card does not declare pushNotifications/);
    await without.close({ grace: 0 });

    const missing = listen(server.url, "nothing");
    expect(await missing.code).toBe(1);
    expect(missing.err()).toMatch(/TaskNotFound/);

    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const busy = listen(server.url, "t", "--port", String(port));
    expect(await busy.code).toBe(1);
    expect(busy.err()).toMatch(/cannot listen on port \d+: another process is using it/);
    taken.close();
  });
});
