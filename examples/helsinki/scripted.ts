import type { Desk, Service } from "./agent.ts";

/* Instead of a model: the first of these words in a message. Instead of booking systems: a number from the key. */

const words: readonly (readonly [RegExp, Service])[] = [
  [/\bspa\b|水疗/i, "spa"],
  [/\bsnowmobil|雪地摩托/i, "snowmobiling"],
  [/\bhotel\b|酒店/i, "hotel"],
  [/\b(flight|fly)\b|航班/i, "flight"],
];

const pause = Number(process.env["PAUSE"] ?? 1000);

/** Books after a pause. */
export const scripted: Desk = {
  understand: async (message) => words.find(([word]) => word.test(message))?.[1],
  async book(service, on, key) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    const number = Array.from(key).reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9000, 7) + 1000;
    return `${service} ${number}${on === undefined ? "" : `, with ${on}`}`;
  },
};
