import { line } from "@parley/conform/terminal";

/**
 * Quotes one word of a command line for a POSIX shell. Ids come from the agent: without quotes a copied command could run what the
 * agent wrote.
 */
export function quote(word: string): string {
  const shown = line(word);
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`;
}

export function commandLine(words: readonly string[]): string {
  return words.map(quote).join(" ");
}
