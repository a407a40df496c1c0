import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { A2AError, connect, type AgentCard, type Client, type ConnectOptions } from "@parley/a2a";
import { bearer } from "@parley/a2a/auth";
import { compressed, frameOf, trailers } from "../src/frames.ts";
import { grpcWebBinding } from "../src/client/web.ts";
import { grpcBinding } from "../src/client/index.ts";
import { obedient } from "./support/agents.ts";
import { serve, type Host } from "./support/host.ts";
import { cardOf, done, message, working } from "./support/peer.ts";

async function failureOf(work: Promise<unknown>): Promise<A2AError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof A2AError) return error;
    throw error;
  }
  throw new Error("It did not fail");
}

const web = [grpcWebBinding()];
const plain = [grpcBinding()];

let server: Host;
beforeAll(async () => {
  server = await serve(obedient());
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe.each([
  ["gRPC", "1.0", plain, () => server.address],
  ["gRPC", "0.3", plain, () => server.address],
  ["gRPC-Web over HTTP/1.1", "1.0", web, () => server.webUrl],
  ["gRPC-Web over HTTP/1.1", "0.3", web, () => server.webUrl],
] as const)("our server and our client over %s of A2A %s", (_name, version, bindings, url) => {
  const open = (options: ConnectOptions = {}): Promise<Client> =>
    connect(cardOf(url(), version), { bindings, ...options });

  it("send and get", async () => {
    const client = await open();
    const { task } = await client.sendMessage("go");
    expect(task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [
        { artifactId: "a", parts: [{ text: "al" }, { data: { n: null, list: [1.5] } }] },
        { artifactId: "b", parts: [{ raw: "AAEC", mediaType: "application/x" }] },
      ],
    });
    expect((await client.getTask(task?.id ?? "")).status).toEqual(task?.status);
    expect((await client.sendMessage("reply")).message?.parts).toEqual([{ text: "Hello" }]);
  });

  it("stream", async () => {
    const client = await open();
    const events: unknown[] = [];
    for await (const event of client.sendStreamingMessage("go")) {
      events.push(
        event.task?.status.state ?? event.statusUpdate?.status.state ?? event.artifactUpdate?.artifact.artifactId,
      );
    }
    expect(events).toEqual(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "a", "b", "TASK_STATE_COMPLETED"]);
  });

  it("subscribe, and cancel", async () => {
    const client = await open();
    const sent = await client.sendMessage({ message: "wait", configuration: { returnImmediately: true } });
    const id = sent.task?.id ?? "";
    const states: unknown[] = [];
    for await (const event of client.subscribeToTask(id)) {
      states.push(event.task?.status.state ?? event.statusUpdate?.status.state);
      if (states.at(-1) === "TASK_STATE_WORKING") await client.cancelTask(id);
    }
    expect(states.at(-1)).toBe("TASK_STATE_CANCELED");
  });

  it("report errors with their fields", async () => {
    const client = await open();
    expect((await failureOf(client.getTask("none"))).code).toBe("TaskNotFound");
    const { task } = await client.sendMessage("go");
    expect((await failureOf(client.cancelTask(task?.id ?? ""))).code).toBe("TaskNotCancelable");
    const again = client.sendMessage({ parts: [{ text: "more" }], taskId: task?.id ?? "", contextId: "another" });
    expect((await failureOf(again)).code).toMatch(/InvalidParams|UnsupportedOperation/);
    if (version !== "1.0") return;
    // They are sent as `page_size`.
    const { fields } = await failureOf(client.listTasks({ pageSize: 101 }));
    expect(fields).toMatchObject([{ field: "pageSize" }]);
  });

  it("end a call with its signal", async () => {
    const client = await open();
    const controller = new AbortController();
    const call = client.sendMessage("wait", { signal: controller.signal });
    setImmediate(() => controller.abort());
    expect((await failureOf(call)).code).toBe("Aborted");
  });
});

describe("credentials and generations", () => {
  it.each([
    ["gRPC", plain, (host: Host) => host.address],
    ["gRPC-Web", web, (host: Host) => host.webUrl],
  ] as const)("are sent over %s", async (_name, bindings, url) => {
    const authenticator = bearer({ secret: { subject: "ann" } });
    await using host = await serve(obedient(), { authenticator });
    const stranger = await connect(cardOf(url(host)), { bindings });
    expect(await failureOf(stranger.getTask("t"))).toMatchObject({
      code: "Unauthenticated",
      challenge: expect.stringContaining("Bearer"),
    });
    const headers = { authorization: "Bearer secret" };
    const client = await connect(cardOf(url(host)), { bindings, headers, version: "1.1" });
    expect((await client.sendMessage("go")).task).toHaveProperty("generation");
  });
});

