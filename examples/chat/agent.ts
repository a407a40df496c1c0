import { setTimeout } from "node:timers/promises";
import { defineAgent, type Agent } from "@parley/node";

/** Stands in for a model. */
async function* plan(city: string, pause: number, signal: AbortSignal): AsyncGenerator<string> {
  const days = ["walk along the water", "see the museums", "take a boat to the islands"];
  const text = days.map((day, at) => `Day ${at + 1} in ${city}: ${day}.`).join(" ");
  for (const word of text.match(/\S+\s*/g) ?? []) {
    await setTimeout(pause, undefined, { signal });
    yield word;
  }
}

/** `pause`: milliseconds between two words. */
export function createAgent(pause: number): Agent {
  return defineAgent({
    name: "Travel agent",
    description: "Plans three days in a city.",
    version: "1.0.0",
    skills: [{ id: "plan", name: "Plan a trip", description: "Plans three days in a city", tags: ["travel"] }],
    async *onMessage(turn) {
      if (turn.number === 1) {
        yield turn.inputRequired("Which city?");
        return;
      }
      yield turn.working("Planning");
      yield* turn.stream(plan(turn.text, pause, turn.signal), { name: "plan" });
    },
  });
}
