import { data, defineAgent, text, type Agent } from "@parley/node";
import { Plan } from "./plan.ts";
import { sentences } from "./words.ts";

/* Three agents, each for one part of a trip. In place of a search, they derive a number from the name of the city. */

function numberOf(city: string): number {
  return Array.from(city).reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 400, 7) + 100;
}

interface Expert {
  readonly name: string;
  readonly part: keyof Plan["budget"];
  /** The question before the search. `undefined`: none. */
  ask(plan: Plan): string | undefined;
  /** The result of the search. `answer`: to the question. */
  find(plan: Plan, answer: string): { readonly what: string; readonly price: number };
}

function makeExpert({ name, part, ask, find }: Expert, pause: number): Agent {
  return defineAgent<{ state: Plan }>({
    name,
    description: `Finds a ${part}.`,
    version: "1.0.0",
    skills: [{ id: part, name: `Find a ${part}`, description: `Finds a ${part} for a plan`, tags: ["travel"] }],
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const plan = turn.state() ?? (await turn.data(Plan));
      const question = turn.state() === undefined ? ask(plan) : undefined;
      if (question !== undefined) {
        turn.setState(plan);
        yield turn.inputRequired(question);
        return;
      }
      const say = sentences[plan.language];
      yield turn.working(say.looking(part, plan.city));
      await new Promise<void>((resolve) => turn.clock.after(pause, resolve));
      const option = find(plan, turn.text);
      if (option.price > plan.budget[part]) yield turn.failed(say.tooExpensive(part, plan.budget[part]));
      else yield turn.artifact({ artifactId: part, name: part, parts: [text(option.what), data(option)] });
    },
  });
}

const flights: Expert = {
  name: "Flights",
  part: "flight",
  ask: ({ language }) => sentences[language].whichAirport,
  find: ({ language, city, month }, from) => ({
    what: sentences[language].flight(`PY ${numberOf(city)}`, from, city, month),
    price: numberOf(city) * 2,
  }),
};

const hotels: Expert = {
  name: "Hotels",
  part: "hotel",
  ask: ({ language, city }) => (city === "London" ? sentences[language].whichStation : undefined),
  find: ({ language, city, days }, station) => ({
    what: sentences[language].hotel(city === "London" ? station : city, numberOf(city), days),
    price: days * Math.ceil(numberOf(city) / 2),
  }),
};

/** Asks whether a car is really wanted where trains are better. */
const cars: Expert = {
  name: "Cars",
  part: "car",
  ask: ({ language, city }) => (city === "London" ? sentences[language].reallyCar : undefined),
  find: ({ language, city, days }, answer) =>
    city === "London" && !/^(yes|确定|是|要|对)/i.test(answer)
      ? { what: sentences[language].noCar, price: 0 }
      : { what: sentences[language].car(days), price: days * 20 },
};

/** Creates the three experts. `pause`: how long each one searches, in milliseconds. */
export function makeExperts(pause: number): Readonly<Record<"flights" | "hotels" | "cars", Agent>> {
  return {
    flights: makeExpert(flights, pause),
    hotels: makeExpert(hotels, pause),
    cars: makeExpert(cars, pause),
  };
}
