import { createHandler, defineAgent, memoryStore, type Agent, type Handler } from "@parley/server";

/** An agent that counts up to the number in the message, with one chunk per number. All runtimes serve the same agent. */
export const countingAgent: Agent = defineAgent({
  name: "Counter",
  description: "Counts.",
  version: "1.0.0",
  skills: [{ id: "count", name: "Count", description: "Counts to a number.", tags: ["test"] }],
  async *onMessage(turn) {
    const last = Number(turn.text);
    if (!Number.isInteger(last)) return turn.reply("Which number?");
    yield turn.working("Counting");
    yield turn.artifact({ artifactId: "count", parts: [{ text: "0" }], open: true });
    for (let number = 1; number <= last; number++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      yield turn.append("count", [{ text: String(number) }], { last: number === last });
    }
    return undefined;
  },
});

export function countingHandler(publicUrl: string): Handler {
  return createHandler(countingAgent, { publicUrl, store: memoryStore() });
}
