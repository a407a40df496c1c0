import { setTimeout as pause } from "node:timers/promises";
import { defineAgent, type Agent } from "@parley/server";

export interface Tck03Options {
  /** How long a task works, in milliseconds, so that the kit finds it working. */
  readonly hold?: number;
  /** The same for the test that subscribes a second time: twice the kit's stream timeout. */
  readonly longHold?: number;
}

/** Messages of the kit that expect a request for authorization. */
const foreignAccount = /my (?:email|google drive|calendar|banking)|authenticate with external service/i;

/** The agent under test for the 0.3 kit: it works for some seconds on any message, then asks for input. */
export function tck03({ hold = 3_000, longHold = 4_000 }: Tck03Options = {}): Agent {
  return defineAgent({
    name: "Agent under test",
    description: "Does what the kit for A2A 0.3 wants of the agent that it tests.",
    version: "1.0.0",
    skills: [
      { id: "kit", name: "Kit", description: "Works for some seconds and asks for more.", tags: ["conformance"] },
    ],
    defaultInputModes: ["text/plain", "application/json", "application/octet-stream", "image/*"],
    defaultOutputModes: ["text/plain"],
    mayReplyDirectly: false,
    async *onMessage(turn) {
      if (foreignAccount.test(turn.text)) {
        yield turn.authRequired("Log in to that service first.");
        return;
      }
      yield turn.working("On it");
      const again = turn.message.messageId.startsWith("test-resubscribe-message-id");
      await pause(again ? longHold : hold, undefined, { signal: turn.signal });
      yield turn.inputRequired("What next?");
    },
  });
}
