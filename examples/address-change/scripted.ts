import type { Desk } from "./agent.ts";

/**
 * In place of a model: an address comes after “to” or “更新为”, or is the answer to a question about one. A long number is a telephone's.
 */
export const read: Desk["read"] = async (message, known) => {
  const language = known.language ?? (/\p{Script=Han}/u.test(message) ? "zh" : "en");
  const [number] = /\+?\d[\d ]{6,}\d/.exec(message) ?? [];
  const said = /(?:\bto |更新为 ?|改为 ?)(\S.*)$/.exec(message)?.[1];
  // What answers a question about the address: all of a message that is not a telephone number.
  const isAnswer = known.language !== undefined && number === undefined;
  const [address, phone] = [said ?? (isAnswer ? message : known.address), number ?? known.phone];
  return { language, ...(address !== undefined && { address }), ...(phone !== undefined && { phone }) };
};
