import type { ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** The connections of a port, so that it can stop without cutting an answer short and without waiting for idle clients. */
export class Connections {
  /** Every accepted connection, those that are still in a TLS handshake too. */
  readonly #accepted = new Set<Socket>();
  /** Those that speak HTTP/1.1, or have not said yet what they speak, with how many requests each is owed an answer to. */
  readonly #open = new Map<Socket, number>();
  /** Those that speak HTTP/2. */
  readonly #sessions = new Map<ServerHttp2Session, Socket>();
  /** Those that speak another protocol. */
  readonly #released = new Set<Socket>();
  readonly #forget: (this: Socket) => void;
  readonly #onAnswered: (this: ServerResponse) => void;
  #draining = false;

  constructor() {
    const accepted = this.#accepted;
    const open = this.#open;
    const released = this.#released;
    // One function for all: a listener of its own is two hundred bytes of each connection, one by `once` four hundred.
    this.#forget = function (this: Socket): void {
      accepted.delete(this);
      open.delete(this);
      released.delete(this);
    };
    const answered = (socket: Socket): void => this.#answered(socket);
    this.#onAnswered = function (this: ServerResponse): void {
      answered(this.req.socket);
    };
  }

  /** Whether those that there are end with their next answer. */
  get draining(): boolean {
    return this.#draining;
  }

  /** A connection as the system gives it. */
  accept(socket: Socket): void {
    this.#accepted.add(socket);
    socket.on("close", this.#forget);
  }

  /** The same, or what TLS made of it, when it can be read; or one that was released, and speaks HTTP after all. */
  open(socket: Socket): void {
    if (this.#released.delete(socket)) {
      this.#open.set(socket, 0);
      return;
    }
    this.#open.set(socket, 0);
    if (!this.#accepted.has(socket)) socket.on("close", this.#forget);
    if (this.#draining) socket.destroy();
  }

  /** The same when it turned out to speak HTTP/2. */
  upgrade(socket: Socket, session: ServerHttp2Session): void {
    this.#open.delete(socket);
    this.#sessions.set(session, socket);
    session.on("close", () => this.#sessions.delete(session));
  }

  /** The same when it speaks HTTP no more: who took it over ends it. */
  release(socket: Socket): void {
    this.#open.delete(socket);
    this.#released.add(socket);
  }

  /** Counts a request over HTTP/1.1 until its answer is out. */
  owe(response: ServerResponse): void {
    const { socket } = response.req;
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1);
    response.on("close", this.#onAnswered);
  }

  #answered(socket: Socket): void {
    const owed = this.#open.get(socket);
    if (owed === undefined) return;
    this.#open.set(socket, owed - 1);
    if (this.#draining && owed === 1) socket.destroy();
  }

  /** Closes what is idle, and tells HTTP/2 clients to go elsewhere with what they ask next (GOAWAY). */
  drain(): void {
    this.#draining = true;
    for (const [socket, owed] of this.#open) if (owed === 0) socket.destroy();
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Waits up to `timeout` milliseconds for answers that are on their way out, then closes everything. */
  async end(timeout: number): Promise<void> {
    const closed = [...this.#accepted].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
    const timer = setTimeout(
      () => {
        for (const socket of this.#accepted) socket.destroy();
      },
      this.#owing() ? timeout : 0,
    );
    await Promise.all(closed);
    clearTimeout(timer);
  }

  #owing(): boolean {
    // A session is over before the last of its bytes are out, and then waits for its peer to close as well.
    return (
      [...this.#open.values()].some((owed) => owed > 0) ||
      [...this.#sessions.values()].some((socket) => !socket.writableFinished) ||
      this.#released.size > 0
    );
  }
}
