import type { Server } from "@parley/node";
import { WebSocket, type ClientOptions } from "ws";
import { subprotocol, type ServerFrame } from "../src/frames.ts";

/** Writes frames by hand, including ones that no well-behaved client sends. */
export class RawClient implements Disposable {
  readonly ws: WebSocket;
  readonly frames: ServerFrame[] = [];
  /** The code that the connection is closed with. */
  readonly closed: Promise<number>;
  #wake = (): void => {};

  private constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on("message", (data: Buffer) => {
      this.frames.push(JSON.parse(data.toString()) as ServerFrame);
      this.#wake();
    });
    ws.on("error", () => {});
    this.closed = new Promise((resolve) => ws.on("close", resolve));
  }

  static async to({ url }: Server, options: ClientOptions = {}): Promise<RawClient> {
    const ws = new WebSocket(`${url.replace("http", "ws")}/ws`, subprotocol, options);
    const client = new RawClient(ws);
    await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
    return client;
  }

  send(frame: object): void {
    this.ws.send(JSON.stringify(frame));
  }

  /** Waits for a frame. */
  async until(done: (frame: ServerFrame) => boolean): Promise<ServerFrame> {
    for (;;) {
      const found = this.frames.find(done);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  [Symbol.dispose](): void {
    this.ws.terminate();
  }
}
