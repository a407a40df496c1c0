import { createServer, request } from "node:http";
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { defineAgent, memoryStore } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import { frameOf } from "../../grpc/src/frames.ts";
import { encode } from "../../grpc/src/protobuf/encode.ts";
import { serviceV1 } from "../../grpc/src/services.ts";
import { expect, it, vi } from "vitest";
import { connect, serve } from "../src/index.ts";
import { slowAgent } from "./support/agents.ts";

/** If a caller disconnects while its send waits for the task (A2A 1.0 §3.2.2), the server does not log a failure. */

const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hi" }] };
const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } });
const sendMessage = serviceV1().operations.get("SendMessage")!;

/** Starts a call over each binding. Returns a function that disconnects. */
const ways: Readonly<Record<string, (port: number) => () => void>> = {
  "JSON-RPC over HTTP/1.1": (port) => http1(port, "/", call),
  "REST over HTTP/1.1": (port) => http1(port, "/message:send", JSON.stringify({ message })),
  "JSON-RPC over HTTP/2": (port) => http2(port, "/", "application/json", call),
  "REST over HTTP/2": (port) => http2(port, "/message:send", "application/json", JSON.stringify({ message })),
  gRPC: (port) => http2(port, sendMessage.path, "application/grpc", frameOf(encode(sendMessage.input, { message }))),
};

function http1(port: number, path: string, body: string): () => void {
  const outgoing = request({ port, path, method: "POST", headers: { "content-type": "application/json" } });
  outgoing.on("error", () => {}).end(body);
  return () => outgoing.destroy();
}

function http2(port: number, path: string, contentType: string, body: string | Uint8Array): () => void {
  const session: ClientHttp2Session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": contentType, te: "trailers" });
  stream.on("error", () => {}).end(body);
  return () => session.destroy();
}

it.each(Object.keys(ways))("a caller who leaves a waiting send is not an error: %s", async (way) => {
  const lines: { level: string; text: string; fields: unknown }[] = [];
  const log = (level: string) => (text: string, fields?: unknown) => void lines.push({ level, text, fields });
  const logger: Logger = { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  const { agent, begun, finish } = slowAgent();
  const server = await serve(agent, { port: 0, grpc: true, signals: false, store: memoryStore(), logger });
  try {
    const leave = ways[way]!(server.port);
    await begun;
    leave();
    // With gRPC, the binding detects the disconnect without the service.
    if (way !== "gRPC")
      await vi.waitFor(() => expect(lines).toContainEqual(expect.objectContaining({ level: "debug" })));
    finish();
    const done = async (): Promise<void> => {
      const { tasks } = (await (await fetch(`${server.url}/tasks`)).json()) as { tasks: { status: object }[] };
      expect(tasks).toMatchObject([{ status: { state: "TASK_STATE_COMPLETED" } }]);
    };
    await vi.waitFor(done);
  } finally {
    await server.close({ grace: 0 });
  }
  expect(lines.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});

it("a stopping server stays alive for the others until its last claimed webhook is done", async () => {
  const order: string[] = [];
  let beats = 0;
  let answer = (): void => {};
  const receiver = createServer((incoming, response) => {
    order.push("sent");
    incoming.resume();
    answer = () => {
      order.push("answered");
      response.end();
    };
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const store = Object.assign(memoryStore(), {
    nodes: {
      beat: async (name: string) => [{ name, beats: (beats += 1), silent: 0 }],
      forget: async () => void order.push("forgotten"),
    },
  });
  const agent = defineAgent({
    name: "Fast",
    description: "Is over at once.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      yield turn.completed("Done");
    },
  });
  const server = await serve(agent, { port: 0, signals: false, store, push: true, logger: false, lease: { ttl: 400 } });
  const { port } = receiver.address() as AddressInfo;
  const client = await connect(server.url);
  const taskPushNotificationConfig = { url: `http://127.0.0.1:${port}/hook` };
  await client.sendMessage({ message: "hello", configuration: { taskPushNotificationConfig } });
  await expect.poll(() => order).toEqual(["sent"]);
  const closed = server.close({ grace: 60_000 });
  // No turn is left, but the server still sends heartbeats.
  const before = beats;
  await expect.poll(() => beats).toBeGreaterThan(before + 3);
  answer();
  await closed;
  receiver.close();
  expect(order).toEqual(["sent", "answered", "forgotten"]);
});
