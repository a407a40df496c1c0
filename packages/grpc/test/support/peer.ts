import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { AgentCard } from "@parley/server";
import { frameOf } from "../../src/frames.ts";
import { encode } from "../../src/protobuf/encode.ts";
import { serviceV1 } from "../../src/services.ts";

export type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, body: Buffer) => void;

/** A server with handwritten answers, including ones that no server sends. */
export interface Peer extends AsyncDisposable {
  readonly port: number;
  /** The calls that arrived, in order. */
  readonly calls: readonly IncomingHttpHeaders[];
  readonly sessions: readonly ServerHttp2Session[];
  /** How the next calls are answered. */
  answer: Answer;
}

export async function peer(answer: Answer, tls?: SecureServerOptions): Promise<Peer> {
  const calls: IncomingHttpHeaders[] = [];
  const sessions: ServerHttp2Session[] = [];
  const sockets = new Set<Socket>();
  const server: Http2Server = tls === undefined ? createServer() : createSecureServer(tls);
  server.on("session", (session) => {
    sessions.push(session);
    session.on("error", () => {});
  });
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  server.on("stream", (stream, headers) => {
    calls.push(headers);
    stream.on("error", () => {});
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      if (!stream.destroyed) made.answer(stream, headers, Buffer.concat(chunks));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const made: Peer = {
    port: (server.address() as AddressInfo).port,
    calls,
    sessions,
    answer,
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return made;
}

export const grpcHead: OutgoingHttpHeaders = { ":status": 200, "content-type": "application/grpc+proto" };

const service = serviceV1();

/** A message of the answer of a method of 1.0, in its frame. */
export function message(operation: "GetTask" | "SendStreamingMessage", value: object): Uint8Array {
  const method = service.operations.get(operation);
  if (method === undefined) throw new TypeError(operation);
  return frameOf(encode(method.output, value));
}

/** Frames, then a status in the trailers. */
export function reply(
  stream: ServerHttp2Stream,
  frames: readonly Uint8Array[],
  trailers: OutgoingHttpHeaders = {},
): void {
  stream.respond(grpcHead, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", ...trailers }));
  for (const frame of frames) stream.write(frame);
  stream.end();
}

/** A status without a message. */
export function status(stream: ServerHttp2Stream, code: number, text: string, more: OutgoingHttpHeaders = {}): void {
  stream.respond({ ...grpcHead, "grpc-status": String(code), "grpc-message": text, ...more }, { endStream: true });
}

export function cardOf(url: string, protocolVersion = "1.0", ...others: readonly string[]): AgentCard {
  return {
    name: "Peer",
    description: "",
    version: "1.0.0",
    supportedInterfaces: [
      { url, protocolBinding: "GRPC", protocolVersion },
      ...others.map((other) => ({ url: other, protocolBinding: "JSONRPC", protocolVersion })),
    ],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
}

export const working = { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } };
export const done = { id: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } };
