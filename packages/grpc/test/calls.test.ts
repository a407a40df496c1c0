import { once } from "node:events";
import { createServer, type ClientHttp2Session, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import { gunzipSync, gzipSync } from "node:zlib";
import { Payload, type AgentService } from "@parley/a2a/protocol";
import { Unfinished } from "@parley/a2a/internal/transport/server/unfinished";
import { fakeClock } from "@parley/testing";
import { describe, expect, test, vi } from "vitest";
import { compressed, frameOf, FrameReader } from "../src/frames.ts";
import { Responder } from "../../node/src/http/listener.ts";
import { Http2Exchange } from "../../node/src/http/http2.ts";
import { grpcBinding } from "../src/index.ts";
import { decodeMessage } from "../src/metadata.ts";
import { bindingOf, host, session } from "./support/host.ts";
import { messageOf, oracleBytes, oracleJson } from "./support/oracle.ts";

/** Calls written byte by byte, including ones that no gRPC client would send. */

const path = "/lf.a2a.v1.A2AService/GetTask";
const task = { id: "t", status: { state: "TASK_STATE_WORKING" } };
const request = (id = "t") => oracleBytes(messageOf("lf.a2a.v1.GetTaskRequest"), { id });
/** Answers with the text of the request. */
const call: AgentService["call"] = (_operation, asked) =>
  Promise.resolve({ payload: new Payload({ ...task, ...(asked as object) } as never) });
const cancelPath = "/lf.a2a.v1.A2AService/CancelTask";
/** A request of more than a kilobyte. */
const metadata = { x: "x".repeat(5000) };
const large = oracleBytes(messageOf("lf.a2a.v1.CancelTaskRequest"), { id: "t", metadata });
const cancelOf = (length: number) =>
  oracleBytes(messageOf("lf.a2a.v1.CancelTaskRequest"), { id: "t", metadata: { x: "x".repeat(length) } });

interface Answer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
}

async function exchange(
  client: ClientHttp2Session,
  body: readonly Uint8Array[],
  headers: OutgoingHttpHeaders = {},
): Promise<Answer> {
  const stream = client.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  stream.on("error", () => {});
  for (const piece of body) stream.write(piece);
  stream.end();
  const chunks: Buffer[] = [];
  let head: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on("response", (each) => (head = each));
  stream.on("trailers", (each) => (trailers = each));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(stream, "close");
  return { headers: head, trailers, body: Buffer.concat(chunks) };
}

/** The trailers. An answer without a body has them in its headers. */
function endOf({ headers, trailers }: Answer): { status: string; text: string } {
  const end = headers["grpc-status"] === undefined ? trailers : headers;
  return { status: String(end["grpc-status"]), text: decodeMessage(String(end["grpc-message"] ?? "")) };
}

function valueOf(payload: Uint8Array): unknown {
  return oracleJson(messageOf("lf.a2a.v1.Task"), payload);
}

