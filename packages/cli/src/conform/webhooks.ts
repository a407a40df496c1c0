import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json } from "./format.ts";

/** Where one test gets its push notifications. */
export interface Inbox {
  readonly url: string;
  /** What came, as `{ method, headers, body }`. */
  readonly deliveries: readonly Json[];
  /** Resolves with true once `done` holds, and with false when the time is up. */
  until(done: () => boolean, timeout: number): Promise<boolean>;
}

/** The runner's own webhook receiver. It listens once the first test asks for an address. */
export class Webhooks {
  readonly #public: URL | undefined;
  readonly #inboxes = new Map<string, { readonly deliveries: Json[]; readonly waiting: Set<() => void> }>();
  #server: Promise<Server> | undefined;

  /** @param address - How servers elsewhere reach this machine; absent: they are on it. */
  constructor(address: string | undefined) {
    this.#public = address === undefined ? undefined : new URL(address);
  }

  async open(): Promise<Inbox> {
    this.#server ??= this.#listen();
    const { port } = (await this.#server).address() as AddressInfo;
    const name = randomUUID();
    const inbox = { deliveries: [] as Json[], waiting: new Set<() => void>() };
    this.#inboxes.set(`/${name}`, inbox);
    const base = this.#public === undefined ? `http://127.0.0.1:${port}` : this.#public.origin;
    return {
      url: `${base}/${name}`,
      deliveries: inbox.deliveries,
      async until(done, timeout) {
        const deadline = performance.now() + timeout;
        while (!done()) {
          const left = deadline - performance.now();
          if (left <= 0) return false;
          await new Promise<void>((resolve) => {
            const wake = (): void => {
              clearTimeout(timer);
              inbox.waiting.delete(wake);
              resolve();
            };
            const timer = setTimeout(wake, left);
            inbox.waiting.add(wake);
          });
        }
        return true;
      },
    };
  }

  async close(): Promise<void> {
    const server = await this.#server;
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async #listen(): Promise<Server> {
    const server = createServer((request, response) => {
      void this.#take(request).then((status) => response.writeHead(status).end());
    });
    const [host, port] = this.#public === undefined ? ["127.0.0.1", 0] : [undefined, Number(this.#public.port || 80)];
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
    return server;
  }

  async #take(request: IncomingMessage): Promise<number> {
    const inbox = this.#inboxes.get(request.url ?? "");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (inbox === undefined) return 404;
    const text = Buffer.concat(chunks).toString("utf8");
    let body: Json = text;
    try {
      body = JSON.parse(text) as Json;
    } catch {
      // The assertion on the body shows what came.
    }
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    inbox.deliveries.push({ method: request.method ?? "", headers, body });
    for (const wake of inbox.waiting) wake();
    return 200;
  }
}
