import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Row {
  readonly action: string;
  /** The commands in the row's second cell, such as `parley send URL TEXT`. */
  readonly commands: readonly string[];
  readonly text: string;
}

/** Returns the rows of the table "The same in the terminal" of docs/console.md, without its subtitles. */
export function consoleTable(): readonly Row[] {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "console.md"), "utf8");
  const [, section = ""] = /^## The same in the terminal\n([\s\S]*?)^## /m.exec(page) ?? [];
  const rows = [...section.matchAll(/^\| (.*?) +\| (.*?) +\|$/gm)].map(([, action = "", text = ""]) => ({
    action,
    text,
    commands: [...text.matchAll(/`(parley [^`]*)`/g)].map(([, command = ""]) => command),
  }));
  return rows.filter(({ action }) => !/^(?:in the console|\*\*|-)/.test(action));
}
