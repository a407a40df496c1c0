import { createServer, type AddressInfo, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { A2AError, connect, type ConnectOptions } from "@parley/a2a";
import { compressed, frameOf } from "../src/frames.ts";
import { grpcBinding } from "../src/client/index.ts";
import { cardOf, done, grpcHead, message, peer, working } from "./support/peer.ts";

/** Hostile servers: each call ends with an `A2AError`, and the memory of waiting messages is limited. */

const options: ConnectOptions = { bindings: [grpcBinding()], retry: false, reconnect: false, timeout: 500 };

async function outcome(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => new Error("It was answered"),
    (error: unknown) => error,
  );
  if (!(thrown instanceof A2AError)) throw thrown;
  return thrown.code;
}

/** A frame of HTTP/2 (RFC 9113 §4.1). */
function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as literals that are not added to a table (RFC 7541 §6.2.2). */
function fields(...lines: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value, "latin1");
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  };
  return Buffer.concat(lines.map(([name, value]) => Buffer.concat([Buffer.from([0]), text(name), text(value)])));
}

const headers = (...lines: readonly (readonly [string, string])[]): Buffer => frame(1, 0x4, 1, fields(...lines));
const type = ["content-type", "application/grpc"] as const;

const answers: readonly (readonly [string, (socket: Socket) => void])[] = [
  ...["0", "99", "100", "101", "199", "600", "999", "1000", "-1", "", "ok"].map(
    (code) => [`status ${code}`, (socket: Socket) => socket.write(headers([":status", code], type))] as const,
  ),
  ["a control character", (socket) => socket.write(headers([":status", "200"], type, ["grpc-message", "a\0b\x01"]))],
  ["no status", (socket) => socket.write(headers(type))],
  ["two statuses", (socket) => socket.write(headers([":status", "200"], [":status", "500"], type))],
  ["a name in capitals", (socket) => socket.write(headers([":status", "200"], ["Odd", "x"], type))],
  ["a connection header", (socket) => socket.write(headers([":status", "200"], ["upgrade", "odd"], type))],
  ["headers that cannot be read", (socket) => socket.write(frame(1, 0x4, 1, Buffer.from([0xff, 0xff, 0xff])))],
  ["a body without headers", (socket) => socket.write(frame(0, 0, 1, Buffer.from("odd")))],
  ["a reset", (socket) => socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, 2])))],
  ["a GOAWAY", (socket) => socket.write(frame(7, 0, 0, Buffer.alloc(8)))],
  ["a broken connection", (socket) => socket.resetAndDestroy()],
  [
    "endless interim answers",
    (socket) => {
      const flood = Buffer.concat(Array.from({ length: 1_000 }, () => headers([":status", "103"])));
      const more = (): void => {
        while (socket.writable && socket.write(flood));
      };
      socket.on("drain", more);
      more();
    },
  ],
  [
    "endless headers",
    (socket) => {
      socket.write(frame(1, 0, 1, fields([":status", "200"])));
      const flood = Buffer.concat(Array.from({ length: 100 }, () => frame(9, 0, 1, fields(["x", "y".repeat(100)]))));
      const more = (): void => {
        while (socket.writable && socket.write(flood));
      };
      socket.on("drain", more);
      more();
    },
  ],
  [
    "a message of the largest possible length",
    (socket) =>
      socket.write(
        Buffer.concat([headers([":status", "200"], type), frame(0, 0, 1, Buffer.from([0, 255, 255, 255, 255]))]),
      ),
  ],
  [
    "an incomplete message",
    (socket) =>
      socket.write(Buffer.concat([headers([":status", "200"], type), frame(0, 1, 1, Buffer.from([0, 0, 0, 0, 9, 1]))])),
  ],
  ["another protocol", (socket) => socket.write("HTTP/1.1 200 OK\r\n\r\n")],
  ["silence", () => {}],
];

// Most of these end at the timeout, so they run concurrently.
describe.concurrent("a call by gRPC", () => {
  it.for(answers)("survives %s", async ([, misbehave], { expect, onTestFinished }) => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket.on("error", () => {}));
      socket.write(frame(4, 0, 0, Buffer.alloc(0)));
      let begun = false;
      socket.on("data", (chunk) => {
        // The head of the request: a frame of headers.
        if (begun || !chunk.includes("grpc")) return;
        begun = true;
        misbehave(socket);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    const client = await connect(cardOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), options);
    expect(await outcome(client.getTask("t"))).toMatch(/^[A-Z]/);
  });
});

describe("a call by gRPC", () => {
  it("with one answer reads no second message, however many are sent", async () => {
    await using server = await peer((stream) => {
      stream.respond(grpcHead);
      const flood = Buffer.concat(Array.from({ length: 1_000 }, () => message("GetTask", done)));
      const more = (): void => {
        while (!stream.destroyed && stream.write(flood));
      };
      stream.on("drain", more);
      more();
    });
    const client = await connect(cardOf(`http://127.0.0.1:${server.port}`), { ...options, timeout: false });
    expect(await outcome(client.getTask("t"))).toBe("InvalidResponse");
  });
});

describe("messages that wait for their reader", () => {
  const large = { task: { ...working, metadata: { text: "x".repeat(500_000) } } };

  it("are limited in bytes, and beyond that the server is paused", async () => {
    let written = 0;
    await using server = await peer((stream) => {
      stream.respond(grpcHead);
      const one = message("SendStreamingMessage", large);
      const more = (): void => {
        while (!stream.destroyed && written < 200 << 20) {
          written += one.length;
          if (!stream.write(one)) return;
        }
      };
      stream.on("drain", more);
      more();
    });
    const client = await connect(cardOf(`http://127.0.0.1:${server.port}`), { ...options, timeout: false });
    const stream = client.subscribeToTask("t")[Symbol.asyncIterator]();
    await stream.next();
    // Nothing more is read, until the server is paused:
    for (let before = -1; before !== written;) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    await stream.return?.();
    // The waiting messages, the window and both ends' buffers. All 256 messages would be 128 MB.
    expect(written).toBeLessThan(16 << 20);
  });

  it("are decompressed only as they are read", async () => {
    const packed = frameOf(gzipSync(message("SendStreamingMessage", large).subarray(5)), compressed);
    await using server = await peer((stream) => {
      stream.respond({ ...grpcHead, "grpc-encoding": "gzip" });
      for (let count = 0; count < 200; count++) stream.write(packed);
    });
    const client = await connect(cardOf(`http://127.0.0.1:${server.port}`), { ...options, timeout: false });
    const stream = client.subscribeToTask("t")[Symbol.asyncIterator]();
    let most = 0;
    const before = process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
    for (let count = 0; count < 200; count++) {
      expect((await stream.next()).done).toBe(false);
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      most = Math.max(most, heapUsed + arrayBuffers - before);
    }
    await stream.return?.();
    expect(most).toBeLessThan(96 << 20);
  });
});
