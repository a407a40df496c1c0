import { line } from "@parley/a2a/internal/base/display";
import type { Style } from "../output/text.ts";

/** What was looked at. */
export type Subject = "card" | "tls" | "address" | "versions" | "clients" | "streams" | "clock";

/** What one check has found. */
export interface Finding {
  readonly subject: Subject;
  /**
   * - `ok`: it is as it should be.
   * - `warning`: it works, but not for all, or not for long.
   * - `broken`: clients fail.
   * - `unknown`: it could not be checked.
   */
  readonly verdict: "ok" | "warning" | "broken" | "unknown";
  /** What was seen. */
  readonly seen: string;
  /** What to do about it. Absent where there is nothing to do. */
  readonly cure?: string;
}

const marks = { ok: "✓", warning: "!", broken: "✗", unknown: "–" } as const;
const colours = { ok: "green", warning: "yellow", broken: "red", unknown: "dim" } as const;

/** Most characters of one finding. A server may have written parts of it. */
const longest = 1000;

/** A finding as one line for a terminal, and its cure as another. */
export function showFinding({ subject, verdict, seen, cure }: Finding, style: Style): string {
  const head = `${style(colours[verdict], marks[verdict])} ${subject.padEnd(8)}  `;
  const rest = cure === undefined ? "" : `${" ".repeat(12)}${style("bold", "→")} ${line(cure, longest)}\n`;
  return `${head}${line(seen, longest)}\n${rest}`;
}
