import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Passes bytes on, until it cuts all connections. */
export class Proxy implements AsyncDisposable {
  target = 0;
  cuts = 0;
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (socket) => {
      const other = connect(this.target, "127.0.0.1");
      for (const each of [socket, other]) {
        this.#sockets.add(each);
        each.on("error", () => {}).on("close", () => this.#sockets.delete(each));
      }
      socket.pipe(other).pipe(socket);
    });
  }

  static async open(): Promise<Proxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Proxy(server);
  }

  cut(): void {
    this.cuts++;
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
