import { random } from "../crash/plan.ts";

/* The orders of clients, and the results that these orders require. Both depend only on the seed. */

/** The kinds of conversations. */
export const ways = ["stream", "ask", "cancel", "interrupt", "webhook", "wait", "await", "plain"] as const;
export type Way = (typeof ways)[number];

/** The order in a message to the agent. */
export interface Order {
  readonly what: "tell" | "ask" | "wait" | "note";
  /** A unique name. The artifact of the message has the same name. */
  readonly name: string;
  /** The number of chunks in the artifact. */
  readonly chunks: number;
  /** The chunks before which the agent calls the service with side effects. */
  readonly steps: readonly number[];
  /** The pause between two chunks, in milliseconds. */
  readonly pause: number;
}

/** One planned task of a conversation. */
export interface Planned {
  readonly way: Way;
  readonly orders: readonly Order[];
  readonly binding: "JSONRPC" | "HTTP+JSON";
  /** The event at which a second reader joins. 0: no second reader joins. */
  readonly joinAt: number;
  /** The event at which the client cancels the task, or sends its note. */
  readonly actAt: number;
}

/** Yields the endless sequence of a conversation's tasks. */
export function* conversation(seed: number, number: number): Generator<Planned, never, void> {
  for (let round = 0; ; round += 1) {
    const next = random(seed * 1_000_003 + number * 7_919 + round);
    const upTo = (most: number): number => 1 + Math.floor(next() * most);
    // The conversations start with different ways, so that all ways occur early with any seed.
    const way = ways[(number + round) % ways.length] ?? "stream";
    const name = `${number}-${round}`;
    const order = (what: Order["what"], part: string): Order => {
      const chunks = way === "cancel" ? 12 + upTo(12) : 2 + upTo(10);
      const steps = way === "plain" ? [] : Array.from({ length: Math.floor(next() * 3) }, () => upTo(chunks));
      return {
        what,
        name: `${name}-${part}`,
        chunks,
        steps: [...new Set(steps)].sort((a, b) => a - b),
        pause: 20 + upTo(600),
      };
    };
    yield {
      way,
      orders: [
        order(way === "ask" ? "ask" : way === "wait" ? "wait" : "tell", "a"),
        ...(extra[way] ?? []).map((what) => order(what, "b")),
      ],
      binding: next() < 0.5 ? "JSONRPC" : "HTTP+JSON",
      joinAt: next() < 0.4 ? upTo(8) : 0,
      actAt: upTo(6),
    };
  }
}

/** The later orders of each way. */
const extra: Partial<Record<Way, readonly Order["what"][]>> = { ask: ["tell"], interrupt: ["note"] };

/** Returns the id of the artifact that an order makes. */
export function artifactOf({ name }: Order): string {
  return `story-${name}`;
}

/** Returns the text of a chunk. */
export function chunkOf({ name }: Order, number: number): string {
  return `${name} ${number}`;
}
