import { line } from "@parley/conform/terminal";

/**
 * One word of a command line for a POSIX shell. Ids come from an agent: what is more than a plain word is quoted, so
 * that a command that someone copies runs nothing of the agent's.
 */
export function quote(word: string): string {
  const shown = line(word);
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`;
}

export function commandLine(words: readonly string[]): string {
  return words.map(quote).join(" ");
}
