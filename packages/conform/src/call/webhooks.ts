import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json } from "../acts/format.ts";
import { Changes, InvalidAnswer, parseJson } from "./stream.ts";

/** Where one test gets its push notifications. */
export interface Inbox {
  readonly url: string;
  /** What came, as `{ method, headers, body }`. */
  readonly deliveries: readonly Json[];
  /** Resolves with true once `done` holds, and with false when the time is up or the run is over. */
  until(done: () => boolean, timeout: number): Promise<boolean>;
}

/** An inbox as the receiver sees it. */
interface OpenInbox {
  readonly deliveries: Json[];
  readonly changes: Changes;
  /** Of all deliveries so far. */
  bytes: number;
}

/** The runner's own webhook receiver. It listens once the first test asks for an address. */
export class Webhooks {
  readonly #public: URL | undefined;
  readonly #maxBytes: number;
  readonly #inboxes = new Map<string, OpenInbox>();
  #server: Promise<Server> | undefined;
  #closed = false;

  /**
   * @param address - How servers reach this machine; absent: they run on it.
   * @param maxBytes - Limit of all deliveries to one test; anything beyond is answered with 413.
   */
  constructor(address: string | undefined, maxBytes: number) {
    this.#public = address === undefined ? undefined : new URL(address);
    this.#maxBytes = maxBytes;
  }

  async open(): Promise<Inbox> {
    this.#server ??= this.#listen();
    const { port } = (await this.#server).address() as AddressInfo;
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
        // The sender broke off.
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

  /** Keeps a delivery; gives the status of the answer. */
  async #take(request: IncomingMessage): Promise<number> {
    const inbox = this.#inboxes.get(request.url ?? "");
    if (inbox === undefined) return 404;
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) {
      inbox.bytes += chunk.length;
      if (inbox.bytes > this.#maxBytes) return 413;
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString("utf8");
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    // Each delivery also costs what its headers and the record of it take.
    inbox.bytes += overhead + JSON.stringify(headers).length;
    inbox.deliveries.push({ method: request.method ?? "", headers, body: bodyOf(text) });
    inbox.changes.happened();
    return 200;
  }
}

/** Of a delivery without a body, in bytes. */
const overhead = 200;

/** The delivery as JSON, or as the text that it is: the assertion on the body shows what came. */
function bodyOf(text: string): Json {
  try {
    return parseJson(text) ?? text;
  } catch (error) {
    if (error instanceof InvalidAnswer) return text;
    throw error;
  }
}
