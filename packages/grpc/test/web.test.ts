import { request as http1Request } from "node:http";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { compressionGzip, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import type { DescService } from "@bufbuild/protobuf";
import { Payload, type AgentService } from "@parley/a2a/protocol";
import { describe, expect, test, vi } from "vitest";
import { frameOf, FrameReader, trailers } from "../src/frames.ts";
import { message, obedient } from "./support/agents.ts";
import { bindingOf, host, serve, type Host } from "./support/host.ts";
import { messageOf, oracleBytes, oracleJson, registry } from "./support/oracle.ts";

const service = registry.getService("lf.a2a.v1.A2AService") as DescService;
const getTask = "/lf.a2a.v1.A2AService/GetTask";

interface Sent {
  sendMessage(request: object, options?: object): Promise<{ payload: { case: string; value: { parts: unknown[] } } }>;
  sendStreamingMessage(request: object, options?: object): AsyncIterable<{ payload: { case: string } }>;
  getTask(request: object, options?: object): Promise<{ id: string }>;
}

/** A message as the library of buf represents it. */
function sent(text: string) {
  const { messageId } = message(text);
  return { message: { messageId, role: 1, parts: [{ content: { case: "text", value: text } }] } };
}

/** The clients of Connect, which many browsers use. */
const transports: readonly (readonly [string, (server: Host) => Transport])[] = [
  ["gRPC", ({ address }) => createGrpcTransport({ baseUrl: `http://${address}` })],
  [
    "gRPC with gzip",
    ({ address }) =>
      createGrpcTransport({ baseUrl: `http://${address}`, sendCompression: compressionGzip, compressMinBytes: 0 }),
  ],
  ["gRPC-Web over HTTP/1.1", ({ webUrl }) => createGrpcWebTransport({ baseUrl: webUrl, httpVersion: "1.1" })],
  ["gRPC-Web over HTTP/2", ({ address }) => createGrpcWebTransport({ baseUrl: `http://${address}`, httpVersion: "2" })],
];

describe.each(transports)("a client of connect by %s", (_name, transportTo) => {
  test("calls, streams, and reads errors with their details", async () => {
    await using server = await serve(obedient());
    const client = createClient(service, transportTo(server)) as unknown as Sent;
    const answer = await client.sendMessage(sent("reply"));
    expect(answer.payload).toMatchObject({ case: "message", value: { parts: [{ content: { value: "Hello" } }] } });
    const cases: string[] = [];
    for await (const { payload } of client.sendStreamingMessage(sent("go"))) cases.push(payload.case);
    expect(cases).toEqual(["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]);
    const failed = await client.getTask({ id: "none" }).then(() => undefined, ConnectError.from);
    expect(failed?.code).toBe(Code.NotFound);
    expect(failed?.rawMessage).toBe("Task not found");
    const [info] = failed?.findDetails(messageOf("google.rpc.ErrorInfo")) ?? [];
    expect(info).toMatchObject({ reason: "TASK_NOT_FOUND" });
  });

  test("has deadlines, and may disconnect in the middle of a stream", async () => {
    let returned = false;
    const call: AgentService["call"] = () => new Promise(() => {});
    const stream: AgentService["stream"] = () =>
      Promise.resolve({
        batches: {
          [Symbol.asyncIterator]: () => {
            let first = true;
            const event = { message: { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "one" }] } };
            return {
              next: () => {
                if (!first) return new Promise(() => {});
                first = false;
                return Promise.resolve({ done: false as const, value: [{ payload: new Payload(event) }] });
              },
              return: () => {
                returned = true;
                return Promise.resolve({ done: true as const, value: undefined });
              },
            };
          },
        },
      });
    await using server = await host(bindingOf({ call, stream }));
    const client = createClient(service, transportTo(server)) as unknown as Sent;
    const late = await client.getTask({ id: "t" }, { timeoutMs: 50 }).then(() => undefined, ConnectError.from);
    expect(late?.code).toBe(Code.DeadlineExceeded);
    const leaving = new AbortController();
    const reading = (async () => {
      for await (const { payload } of client.sendStreamingMessage(sent("go"), { signal: leaving.signal })) {
        expect(payload.case).toBe("message");
        leaving.abort();
      }
    })();
    await expect(reading).rejects.toMatchObject({ code: Code.Canceled });
    await vi.waitFor(() => expect(returned).toBe(true));
  });
});

const task = { id: "t", status: { state: "TASK_STATE_WORKING" } };
const call: AgentService["call"] = () => Promise.resolve({ payload: new Payload(task as never) });
const body = frameOf(oracleBytes(messageOf("lf.a2a.v1.GetTaskRequest"), { id: "t" }));
const contentType = "application/grpc-web-text";
/** Headers that a browser adds to a call from another origin. */
const origin = "https://app.example";

describe("gRPC-Web of a browser", () => {
  test("may be text: base64 in both directions, split anywhere", async () => {
    await using server = await host(bindingOf({ call }));
    const text = Buffer.from(body).toString("base64");
    for (const pieces of [[text], text.match(/./g) ?? []]) {
      const answer = await post(server.webUrl, pieces, { "content-type": contentType });
      expect(answer.type).toBe(contentType);
      const bytes = Buffer.concat((answer.body.match(/[^=]+=*/g) ?? []).map((part) => Buffer.from(part, "base64")));
      const [data, end, ...others] = new FrameReader(10_000).push(bytes);
      expect(others).toEqual([]);
      expect(oracleJson(messageOf("lf.a2a.v1.Task"), data!.payload)).toEqual(task);
      expect(end?.flags).toBe(trailers);
      expect(Buffer.from(end!.payload).toString()).toBe("grpc-status: 0\r\n");
    }
  });

  test("has its errors in the body, which every browser can read", async () => {
    await using server = await host(bindingOf({ call }));
    const response = await fetch(`${server.webUrl}/x.Y/Z`, {
      method: "POST",
      headers: { "content-type": "application/grpc-web+proto" },
      body,
    });
    expect(response.status).toBe(200);
    const [end] = new FrameReader(10_000).push(new Uint8Array(await response.arrayBuffer()));
    expect(end?.flags).toBe(trailers);
    expect(Buffer.from(end!.payload).toString()).toContain("grpc-status: 12\r\n");
  });

  test("answers the preflight of allowed origins only", async () => {
    await using server = await host(bindingOf({ call }), { cors: { origins: [origin], headers: ["x-key"] } });
    const ask = (from: string) =>
      fetch(server.webUrl + getTask, {
        method: "OPTIONS",
        headers: { origin: from, "access-control-request-method": "POST" },
      });
    const allowed = await ask(origin);
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-origin")).toBe(origin);
    expect(allowed.headers.get("access-control-allow-methods")).toBe("POST");
    const asked = allowed.headers.get("access-control-allow-headers") ?? "";
    for (const name of ["x-grpc-web", "grpc-timeout", "a2a-version", "authorization", "x-key"])
      expect(asked).toContain(name);
    expect((await ask("https://evil.example")).headers.get("access-control-allow-origin")).toBeNull();
    const headers = { origin, "content-type": "application/grpc-web" };
    const answer = await fetch(server.webUrl + getTask, { method: "POST", headers, body });
    expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
    expect(answer.headers.get("access-control-expose-headers")).toContain("grpc-status");
    expect(answer.headers.get("vary")).toBe("Origin");
  });

  test("ignores preflights without the option cors", async () => {
    await using server = await host(bindingOf({ call }));
    const headers = { origin, "access-control-request-method": "POST" };
    expect((await fetch(server.webUrl + getTask, { method: "OPTIONS", headers })).status).toBe(404);
    const sent = { origin, "content-type": "application/grpc-web" };
    const answer = await fetch(server.webUrl + getTask, { method: "POST", headers: sent, body });
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  });

  test.each([
    ["POST", "application/grpc", 505, "gRPC needs HTTP/2"],
    ["POST", "application/grpc-web+thrift", 415, ""],
    ["PUT", "application/grpc-web", 405, ""],
    ["POST", "application/json", 404, ""],
  ])("%s of %s over HTTP/1.1 gets HTTP %i", async (method, type, status, why) => {
    await using server = await host(bindingOf({ call }));
    const response = await fetch(server.webUrl + getTask, { method, headers: { "content-type": type }, body });
    expect(response.status).toBe(status);
    expect(await response.text()).toContain(why);
  });
});

/** A request whose body is sent in these pieces. */
function post(url: string, pieces: readonly string[], headers: Record<string, string>) {
  return new Promise<{ body: string; type: string | undefined }>((resolve, reject) => {
    const sending = http1Request(url + getTask, { method: "POST", headers }, (response) => {
      let text = "";
      response.setEncoding("latin1");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ body: text, type: response.headers["content-type"] }));
    });
    sending.on("error", reject);
    for (const piece of pieces) sending.write(piece);
    sending.end();
  });
}
