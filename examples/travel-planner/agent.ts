import { defineAgent, text, type Agent } from "@parley/a2a";
import type { Client } from "@parley/a2a/client";

/** Makes the planner. `connect` returns clients of the agents that it calls. */
export function planner(connect: () => Promise<{ readonly flights: Client; readonly hotels: Client }>): Agent {
  return defineAgent({
    name: "Travel planner",
    description: "Plans a trip: a flight and a hotel.",
    version: "1.0.0",
    skills: [{ id: "plan", name: "Plan a trip", description: "Plans a trip to a city", tags: ["travel"] }],
    resumable: true,
    async *onMessage(turn) {
      const { flights, hotels } = await connect();
      const [flight, hotel] = yield* turn.all([turn.delegate(flights, turn.text), turn.delegate(hotels, turn.text)]);
      yield turn.artifact({ name: "plan", parts: [text(`${flight.text}. ${hotel.text}.`)] });
    },
  });
}
