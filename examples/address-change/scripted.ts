import type { Desk } from "./agent.ts";

/** Stands in for a model: an address follows “to” or “更新为”, or answers a question about one. A long number is a telephone number. */
export const read: Desk["read"] = async (message, known) => {
  const language = known.language ?? (/\p{Script=Han}/u.test(message) ? "zh" : "en");
  const [number] = /\+?\d[\d ]{6,}\d/.exec(message) ?? [];
  const said = /(?:\bto |更新为 ?|改为 ?)(\S.*)$/.exec(message)?.[1];
  // The answer to a question about the address: the message without its telephone number.
  const isAnswer = known.language !== undefined && number === undefined;
  const [address, phone] = [said ?? (isAnswer ? message : known.address), number ?? known.phone];
  return { language, ...(address !== undefined && { address }), ...(phone !== undefined && { phone }) };
};
