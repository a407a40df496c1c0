import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InterceptingCall, type Interceptor } from "@grpc/grpc-js";
import { A2AError, defineAgent, text, type AgentMount, type Interceptor as ServerInterceptor } from "@parley/server";
import type { ProtocolVersion } from "@parley/a2a/internal/wires";
import { bearer } from "@parley/a2a/auth";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, beforeAll, expect } from "vitest";

/** The servers that the official clients call. Each agent is at the root, because 0.3 gRPC supports neither paths nor tenants. */

const agent = defineAgent({
  name: "Counter",
  description: "Counts",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    if (turn.text === "hello") return turn.reply("Hello");
    if (turn.text === "ask") return yield turn.inputRequired("How far?");
    yield turn.working("Counting");
    yield turn.artifact({ artifactId: "numbers", parts: [text("0")], open: true });
    if (turn.text === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    for (let n = 1; n < Number(turn.text); n += 1) yield turn.append("numbers", [text(String(n))]);
    return undefined;
  },
});

/** Breaks a stream after its first event, if a message asks for it. */
const breaking: ServerInterceptor = (next) => ({
  call: (operation, request, context) => next.call(operation, request, context),
  stream: async (operation, request, context) => {
    const reply = await next.stream(operation, request, context);
    if (!JSON.stringify(request).includes('"break"')) return reply;
    return {
      batches: (async function* () {
        for await (const batch of reply.batches) {
          yield batch.slice(0, 1);
          throw new A2AError("InvalidAgentResponse", "Nonsense came");
        }
      })(),
    };
  },
});

const authorization = "Bearer ada-token";

/** A `fetch` with Ada's credentials. */
export const fetchAsAda: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("Authorization", authorization);
  return fetch(input, { ...init, headers });
};

/** Adds the same credentials to every call of grpc-js. */
export const asAda: Interceptor = (options, next) =>
  new InterceptingCall(next(options), {
    start(metadata, listener, begin) {
      metadata.set("authorization", authorization);
      begin(metadata, listener);
    },
  });

export interface Counting {
  readonly url: string;
  /** The same agent, with a separate card for its callers. */
  readonly extendedUrl: string;
}

/** Serves during the tests of a file. */
export function counting(versions?: readonly ProtocolVersion[]): () => Counting {
  const stops: (() => Promise<void>)[] = [];
  const open = async (mount: AgentMount): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), "parley-official-"));
    const store = await sqliteStore({ path: join(folder, "tasks.db") });
    const authenticator = bearer({ "ada-token": { subject: "ada" } });
    const server = await serve([mount], {
      port: 0,
      grpc: true,
      signals: false,
      logger: false,
      store,
      authenticator,
      interceptors: [breaking],
      ...(versions !== undefined && { versions }),
    });
    stops.push(async () => {
      await server.close({ grace: 0 });
      await store.close();
      await rm(folder, { recursive: true });
    });
    return server.url;
  };
  let servers: Counting | undefined;
  beforeAll(async () => {
    servers = {
      url: await open({ agent }),
      extendedUrl: await open({
        agent,
        extendedCard: (card, { subject }) => ({ ...card, description: `For ${subject} alone` }),
      }),
    };
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
  });
  return () => servers ?? expect.fail("Nothing is served yet");
}
