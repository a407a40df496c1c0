import type { ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/**
 * The connections of a port. A port closes in three steps: `tell` asks clients to use another connection, `retire` closes idle connections,
 * and `drain` accepts no more.
 */
export class Connections {
  /** Every accepted connection, even during its TLS handshake. */
  readonly #accepted = new Set<Socket>();
  /** Connections of HTTP/1.1, or of a version not yet known, each with its number of unanswered requests. */
  readonly #open = new Map<Socket, number>();
  /** Connections of HTTP/2. */
  readonly #sessions = new Map<ServerHttp2Session, Socket>();
  /** Connections that have changed to another protocol. */
  readonly #released = new Set<Socket>();
  /** Connections of either version that have made no request yet. */
  readonly #unused = new Set<Socket | ServerHttp2Session>();
  readonly #forget: (this: Socket) => void;
  readonly #onAnswered: (this: ServerResponse) => void;
  #last = false;
  #retired = false;
  #draining = false;
  #acceptedCount = 0;

  constructor() {
    const accepted = this.#accepted;
    const open = this.#open;
    const released = this.#released;
    const unused = this.#unused;
    // One listener for all connections: a closure would take two hundred bytes per connection, `once` four hundred.
    this.#forget = function (this: Socket): void {
      accepted.delete(this);
      open.delete(this);
      released.delete(this);
      unused.delete(this);
    };
    const answered = (socket: Socket): void => this.#answered(socket);
    this.#onAnswered = function (this: ServerResponse): void {
      answered(this.req.socket);
    };
  }

  /** Whether answers over HTTP/1.1 have `Connection: close`. */
  get last(): boolean {
    return this.#last;
  }

  /** Number of connections accepted so far. */
  get acceptedCount(): number {
    return this.#acceptedCount;
  }

  /** Whether any connection is still in its TLS handshake, or has made no request yet: its first request may be on the way. */
  get expectsRequest(): boolean {
    return this.#unused.size > 0 || this.#accepted.size > this.#open.size + this.#sessions.size + this.#released.size;
  }

  /** Adds a connection that was accepted. */
  accept(socket: Socket): void {
    this.#acceptedCount += 1;
    this.#accepted.add(socket);
    socket.on("close", this.#forget);
  }

  /** Call it when the connection, or its TLS socket, is ready for HTTP, even after a binding has returned it. */
  open(socket: Socket): void {
    if (this.#released.delete(socket)) {
      this.#open.set(socket, 0);
      return;
    }
    this.#open.set(socket, 0);
    this.#unused.add(socket);
    if (!this.#accepted.has(socket)) socket.on("close", this.#forget);
    if (this.#draining) socket.destroy();
  }

  /** Notes that the connection speaks HTTP/2. */
  upgrade(socket: Socket, session: ServerHttp2Session): void {
    this.#open.delete(socket);
    this.#unused.delete(socket);
    this.#sessions.set(session, socket);
    this.#unused.add(session);
    session.once("stream", () => {
      this.#unused.delete(session);
      if (this.#retired) session.close();
    });
    session.on("close", () => {
      this.#sessions.delete(session);
      this.#unused.delete(session);
    });
  }

  /** Notes that the connection has changed to another protocol. The binding that took it over closes it. */
  release(socket: Socket): void {
    this.#open.delete(socket);
    this.#unused.delete(socket);
    this.#released.add(socket);
  }

  /** Counts a request of HTTP/1.1 until its answer is sent. */
  owe(response: ServerResponse): void {
    const { socket } = response.req;
    this.#unused.delete(socket);
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1);
    response.on("close", this.#onAnswered);
  }

  #answered(socket: Socket): void {
    const owed = this.#open.get(socket);
    if (owed === undefined) return;
    this.#open.set(socket, owed - 1);
    if (this.#retired && owed === 1) socket.destroy();
  }

  /** From now on, answers of HTTP/1.1 ask clients to use another connection (`Connection: close`). Closes nothing itself. */
  tell(): void {
    this.#last = true;
  }

  /**
   * Closes idle connections, and tells clients of HTTP/2 to use another connection for further requests (GOAWAY). A connection that has
   * made no request yet closes after its first one, because a load balancer may already have assigned a client to it.
   */
  retire(): void {
    this.#last = true;
    this.#retired = true;
    for (const [socket, owed] of this.#open) if (owed === 0 && !this.#unused.has(socket)) socket.destroy();
    for (const session of this.#sessions.keys()) if (!this.#unused.has(session)) session.close();
  }

  /** Also closes connections that have made no request yet, and accepts no more. */
  drain(): void {
    this.#draining = true;
    this.#unused.clear();
    this.retire();
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