describe("gRPC-Web", () => {
  const body = message("GetTask", done);
  const end = (text: string): Uint8Array => frameOf(new TextEncoder().encode(text), trailers);
  const type = { "content-type": "application/grpc-web+proto" };

  async function against(
    listener: RequestListener,
    use: (client: Client) => Promise<void>,
    options: ConnectOptions = {},
  ) {
    const peer = createServer(listener);
    await new Promise<void>((resolve) => peer.listen(0, "127.0.0.1", resolve));
    const card: AgentCard = cardOf(`127.0.0.1:${(peer.address() as AddressInfo).port}`);
    try {
      await use(await connect(card, { bindings: web, retry: false, reconnect: false, ...options }));
    } finally {
      peer.closeAllConnections();
      peer.close();
    }
  }

  it("sends its headers", async () => {
    let seen: unknown;
    await against(
      (request, response) => {
        seen = [request.method, request.url, request.headers];
        response.writeHead(200, type).end(Buffer.concat([body, end("grpc-status: 0\r\n")]));
      },
      async (client) => expect(await client.getTask("t")).toEqual(done),
    );
    expect(seen).toMatchObject([
      "POST",
      "/lf.a2a.v1.A2AService/GetTask",
      {
        "content-type": "application/grpc-web+proto",
        "x-grpc-web": "1",
        "grpc-timeout": "60000m",
        "a2a-version": "1.0",
      },
    ]);
  });

  it("reads frames that arrive in pieces", async () => {
    await against(
      (_request, response) => {
        response.writeHead(200, type);
        const bytes = Buffer.concat([body, end("GRPC-Status:0\r\nA2A-Extensions: urn:x\r\n")]);
        const go = (at: number): void => {
          if (at === bytes.length) response.end();
          else response.write(bytes.subarray(at, at + 1), () => setImmediate(go, at + 1));
        };
        go(0);
      },
      async (client) => expect(await client.getTask("t")).toEqual(done),
    );
  });

  it.each([
    ["a status alone", [], { "grpc-status": "5", "grpc-message": "no%20such" }, "TaskNotFound"],
    ["a status in the trailers", [end("grpc-status: 5\r\n")], {}, "TaskNotFound"],
    ["no status", [body], {}, "ConnectionLost"],
    ["no message", [end("grpc-status: 0\r\n")], {}, "InvalidResponse"],
    ["an incomplete message", [body.subarray(0, 9)], {}, "InvalidResponse"],
    ["a compressed message", [frameOf(Uint8Array.of(1), compressed)], {}, "InvalidResponse"],
    ["a page", [Buffer.from("<h1>x</h1>")], { "content-type": "text/html" }, "InvalidResponse"],
  ])("that answers with %s", async (_name, frames, headers, expected) => {
    await against(
      (_request, response) => void response.writeHead(200, { ...type, ...headers }).end(Buffer.concat(frames)),
      async (client) => expect((await failureOf(client.getTask("t"))).code).toBe(expected),
    );
  });

  it.each([
    [401, "Unauthenticated"],
    [503, "Unavailable"],
    [404, "InvalidResponse"],
  ])("whose proxy says %i is %s", async (status, expected) => {
    await against(
      (_request, response) => void response.writeHead(status, { "retry-after": "7" }).end("sorry"),
      async (client) => {
        const retryAfter = status === 503 ? { retryAfter: 7 } : {};
        expect(await failureOf(client.getTask("t"))).toMatchObject({ code: expected, ...retryAfter });
      },
    );
  });

  it("rejects a message over the limit without waiting forever", async () => {
    await against(
      (_request, response) => void response.writeHead(200, type).end(frameOf(new Uint8Array(100_000))),
      async (client) => expect((await failureOf(client.getTask("t"))).message).toContain("1000 bytes"),
      { maxResponseBytes: 1000 },
    );
    await against(
      () => {},
      async (client) => expect((await failureOf(client.getTask("t"))).code).toBe("Timeout"),
      { connectTimeout: 50 },
    );
  });

  it("tells the server when its reader leaves", async () => {
    const gone = vi.fn<() => void>();
    await against(
      (_request, response) => {
        response.on("close", gone);
        response.writeHead(200, type).write(message("SendStreamingMessage", { task: working }));
      },
      async (client) => {
        const stream = client.sendStreamingMessage("hi")[Symbol.asyncIterator]();
        await stream.next();
        await stream.return?.();
        await vi.waitFor(() => expect(gone).toHaveBeenCalled());
      },
    );
  });
});
