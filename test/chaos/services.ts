import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { StreamResponse } from "@parley/a2a";
import { random } from "../crash/plan.ts";
import { digest, type Delivered, type Effect } from "./history.ts";

/** The services that the cluster calls: one with side effects, and a receiver of webhooks. Both services record the requests. */
export interface Services {
  /** The URL of the service with side effects. */
  readonly service: string;
  /** Returns the URL of a config's webhook. */
  hook(config: string): string;
  /** Makes the receiver accept every webhook from now on. */
  calm(): void;
  close(): Promise<void>;
}

/** Starts the services. One webhook in six is rejected, or accepted without an answer. */
export async function startServices(seed: number, note: (entry: Effect | Delivered) => void): Promise<Services> {
  const next = random(seed + 1);
  let calls = 0;
  let isCalm = false;
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    response.on("error", () => {});
    request
      .on("error", () => {})
      .on("end", () => {
        const at = Date.now();
        if (request.url === "/effects") {
          const call = (calls += 1);
          note({ type: "effect", at, call, ...(JSON.parse(body) as Omit<Effect, "type" | "at" | "call">) });
          setTimeout(() => response.end(String(call)), next() * 150);
        } else hooked(request, response, body);
      });
  });

  function hooked({ url, headers }: IncomingMessage, response: ServerResponse, body: string): void {
    const event = JSON.parse(body) as StreamResponse;
    const fate = isCalm ? 1 : next();
    // The receiver accepts the delivery, but the sender does not learn this, and repeats the delivery.
    const isLost = fate < 0.08;
    const taken = isLost || fate >= 0.16;
    note({
      type: "delivered",
      at: Date.now(),
      config: (url ?? "").slice("/hooks/".length),
      taskId: event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId ?? event.task?.id ?? "",
      sequence: Number(headers["parley-sequence"]),
      digest: digest(event),
      taken,
    });
    if (isLost) response.socket?.destroy();
    else response.writeHead(taken ? 204 : 503).end();
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    service: `${origin}/effects`,
    hook: (config) => `${origin}/hooks/${config}`,
    calm: () => (isCalm = true),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
