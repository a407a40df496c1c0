import { createServer, connect as connectTcp, type AddressInfo, type Socket } from "node:net";
import { connect, type AgentCard, type ConnectOptions } from "@parley/a2a";
import { defineAgent, memoryStore } from "@parley/server";
import { watchContract, type WatchUnderTest } from "@parley/testing";
import { describe, expect, it } from "vitest";
import { serve } from "../src/index.ts";

/** Tests watched tasks over real sockets that break. */

/** Starts a proxy whose connections a test can break. */
async function proxyTo(port: number) {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return socket.destroy();
    const upstream = connectTcp(port, "127.0.0.1");
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(one);
      one.on("error", () => {}).on("close", () => (sockets.delete(one), other.destroy()));
      one.pipe(other);
    }
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const drop = (): void => sockets.forEach((socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    drop,
    cut(value: boolean) {
      isCut = value;
      if (value) drop();
    },
    close: () => (drop(), new Promise((resolve) => server.close(resolve))),
  };
}

/** The agent's commands, in order. */
class Script {
  readonly #steps: (readonly [string, string] | "complete")[] = [];
  #wake = (): void => {};

  add(step: readonly [string, string] | "complete"): void {
    this.#steps.push(step);
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (let at = 0; ; at += 1) {
      while (at === this.#steps.length) await new Promise<void>((resolve) => (this.#wake = resolve));
      const step = this.#steps[at];
      if (step === undefined || step === "complete") return;
      yield step;
    }
  }
}

function scripted(script: Script) {
  return defineAgent({
    name: "Scripted",
    description: "Does what it is told.",
    version: "1.0.0",
    skills: [],
    mayReplyDirectly: false,
    async *onMessage(turn) {
      yield turn.working();
      const made = new Set<string>();
      for await (const [artifactId, text] of script) {
        yield { kind: "artifact", artifact: { artifactId, parts: [{ text }] }, append: made.has(artifactId) } as const;
        made.add(artifactId);
        await turn.flush();
      }
    },
  });
}

/** Counts the open event streams of a client. */
function counting() {
  let open = 0;
  const counted: ConnectOptions["fetch"] = async (url, init) => {
    const response = await fetch(url, init);
    const { body } = response;
    if (body === null || response.headers.get("content-type")?.startsWith("text/event-stream") !== true)
      return response;
    open += 1;
    const reader = body.getReader();
    let over = (): void => {
      open -= 1;
      over = () => {};
    };
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const { done, value } = await reader.read();
            if (!done) return controller.enqueue(value);
            over();
            controller.close();
          } catch (thrown) {
            over();
            throw thrown;
          }
        },
        cancel: (reason) => (over(), reader.cancel(reason)),
      },
      { highWaterMark: 0 },
    );
    return new Response(stream, response);
  };
  return { fetch: counted, openStreams: () => open };
}

async function open(binding: string, asStranger: boolean): Promise<WatchUnderTest> {
  const script = new Script();
  const server = await serve(scripted(script), { port: 0, store: memoryStore() });
  const proxy = await proxyTo(Number(new URL(server.url).port));
  const { fetch, openStreams } = counting();
  const quick = { budget: 800, minDelay: 5, maxDelay: 20 };
  const plain = await connect(server.url);
  const card = {
    ...plain.card,
    supportedInterfaces: plain.card.supportedInterfaces.map((each) => ({
      ...each,
      url: each.url.replace(/:\d+/, `:${proxy.port}`),
    })),
    ...(asStranger && { capabilities: { streaming: true } }),
  } satisfies AgentCard;
  const client = await connect(card, { binding, fetch, retry: quick, reconnect: quick });
  const { task } = await plain.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
  return {
    watched: client.watch(task?.id ?? ""),
    append: (artifactId, text) => script.add([artifactId, text]),
    complete: () => script.add("complete"),
    disconnect: () => proxy.drop(),
    cutOff: () => proxy.cut(true),
    reconnect: () => proxy.cut(false),
    openStreams,
    async close() {
      script.add("complete");
      await proxy.close();
      await server.close();
    },
  };
}

describe.each(["JSONRPC", "HTTP+JSON"])("over %s", (binding) => {
  watchContract({ describe, it, expect }, { open: () => open(binding, false) });
});

describe("of an agent that cannot replay", () => {
  watchContract({ describe, it, expect }, { open: () => open("JSONRPC", true) });
});
