import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Json } from "../acts/format.ts";
import { Changes, InvalidAnswer, parseJson } from "./stream.ts";

/** Receives the push notifications of one test. */
export interface Inbox {
  readonly url: string;
  /** Each is `{ method, headers, body }`. */
  readonly deliveries: readonly Json[];
  /** Resolves with true once `done()` is true, and with false when time is up or the run ends. */
  until(done: () => boolean, timeout: number): Promise<boolean>;
}

interface OpenInbox {
  readonly deliveries: Json[];
  readonly changes: Changes;
  /** Size of all deliveries so far. */
  bytes: number;
}

/** The runner's webhook receiver. It starts to listen when the first test needs it. */
export class Webhooks {
  readonly #public: URL | undefined;
  readonly #maxBytes: number;
  readonly #inboxes = new Map<string, OpenInbox>();
  #server: Promise<Server> | undefined;
  #closed = false;

  /**
   * @param address - Public URL of the receiver. Default: servers run on this machine.
   * @param maxBytes - Limit for all deliveries to one test. Above it, the receiver responds with 413.
   */
  constructor(address: string | undefined, maxBytes: number) {
    this.#public = address === undefined ? undefined : new URL(address);
    this.#maxBytes = maxBytes;
  }

  async open(): Promise<Inbox> {
    this.#server ??= this.#listen();
    const address = (await this.#server).address();
    const port = typeof address === "object" ? address?.port : undefined;
    const name = randomUUID();
    const inbox: OpenInbox = { deliveries: [], changes: new Changes(), bytes: 0 };
    this.#inboxes.set(`/${name}`, inbox);
    const base = this.#public === undefined ? `http://127.0.0.1:${port}` : this.#public.origin;
    return {
      url: `${base}/${name}`,
      deliveries: inbox.deliveries,
      until: async (done, timeout) => {
        await inbox.changes.until(() => done() || this.#closed, timeout);
        return done();
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { changes } of this.#inboxes.values()) changes.happened();
    const server = await this.#server?.catch(() => undefined);
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async #listen(): Promise<Server> {
    const server = createServer((request, response) => {
      void this.#take(request).then(
        (status) => response.writeHead(status).end(),
        // The sender closed the connection.
        () => response.destroy(),
      );
    });
    const [host, port] = this.#public === undefined ? ["127.0.0.1", 0] : [undefined, Number(this.#public.port || 80)];
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
    return server;
  }

  /** Stores a delivery. Returns the status of the response. */
  async #take(request: IncomingMessage): Promise<number> {
    const inbox = this.#inboxes.get(request.url ?? "");
    if (inbox === undefined) return 404;
    const chunks: Buffer[] = [];
    const body: AsyncIterable<Buffer> = request;
    for await (const chunk of body) {
      inbox.bytes += chunk.length;
      if (inbox.bytes > this.#maxBytes) return 413;
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString("utf8");
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    // Headers, and the record of a delivery without a body, use memory too.
    inbox.bytes += 200 + JSON.stringify(headers).length;
    inbox.deliveries.push({ method: request.method ?? "", headers, body: bodyOf(text) });
    inbox.changes.happened();
    return 200;
  }
}

/** The body as JSON, or else as text: the assertion on the body reports it. */
function bodyOf(text: string): Json {
  try {
    return parseJson(text) ?? text;
  } catch (error) {
    if (error instanceof InvalidAnswer) return text;
    throw error;
  }
}
