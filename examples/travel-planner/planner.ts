import { data, defineAgent, type Agent } from "@parley/node";
import type { Plan } from "./plan.ts";

/** What is known of a traveller's wish. */
export interface Wish {
  language: Plan["language"];
  city?: string;
  month?: string;
  days?: number;
  dollars?: number;
}

/** Reads a message: a model, or the scripted model below. `known`: the facts so far. */
export type Read = (message: string, known: Partial<Wish>) => Promise<Wish>;

const questions = {
  en: {
    city: "Where do you want to go?",
    month: "In which month?",
    days: "For how many days?",
    dollars: "How many dollars may the trip cost?",
  },
  zh: { city: "你想去哪里?", month: "几月出发?", days: "待几天?", dollars: "预算是多少美元?" },
} as const;

/** Makes the planner: the agent that turns a wish into a plan, and asks for missing details. */
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
      const { language, city, month, days, dollars } = wish;
      const ask = questions[language];
      if (city === undefined) yield turn.inputRequired(ask.city);
      else if (month === undefined) yield turn.inputRequired(ask.month);
      else if (days === undefined) yield turn.inputRequired(ask.days);
      else if (dollars === undefined) yield turn.inputRequired(ask.dollars);
      else {
        const budget = { flight: dollars * 0.4, hotel: dollars * 0.5, car: dollars * 0.1 };
        yield turn.artifact({
          artifactId: "plan",
          parts: [data({ language, city, month, days, budget } satisfies Plan)],
        });
      }
    },
  });
}

const months = /\b(January|February|March|April|May|June|July|August|September|October|November|December)\b/i;

/** Cities by their Chinese names: the agents search by the English ones. */
const cities: Readonly<Record<string, string>> = { 伦敦: "London", 里斯本: "Lisbon", 巴黎: "Paris", 奥斯陆: "Oslo" };

/**
 * Stands in for a model: it looks for “to CITY” or “去CITY”, “N days” or “N 天”, a month and a larger number. A short text answers the previous
 * question.
 */
export const scripted: Read = async (message, known) => {
  const alone = message.trim();
  const language = known.language ?? (/\p{Script=Han}/u.test(message) ? "zh" : "en");
  const [, chinese] = /[去到] ?(\p{Script=Han}{1,10}?)(?=[待玩住,，。 ]|$)/u.exec(message) ?? [];
  const named = /\bto (\p{Lu}\p{L}+)/u.exec(message)?.[1] ?? (chinese && (cities[chinese] ?? chinese));
  const city = named ?? known.city ?? (/^\p{L}+$/u.test(alone) ? (cities[alone] ?? alone) : undefined);
  const month = known.month ?? months.exec(message)?.[1] ?? /\d{1,2} ?月/.exec(message)?.[0];
  const days = Number(
    /(?<!\d)(\d{1,3}) ?(?:days?\b|天)/.exec(message)?.[1] ?? known.days ?? (month && /^\d+$/.exec(alone)?.[0]),
  );
  const dollars = Number(/(?<!\d)(\d{3,})(?!\d)/.exec(message)?.[1] ?? known.dollars);
  return {
    language,
    ...(city && { city }),
    ...(month && { month }),
    ...(days && { days }),
    ...(dollars && { dollars }),
  };
};
