import type { ColumnProfile } from "../profile/column.ts";

/** Finds the columns that some words may mean. */

/** `temp_max`, `tempMax` and `Temp. max` as `["temp", "max"]`. */
function tokensOf(text: string): readonly string[] {
  return text
    .replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((token) => token !== "");
}

const skipped = new Set(["the", "of", "a", "column", "field", "value"]);

/** Candidates of the best kind of match: the name itself, its words in any order, some of its words, or a misspelling. */
export function findColumns<C extends Pick<ColumnProfile, "name">>(words: string, columns: readonly C[]): readonly C[] {
  const literal = columns.filter(({ name }) => name.toLowerCase() === words.toLowerCase().trim());
  if (literal.length > 0) return literal;
  const asked = tokensOf(words).filter((token, _, all) => all.length === 1 || !skipped.has(token));
  if (asked.length === 0) return [];
  const joined = asked.map(singular).join("");
  const kinds: readonly ((tokens: readonly string[]) => boolean)[] = [
    (tokens) => tokens.map(singular).join("") === joined,
    (tokens) =>
      tokens.length === asked.length &&
      asked.every((word) => tokens.some((token) => singular(token) === singular(word))),
    (tokens) => asked.every((word) => tokens.some((token) => alike(token, word))),
    (tokens) => joined.length >= 4 && slips(tokens.map(singular).join(""), joined) <= (joined.length >= 8 ? 2 : 1),
  ];
  for (const fits of kinds) {
    const found = columns.filter(({ name }) => fits(tokensOf(name)));
    if (found.length > 0) return found;
  }
  return [];
}

/** Whether the words are the name of the column, in any spelling. */
export function isNameOf(words: string, { name }: Pick<ColumnProfile, "name">): boolean {
  const asked = tokensOf(words);
  const tokens = tokensOf(name);
  return asked.length > 0 && asked.length === tokens.length && asked.every((word) => tokens.includes(word));
}

function singular(word: string): string {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  return word.length > 3 && word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word;
}

/** The same word, or one cut short: "temp" for "temperature", "precip" for "precipitation". */
function alike(token: string, word: string): boolean {
  const [left, right] = [singular(token), singular(word)];
  if (left === right) return true;
  const [short, long] = left.length < right.length ? [left, right] : [right, left];
  return short.length >= 3 && long.startsWith(short);
}

/** Letters to change, add, drop or swap with their neighbour until one word is the other. */
function slips(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const cost = left[i - 1] === right[j - 1] ? 0 : 1;
      let best = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost);
      const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (swapped) best = Math.min(best, (before[j - 2] ?? 0) + 1);
      next.push(best);
    }
    [before, row] = [row, next];
  }
  return row[right.length] ?? 0;
}
