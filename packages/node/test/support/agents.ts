import { defineAgent, type Agent } from "@parley/server";
import { deferred } from "./host.ts";

const words = {
  version: "1.0.0",
  skills: [{ id: "echo", name: "Echo", description: "Says it again.", tags: ["test"] }],
};

/** Creates an agent that answers with the message's text, as a task with an artifact. */
export function echoAgent(name = "Echo"): Agent {
  return defineAgent({
    ...words,
    name,
    description: "Says it again.",
    async *onMessage(turn) {
      yield turn.working();
      yield turn.artifact({ artifactId: "echo", parts: [{ text: `${name}: ${turn.text}` }] });
    },
  });
}

/** Creates an agent that starts a task, and ends the task once the test calls `finish` or the server stops. */
export function slowAgent(): { agent: Agent; begun: Promise<void>; finish: () => void; aborted: Promise<void> } {
  const begun = deferred();
  const end = deferred();
  const aborted = deferred();
  const agent = defineAgent({
    ...words,
    name: "Slow",
    description: "Takes its time.",
    mayReplyDirectly: false,
    async *onMessage(turn) {
      turn.signal.addEventListener("abort", () => aborted.resolve());
      yield turn.working("Began");
      begun.resolve();
      await Promise.race([end.promise, aborted.promise]);
      yield turn.artifact({ artifactId: "slow", parts: [{ text: "done" }] });
    },
  });
  return { agent, begun: begun.promise, finish: end.resolve, aborted: aborted.promise };
}
