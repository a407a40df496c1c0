import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import type { UniversalHandler } from "@parley/a2a/protocol";
import { nodeListener, type HttpOptions } from "../../src/http/listener.ts";

export interface TestHost extends AsyncDisposable {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
}

/** Serves a handler on a free port. The port and its connections are closed when the test ends. */
export async function host(handle: UniversalHandler, options: HttpOptions = {}): Promise<TestHost> {
  const server = createServer(nodeListener(handle, options));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A client that sends raw bytes, for requests that no HTTP client would send. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  text = "";
  closed = false;
  #waiting: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      this.text += chunk;
      this.#wake();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
      this.#wake();
    });
  }

  static async to(port: number): Promise<RawClient> {
    const socket = connect(port, "127.0.0.1");
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return new RawClient(socket);
  }

  /** Waits until the received text satisfies `done`. Fails if the connection ends earlier. */
  async until(done: (text: string) => boolean): Promise<string> {
    while (!done(this.text)) {
      if (this.closed) throw new Error(`The connection ended with:\n${this.text}`);
      await this.#change();
    }
    return this.text;
  }

  async ended(): Promise<string> {
    while (!this.closed) await this.#change();
    return this.text;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** Returns a promise and the functions that settle it. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}
