import { createServer as createHttp, type RequestListener } from "node:http";
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { AgentCard } from "@parley/server";
import { afterEach } from "vitest";

/** Starts hostile servers. */

export interface Hostile {
  /** Starts an HTTP server. */
  http(answer: RequestListener): Promise<string>;
  /** Starts a TCP server that sends arbitrary bytes. */
  raw(talk: (socket: Socket) => void): Promise<string>;
  /** Starts an HTTP/2 server for gRPC. */
  http2(answer: (stream: ServerHttp2Stream) => void): Promise<string>;
}

/** Returns functions that start servers. Closes these servers after each test. */
export function hostile(): Hostile {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });
  const listen = async (server: Pick<Server, "listen" | "address" | "close" | "on">): Promise<string> => {
    const sockets = new Set<Socket>();
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    stops.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  return {
    http: (answer) => listen(createHttp(answer)),
    raw: (talk) => listen(createServer(talk)),
    http2: (answer) =>
      listen(
        createHttp2().on("stream", (stream) => {
          stream.on("error", () => {});
          answer(stream);
        }),
      ),
  };
}

/** Returns a card with one interface at an address. */
export function cardAt(url: string, binding: "JSONRPC" | "GRPC" = "JSONRPC"): AgentCard {
  return {
    name: "Hostile",
    description: "Means harm",
    version: "1.0.0",
    supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: "1.0" }],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
}

/** Serves a card, and passes other requests to `answer`. */
export function behindCard(answer: RequestListener): RequestListener {
  return (request, response) => {
    if (request.url?.endsWith("/agent-card.json") !== true) {
      answer(request, response);
      return;
    }
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(cardAt(`http://${request.headers.host}/`)));
  };
}

/** Returns a function that writes a response with this status line. */
function statusLine(line: string, rest = "Content-Length: 2\r\n\r\nhi"): (socket: Socket) => void {
  return (socket) => void socket.once("data", () => socket.write(`HTTP/1.1 ${line}\r\n${rest}`));
}

/** Statuses and headers that HTTP parsers accept but `Response` rejects. */
export const oddHeads: readonly (readonly [string, (socket: Socket) => void])[] = [
  ["status 999", statusLine("999 Odd")],
  ["status 600", statusLine("600 Odd")],
  ["status 099", statusLine("099 Odd")],
  ["status 101", statusLine("101 Switching Protocols", "\r\n")],
  [
    "status 101 with an Upgrade",
    statusLine("101 Switching Protocols", "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
  ],
  ["status 103 and nothing more", statusLine("103 Early Hints", "\r\n")],
  ["a control character in its status text", statusLine("200 O\u0001K")],
  [
    "a byte of Latin-1 in its status text",
    (socket) =>
      void socket.once("data", () =>
        socket.write(Buffer.from("HTTP/1.1 200 \xe9\r\nContent-Length: 2\r\n\r\nhi", "latin1")),
      ),
  ],
  ["no status at all", statusLine("", "\r\n")],
  ["a head that never ends", statusLine("200 OK", "X: ")],
  ["no answer, and an end", (socket) => void socket.once("data", () => socket.end())],
];