describe("a unary call", () => {
  test("is answered by headers, one frame and trailers", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const answer = await exchange(client, [frameOf(request())]);
    expect(answer.headers).toMatchObject({ ":status": 200, "content-type": "application/grpc" });
    expect(answer.headers["grpc-encoding"]).toBeUndefined();
    expect(answer.trailers["grpc-status"]).toBe("0");
    const [frame, ...others] = new FrameReader(1000).push(answer.body);
    expect(others).toEqual([]);
    expect(valueOf(frame!.payload)).toEqual(task);
  });

  test("reads a message that arrives in pieces", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const pieces = [...frameOf(request("ä".repeat(20)))].map((byte) => Buffer.of(byte));
    const answer = await exchange(client, pieces);
    expect(endOf(answer)).toEqual({ status: "0", text: "" });
    expect(valueOf(answer.body.subarray(5))).toMatchObject({ id: "ä".repeat(20) });
  });

  test.each([
    ["no message", [], "3", "no message"],
    ["two messages", [frameOf(request()), frameOf(request())], "3", "more than one"],
    ["an incomplete message", [frameOf(request()).subarray(0, 6)], "3", "incomplete"],
    ["bytes that are not protobuf", [frameOf(Uint8Array.of(0x0a, 9, 1))], "3", "Not a valid protobuf message"],
    ["text that is not UTF-8", [frameOf(Uint8Array.of(0x12, 1, 0xff))], "3", "UTF-8"],
    ["a message beyond the limit", [Uint8Array.of(0, 0, 16, 0, 1)], "3", "larger than 1048576 bytes"],
    ["a frame with unknown flags", [frameOf(request(), 2)], "3", "flags"],
    ["a compressed message without an encoding", [frameOf(request(), compressed)], "13", "grpc-encoding"],
  ])("with %s is rejected", async (_what, body, status, text) => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const answer = await exchange(client, body);
    expect(answer.headers[":status"]).toBe(200);
    expect(endOf(answer)).toEqual({ status, text: expect.stringContaining(text) });
  });

  test("that is nested too deeply is rejected", async () => {
    await using server = await host(bindingOf({ call }, { limits: { bodyBytes: 1 << 20, depth: 10 } }));
    await using client = session(server.address);
    let deep: object = {};
    for (let level = 0; level < 12; level++) deep = { a: deep };
    const body = oracleBytes(messageOf("lf.a2a.v1.CancelTaskRequest"), { id: "t", metadata: deep });
    const answer = await exchange(client, [frameOf(body)], { ":path": cancelPath });
    expect(endOf(answer)).toEqual({ status: "3", text: expect.stringContaining("nested deeper than 10") });
  });

  test("that sends more after its answer is told to stop", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const stream = client.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
    stream.on("error", () => {});
    const ended = new Promise<IncomingHttpHeaders>((resolve) => stream.once("response", resolve));
    stream.write(Uint8Array.of(0, 0xff, 0, 0, 0));
    expect((await ended)["grpc-status"]).toBe("3");
    stream.resume();
    await once(stream, "close");
  });
});

describe("a message that arrives slowly", () => {
  test("is rejected after the timeout", async () => {
    await using server = await host(bindingOf({ call }), { requestTimeout: 50 });
    await using client = session(server.address);
    const stream = client.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
    stream.on("error", () => {});
    stream.write(frameOf(request()).subarray(0, 7));
    const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
    expect(head).toMatchObject({ "grpc-status": "3", "grpc-message": "The request takes too long" });
    stream.resume().close();
  });
});

describe("compression", () => {
  const gzip = { "grpc-encoding": "gzip", "grpc-accept-encoding": "identity,gzip" };

  test("is read, and used for long messages of the answer", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const answer = await exchange(client, [frameOf(gzipSync(large), compressed)], { ...gzip, ":path": cancelPath });
    expect(answer.headers["grpc-encoding"]).toBe("gzip");
    expect(answer.body[0]).toBe(compressed);
    expect(valueOf(gunzipSync(answer.body.subarray(5)))).toMatchObject({ metadata });
    const small = await exchange(client, [frameOf(request())], gzip);
    expect(small.body[0]).toBe(0);
    expect(endOf(small)).toEqual({ status: "0", text: "" });
  });

  test("is not used for clients that do not accept it", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const headers = { "grpc-encoding": "gzip", ":path": cancelPath };
    const answer = await exchange(client, [frameOf(gzipSync(large), compressed)], headers);
    expect(answer.headers["grpc-encoding"]).toBeUndefined();
    expect(valueOf(answer.body.subarray(5))).toMatchObject({ metadata });
  });

  test("beyond the limit once decompressed is rejected, and so is invalid gzip", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const bomb = gzipSync(Buffer.alloc(50 << 20));
    expect(bomb.length).toBeLessThan(1 << 20);
    const answer = await exchange(client, [frameOf(bomb, compressed)], gzip);
    expect(endOf(answer)).toEqual({
      status: "3",
      text: expect.stringMatching(/^Message larger than 1048576 bytes\. .* limits\.bodyBytes .* blobs /),
    });
    const wrong = await exchange(client, [frameOf(request(), compressed)], gzip);
    expect(endOf(wrong)).toEqual({ status: "3", text: expect.stringContaining("not valid gzip") });
  });

  test("of another kind is rejected with the supported ones", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const answer = await exchange(client, [frameOf(request(), compressed)], { "grpc-encoding": "br" });
    expect(endOf(answer).status).toBe("12");
    expect(answer.headers["grpc-accept-encoding"]).toBe("gzip,identity");
  });

  test("of a stream is done message by message", async () => {
    const text = "y".repeat(3000);
    const event = { message: { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text }] } };
    const stream: AgentService["stream"] = () =>
      Promise.resolve({
        batches: (async function* () {
          yield [{ payload: new Payload(event) }, { payload: new Payload(event) }];
          yield [{ payload: new Payload(event) }];
        })(),
      });
    await using server = await host(bindingOf({ stream }));
    await using client = session(server.address);
    const body = oracleBytes(messageOf("lf.a2a.v1.SubscribeToTaskRequest"), { id: "t" });
    const answer = await exchange(client, [frameOf(body)], {
      ...gzip,
      ":path": "/lf.a2a.v1.A2AService/SubscribeToTask",
    });
    const frames = new FrameReader(10_000).push(answer.body);
    expect(frames.map(({ flags }) => flags)).toEqual([compressed, compressed, compressed]);
    const first = oracleJson(messageOf("lf.a2a.v1.StreamResponse"), gunzipSync(frames[0]!.payload));
    expect(first).toEqual(event);
  });
});

