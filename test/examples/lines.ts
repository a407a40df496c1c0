import { readFileSync } from "node:fs";
import { parseSync } from "oxc-parser";

/**
 * Counts the lines of code in programs, without comments, imports and blank lines, as oxfmt formats the sources here (120
 * columns).
 */
export function linesOf(paths: readonly string[]): number {
  return paths.reduce((sum, path) => sum + linesIn(path, readFileSync(path, "utf8")), 0);
}

function linesIn(path: string, source: string): number {
  const { program, comments, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path} cannot be read: ${errors[0]?.message}`);
  const imports = program.body.filter(({ type }) => type === "ImportDeclaration");
  let left = source;
  for (const { start, end } of [...comments, ...imports])
    left = left.slice(0, start) + left.slice(start, end).replaceAll(/[^\n]/g, " ") + left.slice(end);
  return left.split("\n").filter((line) => line.trim() !== "").length;
}
