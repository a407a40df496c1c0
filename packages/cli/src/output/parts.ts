import type { JsonValue, Part, RawPart } from "@parley/a2a/internal/model/index";
import { readAuthorization } from "@parley/a2a/internal/client/index";
import { defined } from "@parley/a2a/internal/base/defined";
import { line, plain } from "@parley/a2a/internal/base/display";
import { isForm } from "@parley/a2a/internal/schema/form";
import type { Out } from "../io.ts";
import { byteSize, fitted } from "./text.ts";

/** Decoded size of base64 text, in bytes. */
function rawSize(raw: string): number {
  const padding = raw.endsWith("==") ? 2 : raw.endsWith("=") ? 1 : 0;
  return Math.floor(((raw.length - padding) * 3) / 4);
}

/** `limit`: characters per word. A link is content, so it is not cut. */
function label(what: readonly (string | undefined)[], limit?: number): string {
  return what
    .filter((word) => word !== undefined && word !== "")
    .map((word) => line(word ?? "", limit))
    .join(", ");
}

/** How data is shown: in full, or as one line of these columns. */
export type Fold = { readonly columns: number } | undefined;

/** Only a terminal gets folded data. */
export function foldFor(out: Out, full = false): Fold {
  return out.terminal && !full ? { columns: out.columns ?? 80 } : undefined;
}

function showData(data: JsonValue, fold: Fold, indent: number): string {
  if (fold === undefined) return plain(JSON.stringify(data, null, 2));
  return fitted(line(JSON.stringify(data), Number.POSITIVE_INFINITY), fold.columns - indent, "--full shows them");
}

export interface ShowOptions {
  readonly fold: Fold;
  /** Columns of indentation. Default 0. */
  readonly indent?: number;
  /** Whether the preceding text ends in the middle of a line. */
  readonly midLine?: boolean;
}

/** A file whose bytes arrive in several parts. */
export interface GrowingFile {
  readonly part: Pick<RawPart, "filename" | "mediaType">;
  readonly bytes: number;
}

/** Whether a part continues a file: its chunks have the same name and type. */
function grows({ part: { filename, mediaType } }: GrowingFile, part: Part): part is RawPart {
  return (
    part.raw !== undefined && (filename ?? "") !== "" && part.filename === filename && part.mediaType === mediaType
  );
}

/** The line for a file inside a message. */
export function fileLabel({ part, bytes }: GrowingFile): string {
  return `[${label([part.filename ?? "file", part.mediaType, byteSize(bytes)])}]`;
}

/** Parts as text, and the last file, which later parts may continue. `before`: the last file of the previous parts. */
export function showGrowing(
  parts: readonly Part[],
  { fold, indent = 0, midLine = false }: ShowOptions,
  before?: GrowingFile,
): { readonly text: string; readonly file: GrowingFile | undefined } {
  let shown = "";
  let file = before;
  const block = (text: string): void => {
    shown += `${endsMidLine(shown, midLine) ? "\n" : ""}${text}\n`;
  };
  for (const part of parts) {
    // The link of an authorization is shown later, together with hints for the user.
    if (readAuthorization({ parts: [part] }) !== undefined) continue;
    // A form is also shown later, but only on a terminal: a pipe gets the form unchanged.
    if (fold !== undefined && isForm(part)) continue;
    if (file !== undefined && grows(file, part)) {
      file = { part: file.part, bytes: file.bytes + rawSize(part.raw) };
      continue;
    }
    if (file !== undefined) block(fileLabel(file));
    file = undefined;
    if (part.text !== undefined) shown += plain(part.text);
    else if (part.data !== undefined) block(showData(part.data, fold, indent));
    else if (part.url !== undefined) block(label([part.url, part.filename, part.mediaType], Number.POSITIVE_INFINITY));
    else {
      const { filename, mediaType, raw } = part;
      file = { part: defined({ filename, mediaType }), bytes: rawSize(raw) };
    }
  }
  return { text: shown, file };
}

/**
 * Parts as text. A text part continues the current line, because it may be one of many chunks. Any other part has its own lines.
 */
export function showParts(parts: readonly Part[], options: ShowOptions): string {
  const { text, file } = showGrowing(parts, options);
  if (file === undefined) return text;
  return `${text}${endsMidLine(text, options.midLine ?? false) ? "\n" : ""}${fileLabel(file)}\n`;
}

/** Whether the output ends in the middle of a line after `text`. `midLine`: whether it did so before `text`. */
export function endsMidLine(text: string, midLine: boolean): boolean {
  return text === "" ? midLine : !text.endsWith("\n");
}
