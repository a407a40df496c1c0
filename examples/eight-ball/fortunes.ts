const fortunes = [
  "It is certain.",
  "Ask again later.",
  "Don't count on it.",
  "Outlook good.",
  "My reply is no.",
] as const;

/** What cheat codes unlock. */
const unlocked: ReadonlyMap<string, string> = new Map([
  ["motherlode", "That's a bingo!"],
  ["there is no cow level", "Moo."],
]);

/** The fortune of a question: always the same one. A cheat code unlocks its own. */
export function fortuneOf(question: string, code?: string): string {
  const sum = Array.from(question).reduce((all, letter) => (all * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003, 7);
  return (code === undefined ? undefined : unlocked.get(code)) ?? fortunes[sum % fortunes.length] ?? fortunes[0];
}
