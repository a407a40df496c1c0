import { styleText } from "node:util";
import type { Io, Out } from "../io.ts";

type Format = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Adds colour to text, or returns it unchanged where colours are off. */
export type Style = (format: Format, text: string) => string;

/** Colours are on for terminals; `FORCE_COLOR` and `NO_COLOR` (no-color.org) change that. */
export function styleFor(out: Out, env: Io["env"]): Style {
  return hasColours(out, env)
    ? (format, text) => styleText(format, text, { validateStream: false })
    : (_, text) => text;
}

/** Whether text for `out` has colours. */
export function hasColours(out: Out, env: Io["env"]): boolean {
  const force = env["FORCE_COLOR"];
  if (force !== undefined) return force !== "0" && force !== "false";
  if (env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "") return false;
  return out.terminal && env["TERM"] !== "dumb";
}
