import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryStore } from "@parley/server";
import { serve, type Server } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";
import { certificateFor, type Certificate } from "./support/certificate.ts";
import { Http2Client } from "./support/http2.ts";

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

type Ask = (server: Server, method: string, path: string, body?: string) => Promise<Answer>;

const json = { "content-type": "application/json", "a2a-version": "1.0" };
let tls: Certificate;
let clear: Server;
let secure: Server;

beforeAll(async () => {
  tls = await certificateFor("localhost", "127.0.0.1");
  const options = { port: 0, signals: false };
  clear = await serve(echoAgent(), { ...options, store: memoryStore() });
  secure = await serve(echoAgent(), { ...options, store: memoryStore(), tls });
});
afterAll(async () => {
  await Promise.all([clear.close(), secure.close()]);
});

const overHttp1: Ask = (server, method, path, body) =>
  new Promise((resolve, reject) => {
    const send = server.url.startsWith("https") ? httpsRequest : httpRequest;
    const request = send(server.url + path, { method, headers: json, ca: tls.cert });
    request.on("error", reject).on("response", (message) => {
      let text = "";
      message.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      message.on("end", () => {
        resolve({ status: message.statusCode ?? 0, type: message.headers["content-type"] ?? "", body: text });
      });
    });
    request.end(body);
  });

const overHttp2: Ask = async (server, method, path, body) => {
  using client = await Http2Client.to(server.url, { ca: tls.cert });
  const head = { ...json, ":method": method };
  const {
    status,
    headers,
    body: text,
  } = await (body === undefined ? client.get(path, head) : client.post(path, body, head));
  return { status, type: headers["content-type"] ?? "", body: text };
};

const message = (text: string): object => ({
  message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] },
});

const call = (method: string, text: string): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: message(text) });

/** Returns the payloads in a stream of server-sent events. */
const events = (body: string): unknown[] =>
  body
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)));

describe.each([
  ["HTTP/1.1", () => clear, overHttp1],
  ["HTTP/2 in clear text", () => clear, overHttp2],
  ["HTTP/1.1 over TLS", () => secure, overHttp1],
  ["HTTP/2 over TLS", () => secure, overHttp2],
])("one port over %s", (_name, server, ask) => {
  it("serves the card", async () => {
    const answer = await ask(server(), "GET", "/.well-known/agent-card.json");
    expect([answer.status, answer.type]).toEqual([200, "application/json"]);
    expect(JSON.parse(answer.body)).toMatchObject({ name: "Echo" });
  });

  it("answers JSON-RPC", async () => {
    const answer = await ask(server(), "POST", "/", call("SendMessage", "grüße"));
    expect([answer.status, answer.type]).toEqual([200, "application/json"]);
    expect(JSON.parse(answer.body)).toMatchObject({
      result: { task: { artifacts: [{ parts: [{ text: "Echo: grüße" }] }] } },
    });
  });

  it("answers REST, errors included", async () => {
    const sent = await ask(server(), "POST", "/message:send", JSON.stringify(message("hi")));
    expect([sent.status, sent.type]).toEqual([200, "application/a2a+json"]);
    const { task } = JSON.parse(sent.body) as { task: { id: string } };
    const got = await ask(server(), "GET", `/tasks/${task.id}`);
    expect(JSON.parse(got.body)).toMatchObject({ id: task.id, status: { state: "TASK_STATE_COMPLETED" } });
    const none = await ask(server(), "GET", "/tasks/none");
    expect([none.status, JSON.parse(none.body)]).toMatchObject([404, { error: { status: "NOT_FOUND" } }]);
  });

  it.each([
    ["JSON-RPC", "/", () => call("SendStreamingMessage", "hi")],
    ["REST", "/message:stream", () => JSON.stringify(message("hi"))],
  ])("streams events over %s", async (binding, path, body) => {
    const answer = await ask(server(), "POST", path, body());
    expect([answer.status, answer.type]).toEqual([200, "text/event-stream"]);
    const seen = events(answer.body);
    const last = { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } };
    expect(seen.at(-1)).toMatchObject(binding === "REST" ? last : { result: last });
    expect(seen.length).toBeGreaterThan(2);
  });

  it("answers HEAD without a body", async () => {
    const answer = await ask(server(), "HEAD", "/.well-known/agent-card.json");
    expect([answer.status, answer.body]).toEqual([200, ""]);
  });
});
