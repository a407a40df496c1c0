import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { data, defineAgent, silentLogger, systemClock, type Store } from "@parley/server";
import type { AgentService, Clock } from "@parley/a2a/protocol";
import { connect, serve, type JsonValue, type ServeOptions } from "@parley/node";
import { bearer } from "@parley/a2a/auth";
import { bindings, names, versions, type Call, type Name } from "./program.ts";

/* A server with a real store, two principals who reach it over every binding, and the receiver of their webhooks. */

/** What only its sender may ever see. */
export const marks: Readonly<Record<Name, string>> = { ada: "mark-of-ada-7f3c", bob: "mark-of-bob-91d2" };

/** Says what it knows: the conversation, its state, who asks, and what the message refers to. */
const agent = defineAgent({
  name: "Gossip",
  description: "Says all that it knows",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    const said = (await turn.context.history()).map(({ text }) => text);
    const before = turn.context.state<JsonValue[]>() ?? [];
    turn.context.setState([...before, turn.text]);
    const what = turn.text.split(" ")[0];
    const { referenceTaskIds = [] } = turn.message;
    const known = { said, before, subject: turn.principal.subject, refersTo: [...referenceTaskIds] };
    if (what === "reply" && turn.task === undefined) return turn.reply([data(known)]);
    yield turn.artifact({ parts: [data(known)] });
    if (what === "ask") yield turn.inputRequired("which one?");
    if (what === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    return undefined;
  },
});

/** Never the same time twice, so that lists have one order. */
function risingClock(): Clock {
  let last = 0;
  return { ...systemClock, now: () => (last = Math.max(last + 1, Date.now())) };
}

/** What a webhook got. */
export interface Delivery {
  readonly path: string;
  readonly body: string;
}

export interface World {
  readonly store: Store;
  service(call: Pick<Call, "by" | "binding" | "version">): AgentService;
  /** The address of a webhook. */
  hook(by: Name, id: number): string;
  readonly deliveries: readonly Delivery[];
  close(): Promise<void>;
}

async function receiver(): Promise<{ readonly url: string; readonly deliveries: Delivery[]; close(): Promise<void> }> {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      deliveries.push({ path: request.url ?? "", body });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    deliveries,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Opens a world on a store, which it closes. */
export async function openWorld(store: Store, options: Pick<ServeOptions, "ownerOf"> = {}): Promise<World> {
  const hooks = await receiver();
  const server = await serve(agent, {
    port: 0,
    signals: false,
    grpc: true,
    store,
    clock: risingClock(),
    logger: silentLogger,
    authenticator: bearer({ "ada-token": { subject: "ada" }, "bob-token": { subject: "bob" } }),
    push: { keys: [btoa("k".repeat(32))], net: { allowLoopback: true } },
    pollInterval: 50,
    // Concurrent calls must not depend on how fast the machine is.
    directReplyWithin: 3_600_000,
    ...options,
  });
  const services = new Map<string, AgentService>();
  for (const by of names) {
    for (const binding of bindings) {
      for (const version of versions) {
        const headers = { authorization: `Bearer ${by}-token` };
        const { service } = await connect(server.url, { binding, version, headers });
        services.set(`${by} ${binding} ${version}`, service);
      }
    }
  }
  return {
    store,
    deliveries: hooks.deliveries,
    service: ({ by, binding, version }) => services.get(`${by} ${binding} ${version}`) as AgentService,
    hook: (by, id) => `${hooks.url}/${by}/${id}`,
    async close() {
      await server.close({ grace: 0 });
      await store.close();
      await hooks.close();
    },
  };
}
