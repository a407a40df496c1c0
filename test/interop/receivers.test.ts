import { randomBytes } from "node:crypto";
import { defineAgent, memoryStore, serve, text, type Server } from "@parley/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { describePeer, startReceiver, type PeerProgram, type RunningReceiver } from "./peer.ts";
import { startJavaScriptReceiver } from "./receiver-js.ts";

/** Receivers on the SDKs of other languages read our webhooks: their serialized values must equal the sent ones. */

type Version = "1.0" | "0.3";

interface Receiver {
  readonly name: string;
  readonly version: Version;
  /** Absent: it runs in this process. */
  readonly program?: PeerProgram;
  /** The version as which it reads a 0.3 task. Default: 0.3. */
  readonly reads?: "1.0";
}

const receivers: readonly Receiver[] = [
  { name: "JavaScript SDK 1.3.0", version: "1.0" },
  { name: "JavaScript SDK 1.3.0", version: "0.3", reads: "1.0" },
  {
    name: "Python SDK 1.3.0",
    version: "1.0",
    program: { name: "Python SDK 1.3.0", environment: "python1", program: "receiver_v1.py" },
  },
  {
    name: "Python SDK 0.3.26",
    version: "0.3",
    program: { name: "Python SDK 0.3.26", environment: "python03", program: "receiver_v03.py" },
  },
  {
    name: "Go SDK 2.3.1",
    version: "1.0",
    program: { name: "Go SDK 2.3.1", environment: "go", program: "receiver-v2" },
  },
  {
    name: "Go SDK 0.3.15",
    version: "0.3",
    program: { name: "Go SDK 0.3.15", environment: "go", program: "receiver-v03" },
  },
];

/** Lets the agent continue. It waits because pending webhooks for a 0.3 receiver are merged into one. */
let goOn = (): void => {};
let begun = Promise.resolve();
const agent = defineAgent({
  name: "Reporter",
  description: "Reports its activity",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working("I read it");
    await begun;
    yield turn.artifact({
      artifactId: "long",
      name: "A text",
      description: "In chunks",
      metadata: { deep: { list: [1.5, true, null] } },
      parts: [text("first, ")],
      open: true,
    });
    yield turn.append("long", [text("second, ")]);
    yield turn.append("long", [text("“third” \u{1F600}")], { last: true });
    yield turn.artifact({
      artifactId: "parts",
      parts: [
        { raw: "AAH+/w==", filename: "a.bin", mediaType: "application/octet-stream" },
        { url: "https://example.com/a.txt", filename: "a.txt", mediaType: "text/plain" },
        { data: { list: [1.5, true, null, "é"], deep: { "": {} } } },
      ],
    });
    yield turn.completed("I am done");
  },
});

interface Webhook {
  readonly body: string;
  readonly type: string;
  readonly read: unknown;
}

interface Task {
  readonly id: string;
  readonly status: { readonly state: string };
  readonly artifacts?: readonly { readonly artifactId: string }[];
}

interface Event {
  readonly task?: Task;
  readonly statusUpdate?: { readonly status: { readonly state: string } };
  readonly artifactUpdate?: {
    readonly artifact: { readonly artifactId: string };
    readonly append?: boolean;
    readonly lastChunk?: boolean;
  };
}

type Policy = "changes" | "all";

const token = "s3cret";
const servers: Partial<Record<Policy, Server>> = {};
beforeAll(async () => {
  for (const events of ["changes", "all"] as const) {
    const push = { keys: [randomBytes(32).toString("base64")], events };
    servers[events] = await serve(agent, { port: 0, signals: false, store: memoryStore(), push });
  }
});
afterAll(() => Promise.all(Object.values(servers).map((server) => server.close({ grace: 0 }))));

