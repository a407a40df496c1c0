import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connect } from "@parley/node";
import { listenForWebhooks, type Listening } from "../e2e/webhook-listener.ts";
import { describePeer, startServer, type PeerProgram, type RunningServer } from "./peer.ts";

/** Our receiver reads webhooks from the SDKs of other languages. The tests compare the raw bodies. */

interface Sender extends PeerProgram {
  readonly version: "1.0" | "0.3";
  /** Matches the start of each body. */
  readonly begins: RegExp;
  readonly authorization?: string;
}

const authentication = { scheme: "Bearer", credentials: "abc" };
const streamResponse = /^\{"(task|statusUpdate|artifactUpdate)":/;

const senders: readonly Sender[] = [
  {
    name: "Python SDK 1.3.0",
    environment: "python1",
    program: "server_v1.py",
    version: "1.0",
    begins: streamResponse,
    authorization: "Bearer abc",
  },
  {
    // It does not send Authorization.
    name: "Python SDK 0.3.26",
    environment: "python03",
    program: "server_v03.py",
    version: "0.3",
    begins: /^\{.*"kind":"task"/,
  },
  {
    name: "Go SDK 2.3.1",
    environment: "go",
    program: "server-v2",
    version: "1.0",
    begins: streamResponse,
    authorization: "Bearer abc",
  },
  {
    name: "Go SDK 0.3.15",
    environment: "go",
    program: "server-v03",
    version: "0.3",
    begins: /^\{.*"kind":"task"/,
    authorization: "Bearer abc",
  },
];

/** Truncates times to milliseconds, like our model. */
function inMilliseconds(name: string, value: unknown): unknown {
  return name === "timestamp" ? new Date(String(value)).toJSON() : value;
}

for (const sender of senders) {
  describePeer(sender, () => {
    let server: RunningServer;
    beforeAll(async () => {
      server = await startServer(sender, ["push"]);
    });
    afterAll(() => server.stop());
    let listening: Listening;
    afterEach(() => listening.close());

    async function report(): Promise<void> {
      const client = await connect(server.url, { version: sender.version, binding: "JSONRPC" });
      const taskPushNotificationConfig = listening.receiver.config({ id: "hook" });
      await client.sendMessage({ message: "hello", configuration: { taskPushNotificationConfig } });
      await expect.poll(() => listening.states()).toContain("TASK_STATE_COMPLETED");
    }

    describe(`over A2A ${sender.version}`, () => {
      it("is received with its token", async () => {
        listening = await listenForWebhooks({ accept: { tokenOnly: true }, token: "s3cret" });
        await report();
        expect(listening.events.length).toBeGreaterThan(0);
        for (const [at, { token, body, contentType }] of listening.wire.entries()) {
          expect([token, contentType]).toEqual(["s3cret", "application/json"]);
          expect(body).toMatch(sender.begins);
          if (sender.version === "1.0") expect(listening.events[at]).toEqual(JSON.parse(body, inMilliseconds));
          else expect(listening.events[at]?.task?.id).toBe((JSON.parse(body) as { readonly id: string }).id);
        }
      });

      const asked = sender.authorization === undefined ? [] : [sender.authorization];
      it.each(asked)("is received with Authorization: %s", async (expected) => {
        listening = await listenForWebhooks({ accept: { tokenOnly: true, authentication } });
        await report();
        expect(new Set(listening.wire.map(({ authorization }) => authorization))).toEqual(new Set([expected]));
      });

      it("is rejected with another token", async () => {
        listening = await listenForWebhooks({
          accept: { tokenOnly: true },
          token: "s3cret",
        });
        const client = await connect(server.url, { version: sender.version, binding: "JSONRPC" });
        const taskPushNotificationConfig = { ...listening.receiver.config({ id: "hook" }), token: "guessed" };
        await client.sendMessage({ message: "hello", configuration: { taskPushNotificationConfig } });
        await expect.poll(() => listening.answers).toContain(401);
        expect(listening.events).toEqual([]);
      });
    });
  });
}
