import { type AddressInfo, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";

/** Starts HTTP/1.1 servers that send invalid or endless responses. */

export interface HostileServer extends AsyncDisposable {
  readonly url: string;
  /** Returns the number of open connections. */
  open(): number;
}

export type Misbehave = (socket: Socket) => void;

/** Starts a server that calls `misbehave` for each connection when a request starts to arrive. */
export async function hostile(misbehave: Misbehave): Promise<HostileServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.once("data", () => {
      socket.resume();
      misbehave(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: () => sockets.size,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const says =
  (text: string): Misbehave =>
  (socket) =>
    void socket.end(text, "latin1");

/** Writes pieces as long as the client keeps reading. */
function endless(socket: Socket, piece: string | Uint8Array): void {
  const more = (): void => {
    while (socket.writable && socket.write(piece));
  };
  socket.on("drain", more);
  more();
}

const body = "Content-Length: 2\r\nConnection: close\r\n\r\n{}";
const status = (line: string): Misbehave => says(`HTTP/1.1 ${line}\r\n${body}`);

/** Responses that end without an action of the caller. */
export const strange: readonly (readonly [string, Misbehave])[] = [
  ...[0, 1, 99, 100, 101, 102, 103, 199, 600, 799, 999].map(
    (code) => [`status ${code}`, status(`${String(code).padStart(3, "0")} Odd`)] as const,
  ),
  ["status 1000", status("1000 Odd")],
  ["status -1", status("-1 Odd")],
  ["no status", status("OK")],
  ["no reason", status("599")],
  ["a control character in its reason", status("500 O\x01\x02dd")],
  ["a NUL in its reason", status("500 O\0dd")],
  ["an invalid character in its reason", status("500 \xff\xfe\x7f")],
  ["a NUL in a header", says(`HTTP/1.1 500 Odd\r\nX-Odd: a\0b\r\n${body}`)],
  ["a header without a name", says(`HTTP/1.1 500 Odd\r\n: x\r\n${body}`)],
  ["a header of a megabyte", says(`HTTP/1.1 500 Odd\r\nX-Odd: ${"x".repeat(1 << 20)}\r\n${body}`)],
  ["endless headers", (socket) => (socket.write("HTTP/1.1 500 Odd\r\n"), endless(socket, "X-Odd: x\r\n".repeat(100)))],
  [
    "an upgrade nobody asked for",
    (socket) => void socket.write("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: odd\r\n\r\n"),
  ],
  ["a reset before its answer", (socket) => void socket.resetAndDestroy()],
  ["an end before its answer", (socket) => void socket.end()],
  ["a reset within its head", (socket) => void socket.write("HTTP/1.1 200 O", () => socket.resetAndDestroy())],
  [
    "a reset within its body",
    (socket) =>
      void socket.write(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        () => void setImmediate(() => socket.resetAndDestroy()),
      ),
  ],
  [
    "a body shorter than announced",
    says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{}"),
  ],
  [
    "a body longer than announced",
    says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{}{}"),
  ],
  ["two lengths", says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}")],
  ["an invalid length", says("HTTP/1.1 200 OK\r\nContent-Length: lots\r\n\r\n{}")],
  ["an invalid chunk", says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")],
  [
    "a body that is not compressed as declared",
    says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"),
  ],
  ["another protocol", says("SSH-2.0-OpenSSH_9.9\r\n")],
  ["a redirect to nowhere", says("HTTP/1.1 302 Found\r\nLocation: http://[::\r\nContent-Length: 0\r\n\r\n")],
  ["a redirect to itself", says("HTTP/1.1 307 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")],
];

/** Zeros that are compressed to a thousandth of their size. */
const bomb = gzipSync(new Uint8Array(64 << 20), { level: 1 });

/** Responses that end only when they reach a limit of the caller. */
export const unending: readonly (readonly [string, Misbehave])[] = [
  ["silence", () => {}],
  ["a flood of interim answers", (socket) => endless(socket, "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100))],
  ["half a head", (socket) => void socket.write("HTTP/1.1 200 OK\r\nX-Odd")],
  [
    "a body that drips",
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999\r\n\r\n");
      const drip = setInterval(() => socket.write(" "), 5);
      socket.on("close", () => clearInterval(drip));
    },
  ],
  [
    "a body that never comes",
    (socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"),
  ],
  [
    "an endless body",
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
      endless(socket, new Uint8Array(64 << 10).fill(32));
    },
  ],
  [
    "a compressed body that expands",
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n");
      endless(socket, bomb);
    },
  ],
  [
    "a body for a status without one",
    (socket) => {
      socket.write("HTTP/1.1 205 Reset\r\nTransfer-Encoding: chunked\r\n\r\n");
      endless(socket, "5\r\nabcde\r\n".repeat(1_000));
    },
  ],
];
