import { execFile } from "node:child_process";
import { constants } from "node:http2";
import { createServer as createHttp1 } from "node:http";
import { connect as connectNet, createServer as createNet, type AddressInfo, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { A2AError, connect, type AgentCard, type Client, type ConnectOptions } from "@parley/a2a";
import { wires } from "@parley/a2a/protocol";
import { compressed, frameOf } from "../src/frames.ts";
import { grpcBinding, type GrpcBindingOptions } from "../src/client/index.ts";
import { decode } from "../src/protobuf/decode.ts";
import { serviceV1 } from "../src/services.ts";
import { certificateFor } from "./support/certificate.ts";
import { cardOf, done, grpcHead, message, peer, reply, status, working, type Peer } from "./support/peer.ts";

/** A client without retries, so each test sees the binding alone. */
function open(
  card: AgentCard | Peer,
  { grpc = {}, ...options }: ConnectOptions & { grpc?: GrpcBindingOptions } = {},
): Promise<Client> {
  const bindings = [grpcBinding(Object.values(wires), grpc)];
  const given = "port" in card ? cardOf(`127.0.0.1:${card.port}`) : card;
  return connect(given, { bindings, retry: false, reconnect: false, ...options });
}

async function failureOf(work: Promise<unknown>): Promise<A2AError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof A2AError) return error;
    throw error;
  }
  throw new Error("It did not fail");
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  const events = stream[Symbol.asyncIterator]();
  while ((await events.next()).done !== true);
}

const giveTask = (stream: Parameters<typeof reply>[0]): void => reply(stream, [message("GetTask", done)]);

