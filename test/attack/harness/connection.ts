import { connect, type Socket } from "node:net";

/** A TCP connection that sends arbitrary bytes, and reads the response. */
export class Connection {
  readonly socket: Socket;
  /** Whether the connection has ended. Either side may end it. */
  over = false;
  readonly #changed = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("close", () => {
      this.over = true;
      this.wake();
    });
    socket.on("end", () => this.wake());
    socket.on("drain", () => this.wake());
  }

  static async to(port: number): Promise<Connection> {
    const socket = connect(port, "127.0.0.1");
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return new Connection(socket);
  }

  /** Sends bytes, and waits until the other side has read all of them or has ended the connection. */
  async send(bytes: string | Uint8Array): Promise<void> {
    if (this.over || this.socket.write(bytes)) return;
    await this.until(() => !this.socket.writableNeedDrain);
  }

  /** Waits until the condition holds, or until the connection has ended. */
  until(done: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!done() && !this.over) return;
        this.#changed.delete(look);
        resolve();
      };
      this.#changed.add(look);
      look();
    });
  }

  wake(): void {
    for (const look of this.#changed) look();
  }

  close(): void {
    this.socket.destroy();
  }
}

/** Returns the request line and headers of HTTP/1.1. */
export function head(path: string, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries({ host: "127.0.0.1", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}
