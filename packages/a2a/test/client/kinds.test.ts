import { describe, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { cardOf, errorOf, jsonRpcAt, rpcServer, type RpcCall } from "./support.ts";

/* Tests a server whose card says 1.0, but whose events have the `kind` of 0.3, like LangGraph's server 0.16.7. */

const ids = { taskId: "t1", contextId: "c1" };
const parts = [{ kind: "text", text: "The rain came." }];
const update = (state: string): object => ({ ...ids, kind: "status-update", status: { state }, final: false });
const events: readonly object[] = [
  { task: { id: "t1", contextId: "c1", status: { state: "TASK_STATE_SUBMITTED" } } },
  update("TASK_STATE_WORKING"),
  { ...ids, kind: "artifact-update", artifact: { artifactId: "a", parts }, append: false, lastChunk: true },
  update("TASK_STATE_COMPLETED"),
];

async function connected(stream: readonly object[], answer: object) {
  const warnings: string[] = [];
  const server = await rpcServer((call: RpcCall) => {
    if (call.method === "SendMessage") return call.answer(answer);
    for (const event of stream) call.events.send(event as never);
    call.events.end();
  });
  const warn = (message: string): void => void warnings.push(message);
  const logger = { debug() {}, info() {}, warn, error() {} };
  const client = await connect(cardOf([jsonRpcAt(server.url)]), { logger, retry: false, reconnect: false });
  return { client, warnings };
}

describe("events of 1.0 without their wrapper", () => {
  test("are wrapped by their kind, with one warning for the client", async () => {
    const answer = { kind: "task", id: "t1", contextId: "c1", status: { state: "TASK_STATE_COMPLETED" } };
    const { client, warnings } = await connected(events, answer);
    for (let round = 0; round < 2; round += 1) {
      const stream = client.sendStreamingMessage("go");
      let read = "";
      for await (const { text } of stream.text()) read += text;
      expect([read, stream.status?.state]).toEqual(["The rain came.", "TASK_STATE_COMPLETED"]);
    }
    expect((await client.sendMessage("go")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(warnings).toEqual(["The server sends events of 1.0 without their wrapper; reading them by their kind"]);
  });

  test("that do not match 1.0 throw an error that suggests another version", async () => {
    const { client, warnings } = await connected([update("working")], { kind: "task", id: "t1", status: "working" });
    const hint = expect.stringMatching(/try connect\(url, \{ version: "0\.2\.5" \}\)$/) as string;
    const failed = { code: "InvalidResponse", message: hint };
    expect(await errorOf(client.sendMessage("go"))).toMatchObject(failed);
    expect(await errorOf(client.sendStreamingMessage("go").next())).toMatchObject(failed);
    expect(warnings).toEqual([]);
  });
});
