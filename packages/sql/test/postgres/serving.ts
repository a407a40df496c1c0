import { createHandler, defineAgent, type Store } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";

/** A server on a store, as probes see it. */
export interface Probed {
  /** The status and body of `/readyz`. */
  ready(): Promise<readonly [number, string]>;
  close(): Promise<void>;
}

export function probed(store: Store, logger?: Logger): Probed {
  const agent = defineAgent({
    name: "Echo",
    description: "Says it again.",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply(turn.text),
  });
  const publicUrl = "http://agent.example";
  const handler = createHandler(agent, { store, publicUrl, health: true, ...(logger && { logger }) });
  return {
    async ready() {
      const answer = await handler.fetch(new Request(`${publicUrl}/readyz`));
      return [answer.status, await answer.text()];
    },
    close: () => handler.close({ grace: 0 }),
  };
}
