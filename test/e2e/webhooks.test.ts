import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, memoryStore, serve, type Server } from "@parley/node";
import { connect, text } from "@parley/a2a";
import type { WebhookTrust } from "@parley/a2a/webhooks";
import { listenForWebhooks, type Listening } from "./webhook-listener.ts";

/* Webhooks from our server to our receiver, for each kind of trust, over sockets and with the keys that the server publishes. */

const agent = defineAgent({
  name: "Echo",
  description: "Says it again.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working();
    yield turn.artifact({ parts: [text(turn.text)] });
  },
});

const key = Buffer.alloc(32, 5).toString("base64");
const secret = `whsec_${Buffer.alloc(32, 3).toString("base64")}`;
const trusts: Readonly<Record<string, (url: string) => WebhookTrust>> = {
  "the key set of the server": (url) => ({ keySet: `${url}/.well-known/jwks.json` }),
  "a shared secret": () => ({ secret }),
  "a JWT": (url) => ({ jwt: { keySet: `${url}/.well-known/jwks.json`, issuer: url } }),
  "a token": () => ({ tokenOnly: true }),
};

let server: Server;
let listening: Listening;
afterEach(async () => {
  await server.close();
  await listening.close();
});

async function meeting(trust: (url: string) => WebhookTrust) {
  server = await serve(agent, { port: 0, store: memoryStore(), push: { keys: [key] } });
  listening = await listenForWebhooks({ accept: trust(server.url), token: "s3cret" });
  return connect(server.url);
}

describe.each(Object.entries(trusts))("a task reported by webhook, authenticated by %s", (_name, trust) => {
  test.each(["1.0", "0.3"])("is received in order to its end, registered over %s", async (version) => {
    await meeting(trust);
    const client = await connect(server.url, { version });
    const taskPushNotificationConfig = listening.receiver.config();
    await client.sendMessage({ message: "hi", configuration: { returnImmediately: true, taskPushNotificationConfig } });
    await expect.poll(() => listening.states().at(-1)).toBe("TASK_STATE_COMPLETED");
    expect(listening.answers.filter((status) => status !== 204)).toEqual([]);
    expect(listening.deliveries.map(({ missed }) => missed)).toEqual(listening.deliveries.map(() => undefined));
  });
});

test("waitFor with a webhook returns the task that a server of ours reports", async () => {
  const client = await meeting((url) => ({ keySet: `${url}/.well-known/jwks.json` }));
  const { task } = await client.sendMessage({ message: "hi", configuration: { returnImmediately: true } });
  const done = await client.waitFor(task?.id ?? "", { webhook: listening.receiver, timeout: 10_000 });
  expect(done.status.state).toBe("TASK_STATE_COMPLETED");
});

test("a conversation is reported by webhook, task after task", async () => {
  const client = await meeting((url) => ({ keySet: `${url}/.well-known/jwks.json` }));
  const conversation = client.conversation();
  const seen: string[] = [];
  conversation.onUpdate(listening.receiver, ({ statusUpdate }) => {
    if (statusUpdate !== undefined) seen.push(`${statusUpdate.taskId} ${statusUpdate.status.state}`);
  });
  for (let tasks = 1; tasks <= 2; tasks += 1) {
    await conversation.send({ message: "hi", configuration: { returnImmediately: true } });
    await expect.poll(() => seen.filter((each) => each.endsWith("COMPLETED")).length).toBe(tasks);
    await expect.poll(() => conversation.taskId).toBeUndefined();
  }
});
