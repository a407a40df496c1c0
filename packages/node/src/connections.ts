import type { ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** The connections of a port. When the port closes, answers are completed and idle clients are not waited for. */
export class Connections {
  /** Every accepted connection, also during its TLS handshake. */
  readonly #accepted = new Set<Socket>();
  /** Connections of HTTP/1.1, or of a version not yet known, each with its number of unanswered requests. */
  readonly #open = new Map<Socket, number>();
  /** Connections of HTTP/2. */
  readonly #sessions = new Map<ServerHttp2Session, Socket>();
  /** Connections that have changed to another protocol. */
  readonly #released = new Set<Socket>();
  readonly #forget: (this: Socket) => void;
  readonly #onAnswered: (this: ServerResponse) => void;
  #last = false;
  #draining = false;

  constructor() {
    const accepted = this.#accepted;
    const open = this.#open;
    const released = this.#released;
    // One function for all: a closure takes two hundred bytes for each connection, `once` four hundred.
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

  /** Whether connections close after their next answer. */
  get last(): boolean {
    return this.#last;
  }

  /** Adds a connection that was accepted. */
  accept(socket: Socket): void {
    this.#accepted.add(socket);
    socket.on("close", this.#forget);
  }

  /** The connection, or its TLS socket, can be read. Also for a released connection that continues with HTTP. */
  open(socket: Socket): void {
    if (this.#released.delete(socket)) {
      this.#open.set(socket, 0);
      return;
    }
    this.#open.set(socket, 0);
    if (!this.#accepted.has(socket)) socket.on("close", this.#forget);
    if (this.#draining) socket.destroy();
  }

  /** The connection speaks HTTP/2. */
  upgrade(socket: Socket, session: ServerHttp2Session): void {
    this.#open.delete(socket);
    this.#sessions.set(session, socket);
    session.on("close", () => this.#sessions.delete(session));
  }

  /** The connection has changed to another protocol. The binding that took it over closes it. */
  release(socket: Socket): void {
    this.#open.delete(socket);
    this.#released.add(socket);
  }

  /** Counts a request of HTTP/1.1 until its answer is sent. */
  owe(response: ServerResponse): void {
    const { socket } = response.req;
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1);
    response.on("close", this.#onAnswered);
  }

  #answered(socket: Socket): void {
    const owed = this.#open.get(socket);
    if (owed === undefined) return;
    this.#open.set(socket, owed - 1);
    if (this.#last && owed === 1) socket.destroy();
  }

  /**
   * Closes idle connections, and tells clients of HTTP/2 to use another connection for further requests (GOAWAY). New connections get one
   * answer: probes have to learn that the server closes, and that its process still works.
   */
  retire(): void {
    this.#last = true;
    this.#closeIdle();
  }

  /** The same, and new connections get nothing. */
  drain(): void {
    this.#last = true;
    this.#draining = true;
    this.#closeIdle();
  }

  #closeIdle(): void {
    for (const [socket, owed] of this.#open) if (owed === 0) socket.destroy();
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Waits up to `timeout` milliseconds for answers that are being sent, then closes everything. */
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
    // A session closes before its last bytes are sent, and then waits for its client to close.
    return (
      [...this.#open.values()].some((owed) => owed > 0) ||
      [...this.#sessions.values()].some((socket) => !socket.writableFinished) ||
      this.#released.size > 0
    );
  }
}
