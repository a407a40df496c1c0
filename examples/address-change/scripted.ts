import type { Desk } from "./agent.ts";

/** In place of a model: an address comes after “to”, or is the answer to a question about one. A long number is a telephone's. */
export const read: Desk["read"] = async (message, known) => {
  const [number] = /\+?\d[\d ]{6,}\d/.exec(message) ?? [];
  const asked = known.address === undefined ? known.phone !== undefined : known.address.includes("@");
  const said = /\bto (\S.*)$/.exec(message)?.[1] ?? (asked ? message : undefined);
  const [address, phone] = [said ?? known.address, number ?? known.phone];
  return { ...(address !== undefined && { address }), ...(phone !== undefined && { phone }) };
};