describe("a call", () => {
  it("sends its method, version and accepted encodings (gRPC over HTTP/2)", async () => {
    await using server = await peer(giveTask);
    const client = await open(server, { headers: { authorization: "Bearer x", Connection: "close" } });
    expect(await client.getTask("t")).toEqual(done);
    expect(server.calls[0]).toMatchObject({
      ":method": "POST",
      ":scheme": "http",
      ":authority": `127.0.0.1:${server.port}`,
      ":path": "/lf.a2a.v1.A2AService/GetTask",
      "content-type": "application/grpc+proto",
      te: "trailers",
      "grpc-accept-encoding": "gzip,deflate,identity",
      "grpc-timeout": "60000m",
      "a2a-version": "1.0",
      authorization: "Bearer x",
    });
  });

  it("of 0.3 goes to the service of 0.3, with its header for extensions", async () => {
    await using server = await peer((stream) => status(stream, 5, "no such task"));
    const card = cardOf(`127.0.0.1:${server.port}`, "0.3");
    const client = await open(card, { extensions: ["urn:x", "urn:y"] });
    expect((await failureOf(client.getTask("t"))).code).toBe("TaskNotFound");
    expect(server.calls[0]).toMatchObject({
      ":path": "/a2a.v1.A2AService/GetTask",
      "a2a-version": "0.3",
      "x-a2a-extensions": "urn:x, urn:y",
    });
  });

  it("of 0.2 uses 0.3, as on other bindings", async () => {
    await using server = await peer((stream) => status(stream, 5, "no such task"));
    const client = await open(cardOf(`127.0.0.1:${server.port}`, "0.2.5"), { version: "0.2.5" });
    expect((await failureOf(client.getTask("t"))).code).toBe("TaskNotFound");
    expect(server.calls[0]).toMatchObject({ ":path": "/a2a.v1.A2AService/GetTask", "a2a-version": "0.3" });
  });

  it("names each extension on its own, for servers that do not split lists", async () => {
    await using server = await peer((stream) => giveTask(stream));
    let lines: readonly string[] = [];
    const client = await open(server, { extensions: ["urn:x", "urn:y"] });
    const raw = new Promise<void>((resolve) => {
      const watch = setInterval(() => {
        const [session] = server.sessions;
        if (session === undefined) return;
        clearInterval(watch);
        session.on("stream", (_stream: unknown, _headers: unknown, _flags: unknown, rawHeaders: readonly string[]) => {
          lines = rawHeaders.flatMap((name, at) => (name === "a2a-extensions" ? [rawHeaders[at + 1] ?? ""] : []));
          resolve();
        });
      });
    });
    await client.getTask("t");
    await client.getTask("t");
    await raw;
    expect(lines).toEqual(["urn:x", "urn:y"]);
  });

  it("returns the activated extensions, from headers or trailers", async () => {
    await using server = await peer((stream) => giveTask(stream));
    const seen: unknown[] = [];
    const client = await open(server, {
      interceptors: [
        (next) => ({
          ...next,
          call: async (...args) => {
            const answer = await next.call(...args);
            seen.push(answer.extensions);
            return answer;
          },
        }),
      ],
    });
    await client.getTask("t");
    server.answer = (stream) => reply(stream, [message("GetTask", done)], { "a2a-extensions": "urn:x,urn:y" });
    await client.getTask("t");
    server.answer = (stream) => {
      stream.respond({ ...grpcHead, "x-a2a-extensions": "urn:z" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(message("GetTask", done));
    };
    await client.getTask("t");
    expect(seen).toEqual([undefined, ["urn:x", "urn:y"], ["urn:z"]]);
  });

  it("keeps one connection, and makes another after a GOAWAY", async () => {
    await using server = await peer(giveTask);
    const client = await open(server);
    await Promise.all([client.getTask("a"), client.getTask("b")]);
    await client.getTask("c");
    expect(server.sessions).toHaveLength(1);
    server.sessions[0]?.goaway();
    await vi.waitFor(async () => {
      await client.getTask("d");
      expect(server.sessions).toHaveLength(2);
    });
  });

  it("does not keep the process running after its end, though its connection is kept", async () => {
    await using server = await peer(giveTask);
    const script = fileURLToPath(new URL("support/call-once.mjs", import.meta.url));
    const card = JSON.stringify(cardOf(`127.0.0.1:${server.port}`));
    const run = promisify(execFile)(process.execPath, [script, card]);
    expect((await run).stdout).toBe("t");
  });

  it("that its server rejected unprocessed is sent again", async () => {
    await using server = await peer(giveTask);
    let refusals = 0;
    server.answer = (stream) => {
      if (refusals++ < 2) stream.close(constants.NGHTTP2_REFUSED_STREAM);
      else giveTask(stream);
    };
    expect(await (await open(server)).getTask("t")).toEqual(done);
    expect(server.calls).toHaveLength(3);
  });

  it("compresses long requests, if the option is set", async () => {
    let sent: unknown;
    await using server = await peer((stream, headers, body) => {
      expect([headers["grpc-encoding"], body[0]]).toEqual(["gzip", compressed]);
      const type = serviceV1().operations.get("SendMessage")?.input;
      if (type !== undefined) sent = decode(type, gunzipSync(body.subarray(5)));
      status(stream, 9, "");
    });
    const client = await open(server, { grpc: { compressAbove: 100 } });
    await failureOf(client.sendMessage("x".repeat(1000)));
    expect(sent).toMatchObject({ message: { parts: [{ text: "x".repeat(1000) }] } });
  });

  it.each(["gzip", "identity"])("reads an answer compressed with %s", async (encoding) => {
    await using server = await peer((stream) => {
      stream.respond({ ...grpcHead, "grpc-encoding": encoding }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      const plain = message("GetTask", done);
      stream.end(encoding === "gzip" ? frameOf(gzipSync(plain.subarray(5)), compressed) : plain);
    });
    expect(await (await open(server)).getTask("t")).toEqual(done);
  });

  it("ends with its signal, and tells the server", async () => {
    await using server = await peer(() => {});
    const gone = new Promise((resolve) => {
      server.answer = (stream) => stream.on("aborted", () => resolve(stream.rstCode));
    });
    const controller = new AbortController();
    const call = (await open(server)).getTask("t", { signal: controller.signal });
    await vi.waitFor(() => expect(server.calls).toHaveLength(1));
    controller.abort();
    expect((await failureOf(call)).code).toBe("Aborted");
    expect(await gone).toBe(constants.NGHTTP2_CANCEL);
  });

  it("ends at its timeout, which is sent to the server", async () => {
    let first = true;
    await using server = await peer((stream) => {
      if (first) giveTask(stream);
      first = false;
    });
    const client = await open(server);
    // Connects first, so the timeout covers only the call.
    await client.getTask("t");
    const call = client.getTask("t", { connectTimeout: 50 });
    expect((await failureOf(call)).code).toBe("Timeout");
    expect(server.calls[1]?.["grpc-timeout"]).toBe("50m");
  });

  it("that waits for its task has no timeout", async () => {
    await using server = await peer((stream) => status(stream, 9, ""));
    await failureOf((await open(server)).sendMessage("hi"));
    expect(server.calls[0]?.["grpc-timeout"]).toBeUndefined();
  });

  it("uses TLS for an address that says so", async () => {
    const { cert, key } = await certificateFor("localhost", "127.0.0.1");
    await using server = await peer(giveTask, { cert, key });
    const card = cardOf(`grpcs://127.0.0.1:${server.port}`);
    expect(await (await open(card, { grpc: { tls: { ca: cert } } })).getTask("t")).toEqual(done);
    const stranger = await failureOf((await open(card)).getTask("t"));
    expect([stranger.code, stranger.message]).toEqual(["ConnectionFailed", expect.stringContaining("certificate")]);
  });

  it("is left to another binding unless gRPC is requested", async () => {
    await using server = await peer(giveTask);
    const rpc = createHttp1((_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32001, message: "over JSON-RPC" } }));
    });
    await new Promise<void>((resolve) => rpc.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(rpc.address() as AddressInfo).port}`;
      const { supportedInterfaces, ...rest } = cardOf(`127.0.0.1:${server.port}`, "1.0", url);
      const card = { ...rest, supportedInterfaces: supportedInterfaces.toReversed() };
      expect((await failureOf((await open(card)).getTask("t"))).code).toBe("TaskNotFound");
      expect(await (await open(card, { binding: "GRPC" })).getTask("t")).toEqual(done);
    } finally {
      rpc.close();
    }
  });
});

describe("a failing call", () => {
  it.each([
    [1, "ConnectionLost"],
    [3, "InvalidParams"],
    [4, "Timeout"],
    [5, "TaskNotFound"],
    [7, "PermissionDenied"],
    [8, "TooManyRequests"],
    [9, "UnsupportedOperation"],
    [13, "InternalError"],
    [14, "Unavailable"],
    [16, "Unauthenticated"],
  ])("with only the status %i is %s", async (code, expected) => {
    await using server = await peer((stream) => status(stream, code, "sad%20news"));
    const error = await failureOf((await open(server)).getTask("t"));
    expect([error.code, error.message]).toEqual([expected, expect.stringMatching(/(^|: )sad news$/)]);
  });

  it.each(["Method not found!", "unknown service lf.a2a.v1.A2AService", "The server does not implement GetTask", ""])(
    "of an unknown method is MethodNotFound: %j",
    async (text) => {
      await using server = await peer((stream) => status(stream, 12, text));
      expect((await failureOf((await open(server)).getTask("t"))).code).toBe("MethodNotFound");
    },
  );

  it.each([
    [12, "TaskNotCancelableError: no", "TaskNotCancelable"],
    [12, "PushNotificationNotSupportedError: no", "PushNotificationNotSupported"],
    [12, "UnsupportedOperationError: no", "UnsupportedOperation"],
    [12, "ContentTypeNotSupportedError: no", "ContentTypeNotSupported"],
    [12, "AuthenticatedExtendedCardNotConfiguredError: no", "ExtendedAgentCardNotConfigured"],
    [13, "InvalidAgentResponseError: no", "InvalidAgentResponse"],
    [9, "TaskNotCancelableError: no", "TaskNotCancelable"],
    [5, "TaskNotFoundError: no", "TaskNotFound"],
    [13, "some InternalError of theirs", "InternalError"],
  ])("of Python's 0.3 has the code in its text: %i %s", async (code, text, expected) => {
    await using server = await peer((stream) => status(stream, code, text));
    const client = await open(cardOf(`127.0.0.1:${server.port}`, "0.3"));
    expect((await failureOf(client.getTask("t"))).code).toBe(expected);
  });

  it("has the challenge that came with it", async () => {
    await using server = await peer((stream) => status(stream, 16, "who?", { "www-authenticate": "Bearer" }));
    expect(await failureOf((await open(server)).getTask("t"))).toMatchObject({ challenge: "Bearer" });
  });

  it.each([
    [401, "Unauthenticated"],
    [403, "PermissionDenied"],
    [429, "TooManyRequests"],
    [503, "Unavailable"],
    [404, "InvalidResponse"],
    [200, "InvalidResponse"],
  ])("before gRPC is reached, by HTTP %i, is %s", async (code, expected) => {
    await using server = await peer((stream) => {
      stream.respond({ ":status": code, "content-type": "text/html" });
      stream.end("<h1>proxy</h1>");
    });
    expect((await failureOf((await open(server)).getTask("t"))).code).toBe(expected);
  });

  it("of a proxy before the server has the proxy's Retry-After", async () => {
    await using server = await peer((stream) => {
      stream.respond({ ":status": 503, "content-type": "text/html", "retry-after": "7" });
      stream.end("<h1>proxy</h1>");
    });
    const error = await failureOf((await open(server)).getTask("t"));
    expect(error).toMatchObject({ code: "Unavailable", retryAfter: 7 });
  });

  it("without a status at the end is ConnectionLost", async () => {
    await using server = await peer((stream) => {
      stream.respond(grpcHead);
      stream.end(message("GetTask", done));
    });
    expect((await failureOf((await open(server)).getTask("t"))).code).toBe("ConnectionLost");
  });

  it.each([
    ["none", []],
    ["two", [message("GetTask", done), message("GetTask", done)]],
  ])("with %s instead of one message is InvalidResponse", async (_name, frames) => {
    await using server = await peer((stream) => reply(stream, frames));
    expect((await failureOf((await open(server)).getTask("t"))).code).toBe("InvalidResponse");
  });

  it.each([
    ["an incomplete message", message("GetTask", done).subarray(0, 12)],
    ["bytes that are not a message", frameOf(Uint8Array.of(0xff, 0xff, 0xff))],
    ["a message compressed in an unknown way", frameOf(Uint8Array.of(1), compressed)],
  ])("with %s is InvalidResponse", async (_name, frame) => {
    await using server = await peer((stream) => reply(stream, [frame]));
    expect((await failureOf((await open(server)).getTask("t"))).code).toBe("InvalidResponse");
  });

  it("is rejected when a message is over the limit, compressed or not", async () => {
    const big = { ...done, metadata: { text: "x".repeat(100_000) } };
    await using server = await peer((stream) => reply(stream, [message("GetTask", big)]));
    const client = await open(server, { maxResponseBytes: 10_000 });
    expect((await failureOf(client.getTask("t"))).message).toContain("10000 bytes");
    server.answer = (stream) => {
      stream.respond({ ...grpcHead, "grpc-encoding": "gzip" });
      stream.end(frameOf(gzipSync(message("GetTask", big).subarray(5)), compressed));
    };
    expect((await failureOf(client.getTask("t"))).message).toContain("10000 bytes");
  });

  it("because nothing listens is ConnectionFailed, and was certainly not processed", async () => {
    const card = cardOf("127.0.0.1:1");
    const error = await failureOf((await open(card)).getTask("t"));
    expect([error.code, error.message]).toEqual(["ConnectionFailed", expect.stringContaining("ECONNREFUSED")]);
  });

  it("because its server speaks another protocol is ConnectionFailed", async () => {
    const server = createHttp1((_request, response) => void response.end("no HTTP/2"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      expect((await failureOf((await open(cardOf(`127.0.0.1:${port}`))).getTask("t"))).code).toBe("ConnectionFailed");
    } finally {
      server.close();
    }
  });

  it("because its server sends nothing is a Timeout", async () => {
    const server = createNet();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const card = cardOf(`127.0.0.1:${(server.address() as AddressInfo).port}`);
      const error = await failureOf((await open(card, { connectTimeout: 50 })).getTask("t"));
      expect([error.code, error.message]).toEqual(["Timeout", expect.stringContaining("No connection")]);
    } finally {
      server.close();
    }
  });

  it("in the middle of an answer is ConnectionLost", async () => {
    await using server = await peer((stream) => {
      stream.respond(grpcHead);
      stream.write(message("GetTask", done).subarray(0, 8));
      setImmediate(() => stream.session?.destroy());
    });
    expect((await failureOf((await open(server)).getTask("t"))).code).toBe("ConnectionLost");
  });

  it("of an operation that its version lacks is UnsupportedOperation", async () => {
    const client = await open(cardOf("127.0.0.1:1", "0.3"));
    expect((await failureOf(client.listTasks())).code).toBe("UnsupportedOperation");
  });
});

describe("a stream", () => {
  const event = (value: object): Uint8Array => message("SendStreamingMessage", value);
  const text = (at: number): object => ({
    artifactUpdate: {
      taskId: "t",
      contextId: "c",
      artifact: { artifactId: "a", parts: [{ text: `${at} ${"x".repeat(1000)}` }] },
      ...(at > 0 && { append: true }),
    },
  });
  const completed = {
    statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } },
  };

  it("returns its events, and ends with its task", async () => {
    await using server = await peer((stream) => {
      reply(stream, [event({ task: working }), event(text(0)), event(completed)]);
    });
    const events: unknown[] = [];
    for await (const one of (await open(server)).sendStreamingMessage("hi")) events.push(one);
    expect(events).toEqual([{ task: working }, { ...text(0) }, completed]);
  });

  it("waits for its reader: reads no more from the server than fits into the windows", async () => {
    let written = 0;
    const total = 60_000;
    await using server = await peer((stream) => {
      stream.respond(grpcHead, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.write(event({ task: working }));
      const go = (): void => {
        while (written < total) if (!stream.write(event(text(written++)))) return void stream.once("drain", go);
        stream.end(event(completed));
      };
      go();
    });
    let read = 0;
    for await (const one of (await open(server)).sendStreamingMessage("hi")) {
      if (one.artifactUpdate === undefined) continue;
      if (read++ === 0) {
        let before = -1;
        while (before !== written) {
          before = written;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        expect(written).toBeLessThan(10_000);
      }
    }
    expect(read).toBe(total);
  });

  it("whose reader leaves is canceled at the server", async () => {
    await using server = await peer(() => {});
    const gone = new Promise((resolve) => {
      server.answer = (stream) => {
        stream.on("aborted", () => resolve(stream.rstCode));
        stream.respond(grpcHead);
        stream.write(event({ task: working }));
      };
    });
    const stream = (await open(server)).sendStreamingMessage("hi")[Symbol.asyncIterator]();
    await stream.next();
    await stream.return?.();
    expect(await gone).toBe(constants.NGHTTP2_CANCEL);
  });

  it("that ends before its task, breaks, or is rejected late fails", async () => {
    await using server = await peer((stream) => reply(stream, [event({ task: working })]));
    const client = await open(server);
    const read = (): Promise<void> => drain(client.sendStreamingMessage("hi"));
    expect((await failureOf(read())).code).toBe("ConnectionLost");
    server.answer = (stream) => reply(stream, [], { "grpc-status": "5", "grpc-message": "gone" });
    expect((await failureOf(read())).code).toBe("TaskNotFound");
    server.answer = (stream) => {
      stream.respond(grpcHead);
      stream.write(event({ task: working }));
      setImmediate(() => stream.session?.destroy());
    };
    expect((await failureOf(read())).code).toBe("ConnectionLost");
  });

  it("sends pings to a silent server, and fails without an answer", async () => {
    await using server = await peer((stream) => {
      stream.respond(grpcHead);
      stream.write(event({ task: working }));
    });
    const through = new Set<Socket>();
    const proxy = createNet((socket) => {
      const upstream = connectNet(server.port, "127.0.0.1");
      for (const side of [socket, upstream]) through.add(side.on("error", () => {}));
      socket.pipe(upstream).pipe(socket);
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    try {
      const card = cardOf(`127.0.0.1:${(proxy.address() as AddressInfo).port}`);
      const client = await open(card, { grpc: { keepAlive: 30, keepAliveTimeout: 2_000 } });
      const failure = failureOf(drain(client.sendStreamingMessage("hi")));
      await vi.waitFor(() => expect(server.sessions).toHaveLength(1));
      for (let pings = 0; pings < 3; pings++) {
        await new Promise((resolve) => server.sessions[0]?.once("ping", resolve));
      }
      for (const side of through) side.unpipe();
      expect(await failure).toMatchObject({ code: "ConnectionLost", message: expect.stringContaining("pings") });
    } finally {
      for (const side of through) side.destroy();
      proxy.close();
    }
  });
});
