import { styleText } from "node:util";
import type { Io, Out } from "../io.ts";

type Format = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Colours text, or leaves it alone where nobody would see colours. */
export type Style = (format: Format, text: string) => string;

/** Colours stand on a terminal alone, unless `FORCE_COLOR` or `NO_COLOR` (no-color.org) say otherwise. */
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