describe("content types and methods", () => {
  test.each([
    ["application/grpc", 200],
    ["application/grpc+proto", 200],
    ["application/grpc; charset=utf-8", 200],
    ["application/grpc+json", 415],
    ["application/grpcish", 415],
    ["application/json", 404],
  ])("a request of %s gets HTTP %i", async (contentType, status) => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const answer = await exchange(client, [frameOf(request())], { "content-type": contentType });
    expect(answer.headers[":status"]).toBe(status);
  });

  test("gRPC is sent by POST", async () => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    const answer = await exchange(client, [], { ":method": "PUT" });
    expect(answer.headers[":status"]).toBe(405);
  });
});

describe("the first calls, which wait until the handler is loaded", () => {
  test.each([
    ["a message", frameOf(request()), "0"],
    ["nothing", new Uint8Array(0), "3"],
  ])("answers calls whose request had ended, with %s", async (_what, body, status) => {
    const grpc = grpcBinding().openAnyPath(bindingOf({ call }));
    const responder = new Responder((incoming) => grpc.answer(incoming), {});
    const late = createServer().listen(0, "127.0.0.1");
    late.on("stream", (stream, headers) => {
      stream.on("close", () => late.close());
      setTimeout(() => void responder.answer(new Http2Exchange(stream, headers)), 20);
    });
    await once(late, "listening");
    await using client = session(`127.0.0.1:${(late.address() as AddressInfo).port}`);
    expect(endOf(await exchange(client, [body])).status).toBe(status);
  });
});

describe("slow readers", () => {
  const text = "z".repeat(32 * 1024);
  const event = { message: { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text }] } };

  test("delay their own stream only", async () => {
    let given = 0;
    const stream: AgentService["stream"] = () =>
      Promise.resolve({
        batches: (async function* () {
          for (; given < 400; given++) yield [{ payload: new Payload(event) }];
        })(),
      });
    await using server = await host(bindingOf({ stream, call }));
    await using client = session(server.address);
    const reading = client.request({
      ":method": "POST",
      ":path": "/lf.a2a.v1.A2AService/SubscribeToTask",
      "content-type": "application/grpc",
    });
    reading.end(frameOf(oracleBytes(messageOf("lf.a2a.v1.SubscribeToTaskRequest"), { id: "t" })));
    await once(reading, "response");
    // Other calls of the connection continue.
    for (let turn = 0; turn < 20; turn++) expect(endOf(await exchange(client, [frameOf(request())])).status).toBe("0");
    expect(given).toBeLessThan(20);
    let size = 0;
    reading.on("data", (chunk: Buffer) => (size += chunk.length));
    await once(reading, "end");
    expect(given).toBe(400);
    expect(size).toBeGreaterThan(400 * text.length);
  });

  test("that read nothing at all are disconnected", async () => {
    let returned = false;
    const stream: AgentService["stream"] = () =>
      Promise.resolve({
        batches: (async function* () {
          try {
            for (;;) yield [{ payload: new Payload(event) }];
          } finally {
            returned = true;
          }
        })(),
      });
    await using server = await host(bindingOf({ stream }), { stallTimeout: 50 });
    await using client = session(server.address);
    const reading = client.request({
      ":method": "POST",
      ":path": "/lf.a2a.v1.A2AService/SubscribeToTask",
      "content-type": "application/grpc",
    });
    reading.on("error", () => {});
    reading.end(frameOf(oracleBytes(messageOf("lf.a2a.v1.SubscribeToTaskRequest"), { id: "t" })));
    await vi.waitFor(() => expect(returned).toBe(true));
  });
});

