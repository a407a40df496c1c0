import { createServer as createHttp1 } from "node:http";
import { connect, createServer, type ClientHttp2Session } from "node:http2";
import { createServer as createNet, type AddressInfo, type Server, type Socket } from "node:net";
import { createHandler, memoryStore, systemClock, type Handler, type HandlerOptions } from "@parley/server";
import { codecV1, codecV11, type AgentService, type ServerHost } from "@parley/a2a/protocol";
import { beforeRouter } from "@parley/a2a/internal/transport/router/router";
import { KeepAlive } from "@parley/a2a/internal/transport/server/event-stream";
import { operations } from "@parley/a2a/internal/protocol/index";
import { nodeListener, Responder } from "../../../node/src/http/listener.ts";
import { Http2Exchange } from "../../../node/src/http/http2.ts";
import { grpcBinding, type GrpcOptions } from "../../src/index.ts";

export interface Host {
  /** Reports to health watchers that the server stops. */
  readonly stop: () => void;
  /** Of gRPC and of gRPC-Web over HTTP/2: `127.0.0.1:4000`. */
  readonly address: string;
  /** Of gRPC-Web over HTTP/1.1. */
  readonly webUrl: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Serves `host` by gRPC, and 404 for everything else. */
export async function host(
  serverHost: ServerHost,
  { stallTimeout, ...options }: GrpcOptions & { readonly stallTimeout?: number } = {},
  close?: () => Promise<void>,
): Promise<Host> {
  const grpc = grpcBinding(options).openAnyPath(serverHost);
  const handle = beforeRouter([grpc], () => ({ status: 404, headers: {} }));
  const http = stallTimeout === undefined ? {} : { stallTimeout };
  const responder = new Responder(handle, http);
  const http2 = createServer();
  http2.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    void responder.answer(new Http2Exchange(stream, headers));
  });
  const http1 = createHttp1(nodeListener(handle, http));
  const sockets = new Set<Socket>();
  const front = createNet((socket) => {
    sockets.add(socket);
    http2.emit("connection", socket);
  });
  return {
    stop: () => grpc.close?.(),
    address: `127.0.0.1:${await listen(front)}`,
    webUrl: `http://127.0.0.1:${await listen(http1)}`,
    async [Symbol.asyncDispose]() {
      await close?.();
      for (const socket of sockets) socket.destroy();
      front.close();
      http1.closeAllConnections();
      http1.close();
    },
  };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

/** Serves agents as `createHandler` does. */
export async function serve(
  agents: Parameters<typeof createHandler>[0],
  options: Partial<HandlerOptions> = {},
  grpc: GrpcOptions = {},
): Promise<Host & { readonly handler: Handler }> {
  const handler = createHandler(agents, { store: memoryStore(), publicUrl: "http://agents.example", ...options });
  return { ...(await host(handler.host, grpc, () => handler.close())), handler };
}

/** The host that `createHandler` would give to the binding, with one service. */
export function bindingOf(service: Partial<AgentService>, more: Partial<ServerHost> = {}): ServerHost {
  const missing = () => Promise.reject(new Error("not asked for in this test"));
  return {
    codecs: [codecV1, codecV11],
    operations,
    authenticate: () => ({ subject: "anyone" }),
    services: new Map([[undefined, { call: missing, stream: missing, ...service }]]),
    limits: { bodyBytes: 1 << 20, depth: 64 },
    strictVersion: false,
    keepAlive: new KeepAlive(systemClock, 15_000),
    clock: systemClock,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    ...more,
  };
}

/** A session of `node:http2`, for calls that no gRPC client makes. */
export function session(address: string): ClientHttp2Session & AsyncDisposable {
  const client = connect(`http://${address}`);
  client.on("error", () => {});
  return Object.assign(client, { [Symbol.asyncDispose]: () => Promise.resolve(client.destroy()) });
}
