import { Agent, request as send } from "node:http";

/** Sends raw requests over persistent connections, without checks or corrections. */

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export class Client {
  sent = 0;
  readonly #agent: Agent;
  readonly #port: number;

  constructor(port: number, connections: number) {
    this.#port = port;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** Rejects if no complete response arrives within 20 s. */
  request({ method, path, headers, body = "" }: Request): Promise<Answer> {
    this.sent += 1;
    return new Promise((resolve, reject) => {
      const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
      const outgoing = send(
        {
          host: "127.0.0.1",
          port: this.#port,
          agent: this.#agent,
          method,
          path,
          headers: { ...headers, ...(!("transfer-encoding" in headers) && length > 0 && { "content-length": length }) },
          timeout: 20_000,
        },
        (incoming) => {
          let text = "";
          incoming.setEncoding("utf8");
          incoming.on("data", (chunk: string) => (text += chunk));
          incoming.on("end", () => {
            resolve({ status: incoming.statusCode ?? 0, type: incoming.headers["content-type"] ?? "", body: text });
          });
          incoming.on("error", reject);
        },
      );
      outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer to ${method} ${path}`)));
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
