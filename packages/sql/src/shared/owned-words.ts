/** Between an owner and a word. No word has it. */
const sign = "\u00b7";

/** A word of an owner, as an index has it: a query reads the words of its owner alone. */
export function indexed(owner: number, word: string): string {
  return owner.toString(36) + sign + word;
}
