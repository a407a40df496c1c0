import { basename } from "node:path";
import { defined } from "@parley/a2a/internal/base/defined";
import { line } from "@parley/a2a/internal/base/display";
import type { JsonValue, Part } from "@parley/a2a/internal/model/index";
import { Mime } from "mime/lite";
import standardTypes from "mime/types/standard.js";
import { UsageError } from "./errors.ts";
import { readAll, readBytes } from "./files.ts";
import type { Io } from "./io.ts";

/* The parts of a message. */

/** Options of commands that send a message. */
export interface MessageOptions {
  readonly file?: readonly string[];
  readonly data?: readonly string[];
}

/** The parts of a message: text, or standard input for `-`, then files and data. */
export async function partsOf(io: Io, text: string | undefined, options: MessageOptions): Promise<readonly Part[]> {
  const { file = [], data = [] } = options;
  if ([text, ...data].filter((value) => value === "-").length > 1)
    throw new UsageError("standard input can be read only once: pass - as [text] or as one --data <json>");
  const words = text === "-" ? (await readAll(io.stdin)).trimEnd() : text;
  const parts: Part[] = words === undefined || words === "" ? [] : [{ text: words }];
  for (const value of file) parts.push(await filePart(value, io.cwd));
  for (const value of data) parts.push(await dataPart(value, io));
  if (parts.length === 0) throw new UsageError("nothing to send: pass [text], --file <file> or --data <json>");
  return parts;
}

// Common types that the standard table lacks. There `ts` is a video stream.
const types = new Mime(standardTypes, { "application/vnd.apache.parquet": ["parquet"] });
types.define(
  {
    "application/x-ndjson": ["ndjson", "jsonl"],
    "text/x-python": ["py"],
    "video/x-msvideo": ["avi"],
    "text/x-typescript": ["ts", "tsx", "mts"],
  },
  true,
);

function mediaTypeOf(name: string): string | undefined {
  return types.getType(name) ?? undefined;
}

/** The file extension of a media type, without a dot. */
export function extensionOf(mediaType: string): string | undefined {
  return types.getExtension(mediaType) ?? undefined;
}

function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/**
 * The part for a value of `--file`: the bytes of a file, or an http(s) URL unchanged. A media type may follow
 * (`table.dat;type=text/csv`); default: by the extension.
 */
export async function filePart(value: string, cwd: string): Promise<Part> {
  const [, name = value, given] = /^(.*?)(?:;type=([^;]+))?$/s.exec(value) ?? [];
  if (name === "") throw new UsageError("--file <file> needs a path or a URL");
  if (/^https?:\/\//i.test(name)) {
    if (!URL.canParse(name)) throw new UsageError(`--file <file> must be a valid URL; got ${JSON.stringify(name)}`);
    const filename = basename(new URL(name).pathname);
    const mediaType = given ?? mediaTypeOf(filename);
    return { url: name, ...defined({ filename: filename || undefined, mediaType }) };
  }
  const bytes = await readBytes(name, cwd);
  const mediaType = given ?? mediaTypeOf(name) ?? (isText(bytes) ? "text/plain" : "application/octet-stream");
  return { raw: bytes.toString("base64"), filename: basename(name), mediaType };
}

/** The part for a value of `--data`: JSON, a file, or `-` for standard input. */
async function dataPart(value: string, io: Io): Promise<Part> {
  if (value === "-") return { data: parsed(await readAll(io.stdin), "standard input") };
  // A value that starts like this is never a file name.
  if (/^\s*[[{"]/.test(value)) return { data: parsed(value, "--data") };
  let text: string;
  try {
    text = (await readBytes(value, io.cwd, ". --data takes a file or JSON")).toString("utf8");
  } catch (error) {
    const isJson = /^\s*(?:-?\d|true$|false$|null$)/.test(value) && problemAt(value) === undefined;
    if (isJson) return { data: JSON.parse(value) as JsonValue };
    throw error;
  }
  return { data: parsed(text.replace(/^\ufeff/, ""), value) };
}

/** @throws UsageError with line and column, which engines report differently or not at all. */
function parsed(text: string, name: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (cause) {
    const at = problemAt(text) ?? text.length;
    const before = text.slice(0, at).split("\n");
    const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    const rest = text.slice(at).split("\n")[0] ?? "";
    const found =
      at >= text.length ? "unexpected end" : rest === "" ? "unexpected end of line" : `unexpected ${line(rest, 30)}`;
    throw new UsageError(`${line(name)} must be JSON; ${place}: ${found}`, { cause });
  }
}

const space = /[ \t\n\r]*/y;
const scalar =
  // eslint-disable-next-line no-control-regex
  /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** The position at which a text stops being JSON (RFC 8259 §2); `undefined` for JSON. */
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
  /** The expected closing brackets, innermost last. */
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
    // A comma, or a closing bracket.
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
