import { data, defineAgent, type Agent } from "@parley/a2a";
import type { Plan } from "./plan.ts";

/** What a traveller has said so far. */
export interface Wish {
  city?: string;
  month?: string;
  days?: number;
  dollars?: number;
}

/** Reads a message: a model, or the scripted one below. `known`: what was read before. */
export type Read = (message: string, known: Wish) => Promise<Wish>;

/** Makes the planner: the agent that turns a wish into what the search begins with, and asks for what is missing. */
export function planner(read: Read): Agent {
  return defineAgent<{ state: Wish }>({
    name: "Planner",
    description: "Turns a wish into a plan: where, when, for how long, and what each part may cost.",
    version: "1.0.0",
    skills: [{ id: "plan", name: "Plan", description: "Makes a plan of a wish", tags: ["travel"] }],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const wish = await read(turn.text, turn.state() ?? {});
      turn.setState(wish);
      const { city, month, days, dollars } = wish;
      if (city === undefined) yield turn.inputRequired("Where do you want to go?");
      else if (month === undefined) yield turn.inputRequired("In which month?");
      else if (days === undefined) yield turn.inputRequired("For how many days?");
      else if (dollars === undefined) yield turn.inputRequired("How many dollars may the trip cost?");
      else {
        const budget = { flight: dollars * 0.4, hotel: dollars * 0.5, car: dollars * 0.1 };
        yield turn.artifact({ artifactId: "plan", parts: [data({ city, month, days, budget } satisfies Plan)] });
      }
    },
  });
}

const months = /\b(January|February|March|April|May|June|July|August|September|October|November|December)\b/i;

/** In place of a model: it looks for “to CITY”, “N days”, a month and a larger number. A short answer is to the question that was asked. */
export const scripted: Read = async (message, known) => {
  const alone = message.trim();
  const city = /\bto (\p{Lu}\p{L}+)/u.exec(message)?.[1] ?? known.city ?? (/^\p{L}+$/u.test(alone) ? alone : undefined);
  const month = known.month ?? months.exec(message)?.[1];
  const days = Number(/\b(\d+) days?\b/.exec(message)?.[1] ?? known.days ?? (month && /^\d+$/.exec(alone)?.[0]));
  const dollars = Number(/\b(\d{3,})\b/.exec(message)?.[1] ?? known.dollars);
  return { ...(city && { city }), ...(month && { month }), ...(days && { days }), ...(dollars && { dollars }) };
};
