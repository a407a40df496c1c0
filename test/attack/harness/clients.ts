import { defineAgent, memoryStore, serve, type Server } from "@parley/node";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import type { CallOutcome, CallSettings } from "../processes/client.ts";
import { Child } from "./child.ts";
import { staysSmall, type Attack } from "./withstand.ts";
import { keepAsking } from "./witness.ts";

/** A client in a separate process. */
export interface AttackedClient {
  call(what: "send" | "stream" | "dawdle", url: string, settings?: CallSettings): Promise<CallOutcome>;
  leave(): Promise<void>;
  /** Expects that the client stays alive, that its other calls are answered during the attack, and that it holds no more memory afterwards. */
  withstands(attack: Attack): Promise<void>;
}

const friendly = defineAgent({
  name: "Friendly",
  description: "Answers",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply("Hello"),
});

/** Starts a client for each test, and a server for the clients' other calls. */
export function clients(): () => Promise<AttackedClient> {
  let server: Server;
  const children: Child[] = [];
  beforeAll(async () => {
    server = await serve(friendly, { port: 0, signals: false, store: memoryStore() });
  });
  afterAll(() => server.close({ grace: 0 }));
  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.kill()));
  });
  return async () => {
    const child = new Child("client.ts", {});
    children.push(child);
    await child.greeting;
    return {
      call: async (what, url, settings = {}) => (await child.ask(what, url, settings)) as CallOutcome,
      leave: async () => void (await child.ask("leave")),
      async withstands(attack) {
        const other = keepAsking(async () => {
          expect(await child.ask("send", server.url)).toEqual({ result: "Hello" });
        });
        try {
          await staysSmall(child, other, attack);
        } finally {
          await other.stop();
        }
      },
    };
  };
}