describe("memory for requests", () => {
  const health = "/grpc.health.v1.Health/Check";
  const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

  test.each([health, reflection])("anyone may call %s, so it accepts only kilobytes", async (method) => {
    await using server = await host(bindingOf({ call }));
    await using client = session(server.address);
    // The beginning of a message of 1 MiB; its rest never arrives.
    const stream = client.request({ ":method": "POST", ":path": method, "content-type": "application/grpc" });
    stream.on("error", () => {});
    let end: IncomingHttpHeaders = {};
    stream.on("response", (head) => (end = { ...end, ...head }));
    stream.on("trailers", (trailers) => (end = { ...end, ...trailers }));
    stream.write(Uint8Array.of(0, 0, 0x10, 0, 0));
    await once(stream.resume(), "end");
    expect(end["grpc-status"]).toBe("3");
    expect(decodeMessage(String(end["grpc-message"]))).toContain("4096");
  });

  test("calls share it with all bindings, and are UNAVAILABLE when it is used up", async () => {
    const clock = fakeClock();
    const unfinished = new Unfinished(2 << 20, 1 << 20, clock);
    const limits = { bodyBytes: 1 << 20, depth: 64, unfinished };
    await using server = await host(bindingOf({ call }, { limits }));
    await using client = session(server.address);
    const begin = () => {
      const stream = client.request({ ":method": "POST", ":path": cancelPath, "content-type": "application/grpc" });
      stream.on("error", () => {});
      return stream;
    };
    const stalled = begin();
    const ended = new Promise<IncomingHttpHeaders>((resolve) => stalled.on("response", resolve));
    const body = frameOf(cancelOf(900_000));
    stalled.write(body.subarray(0, 200_000));
    await vi.waitFor(() => expect(unfinished.used).toBeGreaterThan(900_000));
    // The rest of the budget for large messages is too small for a second one.
    const other = exchange(client, [body], { ":path": cancelPath });
    await vi.waitFor(() => expect(unfinished.queue.used).toBeGreaterThan(0));
    for (let second = 0; second < 5; second++) clock.advance(1_000);
    expect((await ended)["grpc-status"]).toBe("14");
    expect(endOf(await other).status).toBe("0");
    await vi.waitFor(() => expect(unfinished.used).toBe(0));
  });

  test("a compressed message counts with its largest decompressed size", async () => {
    const unfinished = new Unfinished(4 << 20, 1 << 20, fakeClock());
    const most: number[] = [];
    const enter = unfinished.enter.bind(unfinished);
    unfinished.enter = (reader, connection) => {
      const place = enter(reader, connection);
      const hold = place.hold.bind(place);
      place.hold = (held, wanted) => {
        most.push(wanted);
        return hold(held, wanted);
      };
      return place;
    };
    await using server = await host(bindingOf({ call }, { limits: { bodyBytes: 1 << 20, depth: 64, unfinished } }));
    await using client = session(server.address);
    const zipped = frameOf(gzipSync(cancelOf(100_000)), compressed);
    const answer = await exchange(client, [zipped], { "grpc-encoding": "gzip", ":path": cancelPath });
    expect(endOf(answer).status).toBe("0");
    expect(Math.max(...most)).toBeGreaterThanOrEqual(1 << 20);
    expect(unfinished.used).toBe(0);
  });
});
