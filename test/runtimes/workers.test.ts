import { createServer, type IncomingMessage, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect, type Client } from "@parley/a2a";
import { WorkerdWorker } from "./workerd.ts";

/** A request from an agent or a webhook to this process. */
interface Call {
  readonly path: string;
  readonly step: number;
  readonly attempt: number;
}

let worker: WorkerdWorker;
let listener: Server;
let calls: Call[];
/** The first step that gets no answer, so that the agent waits in this step. */
let heldFrom: number;
/** The HTTP status of the answers to webhooks. */
let status: number;
let held: (() => void)[];
let url: string;

beforeEach(async () => {
  calls = [];
  held = [];
  heldFrom = Infinity;
  status = 200;
  listener = createServer((request: IncomingMessage, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://local");
    const step = Number(searchParams.get("step"));
    calls.push({ path: pathname, step, attempt: Number(searchParams.get("attempt")) });
    request.resume();
    const answer = (): unknown => response.writeHead(pathname === "/hook" ? status : 200).end();
    if (step >= heldFrom) held.push(answer);
    else answer();
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  worker = await WorkerdWorker.create("object-worker.ts", ["Agents", "Sleepers", "Forgetful"]);
  await worker.start();
});

afterEach(async () => {
  await worker.remove();
  listener.closeAllConnections();
  listener.close();
});

function release(): void {
  heldFrom = Infinity;
  for (const answer of held.splice(0)) answer();
}

const steps = (): readonly number[] => calls.filter(({ path }) => path === "/step").map(({ step }) => step);
const attempts = (): readonly number[] => calls.filter(({ path }) => path === "/step").map(({ attempt }) => attempt);

async function begin(client: Client, more: object = {}): Promise<string> {
  const configuration = { returnImmediately: true, ...more };
  const message = { messageId: "1", role: "ROLE_USER", parts: [{ text: `${url}/step` }] } as const;
  const { task } = await client.sendMessage({ message, configuration });
  return task?.id ?? "";
}

async function chunks(client: Client, taskId: string): Promise<string> {
  const task = await client.getTask(taskId);
  return `${task.status.state} ${task.artifacts?.[0]?.parts.map((part) => part.text).join("")}`;
}

/** Kills workerd while the agent waits in its third step. */
async function killInStepThree(): Promise<void> {
  await expect.poll(steps).toEqual([1, 2, 3]);
  await worker.kill();
  release();
}

describe("an agent in a Durable Object, whose process is killed (SIGKILL)", () => {
  beforeEach(() => (heldFrom = 3));

  it("is woken by its alarm, without a request, and its task continues after the last checkpoint", async () => {
    const client = await connect(worker.url);
    const taskId = await begin(client);
    await killInStepThree();
    await worker.start();
    await expect.poll(steps).toEqual([1, 2, 3, 3, 4, 5, 6]);
    expect(attempts()).toEqual([1, 1, 1, 2, 2, 2, 2]);
    // The agent completes its task once its last step gets an answer.
    await expect.poll(() => chunks(client, taskId)).toBe("TASK_STATE_COMPLETED 0123456");
  });

  it("takes over its task at the next request, without waiting for the lease, if it sets no alarm", async () => {
    const client = await connect(`${worker.url}/sleepers`);
    const taskId = await begin(client);
    await killInStepThree();
    await worker.start();
    await client.getTask(taskId);
    await expect.poll(steps).toEqual([1, 2, 3, 3, 4, 5, 6]);
    await expect.poll(() => chunks(client, taskId)).toBe("TASK_STATE_COMPLETED 0123456");
  });

  it("continues with a stream: the client reconnects and gets each event once (A2A 1.0 §3.1.6)", async () => {
    const client = await connect(worker.url);
    const found: string[] = [];
    const read = (async () => {
      for await (const { artifactUpdate, statusUpdate } of client.sendStreamingMessage(`${url}/step`)) {
        if (artifactUpdate !== undefined) found.push(artifactUpdate.artifact.parts[0]?.text ?? "");
        if (statusUpdate !== undefined) found.push(statusUpdate.status.state);
      }
    })();
    await killInStepThree();
    await worker.start();
    await read;
    expect(found.filter((each) => each.length === 1)).toEqual(["0", "1", "2", "3", "4", "5", "6"]);
    expect(found.at(-1)).toBe("TASK_STATE_COMPLETED");
  });

  it("delivers a webhook that failed before, by its alarm", async () => {
    status = 503;
    heldFrom = Infinity;
    const client = await connect(worker.url);
    await begin(client, { taskPushNotificationConfig: { url: `${url}/hook` } });
    // The server logs this once it has stored the time of the next attempt.
    await expect.poll(() => worker.errors).toContain("Webhook delivery failed");
    await worker.kill();
    const before = calls.length;
    status = 200;
    await worker.start();
    await expect.poll(() => calls.slice(before).map(({ path }) => path)).toContain("/hook");
  });
});

describe("an agent in a Durable Object whose class has no alarm()", () => {
  it("does not fail silently: the log says what is missing", async () => {
    const client = await connect(`${worker.url}/forgetful`);
    void client.sendMessage(`${url}/step`).catch(() => undefined);
    await expect.poll(() => worker.errors).toContain("must have an alarm() handler");
  });
});

describe("a handler at the top of the module of a plain Worker", () => {
  const post = (body: object): Promise<Response> =>
    fetch(`${worker.url}/plain/message:send`, {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0" },
      body: JSON.stringify(body),
    });
  const message = (text: string) => ({ message: { messageId: text, role: "ROLE_USER", parts: [{ text }] } });

  it("answers, although nothing there may start a timer or make a random value", async () => {
    const card = await fetch(`${worker.url}/plain/.well-known/agent-card.json`);
    expect(((await card.json()) as { name: string }).name).toBe("Reporter");
    expect(await (await post(message("hello"))).json()).toMatchObject({ message: { parts: [{ text: "Where to?" }] } });
    expect(await (await fetch(`${worker.url}/plain/wake`)).json()).toEqual({});
  });

  it("continues with a task after its answer, which waitUntil keeps the platform from cutting", async () => {
    heldFrom = 2;
    const configuration = { returnImmediately: true };
    const answer = (await (await post({ ...message(`${url}/step`), configuration })).json()) as { task?: object };
    expect(answer).toMatchObject({ task: { status: { state: "TASK_STATE_WORKING" } } });
    await expect.poll(steps).toEqual([1, 2]);
    release();
    await expect.poll(steps).toEqual([1, 2, 3, 4, 5, 6]);
  });
});
