import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { A2AError, bearer, defineAgent, text, type Interceptor } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, beforeAll } from "vitest";

/** The server that the official clients call: at `/plain`, at `/extended` with a card for its callers, at `/breaking`. */

const agent = defineAgent({
  name: "Counter",
  description: "Counts",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    if (turn.text === "hello") return turn.reply("Hello");
    if (turn.text === "ask") return yield turn.inputRequired("How far?");
    yield turn.working("Counting");
    yield { kind: "artifact", artifact: { artifactId: "numbers", parts: [text("0")] } };
    if (turn.text === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    for (let n = 1; n < Number(turn.text); n += 1) yield turn.append("numbers", [text(String(n))]);
    return undefined;
  },
});

/** Breaks a stream off after its first event, where a message asks for it. */
const breaking: Interceptor = (next) => ({
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

/** The fetch of a client that is known here. */
export const fetchAsAda: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("Authorization", authorization);
  return fetch(input, { ...init, headers });
};

/** Serves while the tests of a file run; gives the URL. */
export function counting(): () => string {
  let stop: (() => Promise<void>) | undefined;
  let server: Server;
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-official-"));
    const store = await sqliteStore({ path: join(folder, "tasks.db") });
    server = await serve(
      [
        { agent, path: "/plain" },
        {
          agent,
          path: "/extended",
          extendedCard: (card, { subject }) => ({ ...card, description: `For ${subject} alone` }),
        },
      ],
      {
        port: 0,
        signals: false,
        store,
        authenticator: bearer({ "ada-token": { subject: "ada" } }),
        interceptors: [breaking],
      },
    );
    stop = async () => {
      await server.close({ grace: 0 });
      await store.close();
      await rm(folder, { recursive: true });
    };
  });
  afterAll(() => stop?.());
  return () => server.url;
}