async function post(policy: Policy, path: string, version: Version, body: unknown): Promise<string> {
  const headers = { "content-type": "application/json", "a2a-version": version };
  const response = await fetch(`${servers[policy]?.url}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return response.text();
}

/** The events of a task's stream, up to the end. */
async function streamed(policy: Policy, known = token): Promise<string[]> {
  const stream = await post(policy, "/message:stream", "1.0", {
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "Report" }] },
    configuration: { taskPushNotificationConfig: { url: running.url, token: known } },
  });
  return stream.split("\n").flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trim()] : []));
}

/** The finished task in 0.3's answer to the message. */
async function answered(policy: Policy, known = token): Promise<Task> {
  const message = {
    kind: "message",
    messageId: crypto.randomUUID(),
    role: "user",
    parts: [{ kind: "text", text: "Report" }],
  };
  const params = {
    message,
    configuration: { blocking: true, pushNotificationConfig: { url: running.url, token: known } },
  };
  const answer = await post(policy, "/", "0.3", { jsonrpc: "2.0", id: 1, method: "message/send", params });
  return (JSON.parse(answer) as { readonly result: Task }).result;
}

async function taskOf(policy: Policy, id: string | undefined): Promise<Task> {
  const headers = { "a2a-version": "1.0" };
  return (await (await fetch(`${servers[policy]?.url}/tasks/${id}`, { headers })).json()) as Task;
}

/** The webhooks for an event if artifacts are sent only when complete. */
function completed(event: Event, whole: NonNullable<Task["artifacts"]>): Event[] {
  if (event.artifactUpdate === undefined) return [event];
  const { append: _, artifact, lastChunk, ...ids } = event.artifactUpdate;
  const found = whole.find(({ artifactId }) => artifactId === artifact.artifactId);
  return lastChunk !== true || found === undefined ? [] : [{ artifactUpdate: { ...ids, artifact: found, lastChunk } }];
}

/** Normalizes times, which may have fewer digits: `.5Z` for `.500Z`. */
function normal(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (name, each: unknown) =>
    name === "timestamp" ? new Date(String(each)).toJSON() : each,
  );
}

/** Starts the receiver for each test. If its setup failed, a test fails with the reason. */
function describeReceiver(receiver: Receiver, tests: () => void): void {
  const { name, version, program } = receiver;
  const begin = (): void => {
    beforeEach(async () => {
      begun = new Promise((resolve) => (goOn = resolve));
      const started = program === undefined ? startJavaScriptReceiver(version, token) : startReceiver(program, token);
      running = await started;
    });
    afterEach(() => running.stop());
    tests();
  };
  if (program !== undefined) return describePeer({ ...program, name: `${name}, ${version}` }, begin);
  describe(`${name}, ${version}`, () => {
    begin();
  });
}

let running: RunningReceiver;

function webhooks(): Webhook[] {
  return running.heard.map((said) => {
    if (said.result === undefined) throw new Error(JSON.stringify(said));
    return said.result as Webhook;
  });
}

/** The webhooks up to the end of the task. The agent continues after the first one arrives. */
async function received(state: string): Promise<Webhook[]> {
  await expect.poll(() => webhooks().length).toBeGreaterThan(0);
  goOn();
  await expect.poll(() => webhooks().some(({ body }) => body.includes(`"${state}"`))).toBe(true);
  return webhooks();
}

/** Sends to a receiver that expects another token. */
async function refused(send: typeof streamed | typeof answered): Promise<void> {
  goOn();
  await send("changes", "guessed");
  await expect.poll(() => running.heard.length).toBeGreaterThan(0);
  expect(new Set(running.heard.map(({ step }) => step))).toEqual(new Set(["refused"]));
}

const parsed = ({ body }: Webhook): unknown => JSON.parse(body);

for (const receiver of receivers.filter(({ version }) => version === "1.0")) {
  describeReceiver(receiver, () => {
    it("reads each event, with the same bytes as in the stream", async () => {
      const [events, sent] = await Promise.all([streamed("all"), received("TASK_STATE_COMPLETED")]);
      expect(sent.map(({ body }) => body)).toEqual(events);
      expect(sent.map(({ read }) => normal(read))).toEqual(normal(sent.map(parsed)));
      expect(new Set(sent.map(({ type }) => type))).toEqual(new Set(["application/a2a+json"]));
    });

    it("reads changes and whole artifacts", async () => {
      const [[first = "", ...updates], sent] = await Promise.all([
        streamed("changes"),
        received("TASK_STATE_COMPLETED"),
      ]);
      const { artifacts = [] } = await taskOf("changes", (JSON.parse(first) as Event).task?.id);
      const complete = updates.flatMap((update) => completed(JSON.parse(update) as Event, artifacts));
      expect(sent.map(parsed)).toEqual(complete);
      expect(sent.map(({ read }) => normal(read))).toEqual(normal(complete));
    });

    it("rejects another token", () => refused(streamed));
  });
}

for (const receiver of receivers.filter(({ version }) => version === "0.3")) {
  describeReceiver(receiver, () => {
    it("reads the task up to the end", async () => {
      const [task, sent] = await Promise.all([answered("changes"), received("completed")]);
      const tasks = sent.map(parsed) as Task[];
      expect(tasks.at(-1)).toEqual(task);
      expect(tasks.map(({ status }) => status.state)).toEqual(["working", "completed"]);
      const converted = [expect.anything(), normal({ task: await taskOf("changes", task.id) })];
      expect(sent.map(({ read }) => normal(read))).toEqual(receiver.reads === "1.0" ? converted : normal(tasks));
      expect(new Set(sent.map(({ type }) => type))).toEqual(new Set(["application/json"]));
    });

    it("rejects another token", () => refused(answered));
  });
}
