import { readFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { Part } from "@parley/a2a/internal/model/index";
import { Mime } from "mime/lite";
import standardTypes from "mime/types/standard.js";
import { UsageError } from "./errors.ts";

// Types that agents often get and the standard table lacks. In that table `ts` is a video stream.
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

/** Media type by the extension of a file name. */
function mediaTypeOf(name: string): string | undefined {
  return types.getType(name) ?? undefined;
}

/** A file extension for a media type, without its dot. */
export function extensionOf(mediaType: string): string | undefined {
  return types.getExtension(mediaType) ?? undefined;
}

/** Why a file cannot be used, in words for the user. */
export function fileReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
      return "no such file";
    case "EISDIR":
      return "it is a folder";
    case "EACCES":
    case "EPERM":
      return "not allowed";
    case "ENOSPC":
      return "the disk is full";
    case "ENOTDIR":
    case "EEXIST":
      return "a file of that name is in the way";
    default:
      return error instanceof Error ? error.message : String(error);
  }
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
 * The part for a value of `--file`: the bytes of a file, or an http(s) URL as it is. The media type may follow
 * (`table.dat;type=text/csv`); otherwise it comes from the extension.
 */
export async function filePart(value: string, cwd: string): Promise<Part> {
  const [, name = value, given] = /^(.*?)(?:;type=([^;]+))?$/s.exec(value) ?? [];
  if (name === "") throw new UsageError("--file <file> needs a path or a URL");
  if (/^https?:\/\//i.test(name)) {
    if (!URL.canParse(name)) throw new UsageError(`--file <file> cannot be ${JSON.stringify(name)}: it is not a URL`);
    const filename = basename(new URL(name).pathname);
    const mediaType = given ?? mediaTypeOf(filename);
    return {
      url: name,
      ...(filename === "" ? {} : { filename }),
      ...(mediaType === undefined ? {} : { mediaType }),
    };
  }
  let bytes: Buffer;
  try {
    bytes = await readFile(resolve(cwd, name));
  } catch (error) {
    throw new UsageError(`cannot read ${name}: ${fileReason(error)}`, { cause: error });
  }
  const mediaType = given ?? mediaTypeOf(name) ?? (isText(bytes) ? "text/plain" : "application/octet-stream");
  return { raw: bytes.toString("base64"), filename: basename(name), mediaType };
}
