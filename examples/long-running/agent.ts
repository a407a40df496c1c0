import { data, defineAgent, text } from "@parley/node";
import { countPrimes } from "./primes.ts";

const piece = 1_000_000;
const most = 100_000_000_000;

export default defineAgent<{ checkpoint: { next: number; count: number } }>({
  name: "Prime counter",
  description: "Counts the primes up to a number. Large numbers take minutes.",
  version: "1.0.0",
  skills: [{ id: "count", name: "Count primes", description: "Counts the primes up to a number", tags: ["math"] }],
  defaultOutputModes: ["text/plain", "application/json"],
  resumable: true,
  async *onMessage(turn) {
    const limit = Number(/\d+/.exec(turn.text)?.[0]);
    if (!(limit >= 2 && limit <= most)) {
      yield turn.reply(`Up to which number? It may be from 2 to ${most}.`);
      return;
    }
    let { next, count } = turn.checkpoint ?? { next: 2, count: 0 };
    while (next <= limit) {
      const end = Math.min(next + piece, limit + 1);
      count += countPrimes(next, end);
      next = end;
      yield [turn.working(`${count} primes below ${next}`), turn.saveCheckpoint({ next, count })];
    }
    yield turn.artifact({ artifactId: "count", name: "count", parts: [text(`${count}`), data({ limit, count })] });
  },
});
