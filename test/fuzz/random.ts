/** Random numbers from 0 up to 1, generated from a seed (mulberry32). */
export type Random = () => number;

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

function pick<T>(random: Random, list: readonly T[]): T {
  return list[below(random, list.length)] as T;
}

const pieces = [
  "a",
  "Z",
  "0",
  " ",
  "\n",
  "\t",
  "\0",
  "\u001b[2J",
  '"',
  "\\",
  "/",
  "%2e",
  "é",
  "漢",
  "😀",
  "\u202e",
  "\ud800",
  "\ufeff",
  "{",
  "__proto__",
];

export function randomText(random: Random): string {
  return Array.from({ length: below(random, 12) }, () => pick(random, pieces)).join("");
}

/** Any JSON value, with limited depth. */
export function randomValue(random: Random, depth = 3): unknown {
  const size = below(random, 4);
  switch (below(random, depth > 0 ? 7 : 5)) {
    case 0:
      return null;
    case 1:
      return random() < 0.5;
    case 2:
      return below(random, 2 ** 31) - 2 ** 30;
    case 3:
      return (random() - 0.5) * 10 ** below(random, 300);
    case 4:
      return randomText(random);
    case 5:
      return Array.from({ length: size }, () => randomValue(random, depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: size }, () => [randomText(random), randomValue(random, depth - 1)]),
      );
  }
}
