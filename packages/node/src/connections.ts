import type { IncomingMessage, Server as HttpServer, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";

/** The connections of a server, so that it can stop without cutting an answer short and without waiting for idle clients. */
export class Connections {
  readonly #server: HttpServer;
  /** Every accepted connection, those that are still in a TLS handshake too. */
  readonly #accepted = new Set<Socket>();
  /** Those that speak HTTP, with how many requests each is owed an answer to. */
  readonly #open = new Map<Socket, number>();
  readonly #onAnswered: (this: ServerResponse) => void;
  #draining = false;

  constructor(server: HttpServer, tls: boolean) {
    this.#server = server;
    const accepted = this.#accepted;
    const open = this.#open;
    // One function for all: a listener of its own is two hundred bytes of each connection, one by `once` four hundred.
    const forget = function (this: Socket): void {
      accepted.delete(this);
      open.delete(this);
    };
    server.on("connection", (socket: Socket) => {
      accepted.add(socket);
      socket.on("close", forget);
    });
    server.on(tls ? "secureConnection" : "connection", (socket: Socket) => {
      open.set(socket, 0);
      if (tls) socket.on("close", forget);
    });
    const answered = (socket: Socket): void => this.#answered(socket);
    this.#onAnswered = function (this: ServerResponse): void {
      answered(this.req.socket);
    };
  }

  /** Whether no more connections are taken, and those that there are end with their next answer. */
  get draining(): boolean {
    return this.#draining;
  }

  /** Counts a request until its answer is out. */
  owe({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1);
    response.on("close", this.#onAnswered);
  }

  #answered(socket: Socket): void {
    const owed = this.#open.get(socket);
    if (owed === undefined) return;
    this.#open.set(socket, owed - 1);
    if (this.#draining && owed === 1) socket.destroy();
  }

  /** Stops listening, and closes what is idle. */
  drain(): void {
    this.#draining = true;
    // Not the server's own `close`: it destroys connections whose last answer is still on its way out.
    NetServer.prototype.close.call(this.#server);
    for (const [socket, owed] of this.#open) if (owed === 0) socket.destroy();
  }

  /** Waits up to `patience` milliseconds for answers that are on their way out, then closes everything. */
  async end(patience: number): Promise<void> {
    const closed = [...this.#accepted].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
    const owing = [...this.#open.values()].some((owed) => owed > 0);
    const timer = setTimeout(
      () => {
        for (const socket of this.#accepted) socket.destroy();
      },
      owing ? patience : 0,
    );
    await Promise.all(closed);
    clearTimeout(timer);
    // Lets go of the timer that the server checks headers with; that it does not listen any more is no news.
    this.#server.close(() => {});
  }
}
