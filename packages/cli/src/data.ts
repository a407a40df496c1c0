import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { JsonValue, Part } from "@parley/a2a/internal/model/index";
import { line } from "@parley/a2a/internal/base/display";
import { UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";

/** All of standard input as text. */
export async function readAll(stdin: Io["stdin"]): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdin) text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** The part for a value of `--data`: JSON, a file that has it, or `-` for standard input. */
export async function dataPart(value: string, io: Io): Promise<Part> {
  if (value === "-") return { data: parsed(await readAll(io.stdin), "standard input") };
  // No file is looked for under such a name: it would have to be quoted the same way.
  if (/^\s*[[{"]/.test(value)) return { data: parsed(value, "--data") };
  let text: string;
  try {
    text = await readFile(resolve(io.cwd, value), "utf8");
  } catch (error) {
    const isJson = /^\s*(?:-?\d|true$|false$|null$)/.test(value) && problemAt(value) === undefined;
    if (isJson) return { data: JSON.parse(value) as JsonValue };
    throw new UsageError(`cannot read ${line(value)}: ${fileReason(error)}. --data takes a file or JSON`, {
      cause: error,
    });
  }
  return { data: parsed(text.replace(/^\ufeff/, ""), value) };
}

/** @throws UsageError with line and column. Engines say these differently, or not at all. */
function parsed(text: string, name: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (cause) {
    const at = problemAt(text) ?? text.length;
    const before = text.slice(0, at).split("\n");
    const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    const rest = text.slice(at).split("\n")[0] ?? "";
    const found = at >= text.length ? "it ends there" : rest === "" ? "the line ends there" : `at ${line(rest, 30)}`;
    throw new UsageError(`${line(name)} is not JSON: ${place}, ${found}`, { cause });
  }
}

const space = /[ \t\n\r]*/y;
const scalar =
  // eslint-disable-next-line no-control-regex
  /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Where a text stops to be JSON; `undefined` where it is JSON (RFC 8259 §2). */
export function problemAt(text: string): number | undefined {
  let at = 0;
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found !== null;
  };
  const sign = (character: string): boolean => {
    take(space);
    if (text[at] !== character) return false;
    at += 1;
    return true;
  };
  /** Brackets that are open, innermost last. */
  const open: string[] = [];
  const key = (): boolean => (take(space), text[at] === '"' && take(scalar) && sign(":"));
  for (;;) {
    // A value.
    if (sign("[")) {
      if (!sign("]")) {
        open.push("]");
        continue;
      }
    } else if (sign("{")) {
      if (!sign("}")) {
        open.push("}");
        if (!key()) return at;
        continue;
      }
    } else if (!take(scalar)) return at;
    // What follows it.
    for (;;) {
      const end = open.at(-1);
      if (end === undefined) {
        take(space);
        return at === text.length ? undefined : at;
      }
      if (sign(end)) {
        open.pop();
        continue;
      }
      if (!sign(",")) return at;
      if (end === "}" && !key()) return at;
      break;
    }
  }
}
