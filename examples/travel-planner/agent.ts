import { data, defineAgent, text, type Agent, type Client } from "@parley/node";
import { Option, Plan } from "./plan.ts";
import { sentences } from "./words.ts";

type Name = "planner" | "flights" | "hotels" | "cars";

/** Makes the orchestrator. `connect` returns clients of the agents that it calls. */
export function orchestrator(connect: () => Promise<Readonly<Record<Name, Client>>>): Agent {
  return defineAgent({
    name: "Travel planner",
    description: "Plans a trip: a flight, a hotel and a car.",
    version: "1.0.0",
    skills: [{ id: "plan", name: "Plan a trip", description: "Plans a trip to a city", tags: ["travel"] }],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const { planner, flights, hotels, cars } = await connect();
      const planned = yield* turn.delegate(planner, turn.text, { artifacts: false });
      const wanted = await planned.data(Plan);
      const plan = data(wanted);
      const found = yield* turn.all([flights, hotels, cars].map((expert) => turn.delegate(expert, plan)));
      const options = await Promise.all(found.map((each) => each.data(Option)));
      const price = options.reduce((sum, option) => sum + option.price, 0);
      const trip = sentences[wanted.language].trip(options, price);
      yield turn.artifact({ name: "trip", parts: [text(trip), data({ price })] });
    },
  });
}
