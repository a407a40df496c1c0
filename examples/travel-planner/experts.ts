import { defineAgent, text, type Agent, type Turn } from "@parley/a2a";

/* Two agents that know one thing each. In place of a search they make up a number from the name of the city. */

const pause = Number(process.env["PAUSE"] ?? 1000) * 10;

function search(turn: Turn | Turn<{ state: string }>): Promise<void> {
  return new Promise((resolve) => turn.clock.after(pause, resolve));
}

function numberOf(city: string): number {
  return Array.from(city).reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 900, 7) + 100;
}

/** Finds a flight. It asks for the date. */
export const flights: Agent = defineAgent<{ state: string }>({
  name: "Flights",
  description: "Finds flights.",
  version: "1.0.0",
  skills: [{ id: "fly", name: "Find a flight", description: "Finds a flight to a city", tags: ["travel"] }],
  resumable: true,
  async *onMessage(turn) {
    const city = turn.state();
    if (city === undefined) {
      turn.setState(turn.text);
      yield turn.inputRequired(`When do you want to fly to ${turn.text}?`);
      return;
    }
    yield turn.working(`Looking for a flight to ${city}`);
    await search(turn);
    const flight = `Flight PY ${numberOf(city)} to ${city} on ${turn.text}`;
    yield turn.artifact({ artifactId: "flight", name: "flight", parts: [text(flight)] });
  },
});

/** Finds a hotel. */
export const hotels: Agent = defineAgent({
  name: "Hotels",
  description: "Finds hotels.",
  version: "1.0.0",
  skills: [{ id: "stay", name: "Find a hotel", description: "Finds a hotel in a city", tags: ["travel"] }],
  resumable: true,
  async *onMessage(turn) {
    yield turn.working(`Looking for a hotel in ${turn.text}`);
    await search(turn);
    const hotel = `Hotel ${turn.text}, room ${numberOf(turn.text)}`;
    yield turn.artifact({ artifactId: "hotel", name: "hotel", parts: [text(hotel)] });
  },
});
