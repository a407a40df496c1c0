import { A2AError, type Message, type Part } from "@parley/node";
import { bytesOf, isDataPart, isRawPart, isTextPart, isUrlPart } from "@parley/a2a/model";
import type { GuardedFetch } from "@parley/a2a/protocol";
import { openTable, type Table } from "../csv/table.ts";
import { maxQuestion } from "../question/request.ts";
import { notCsv, Refusal } from "../refusal.ts";

/** Media types of tables as text. On Windows with Excel, `.csv` files are sent with the media type of Excel. */
export const tableTypes = [
  "text/csv",
  "application/csv",
  "text/tab-separated-values",
  "application/vnd.ms-excel",
] as const;

function isTable(part: Part): boolean {
  if (isRawPart(part) || isUrlPart(part)) return true;
  const type = part.mediaType?.split(";", 1)[0]?.trim().toLowerCase();
  return isTextPart(part) && tableTypes.some((known) => known === type);
}

/**
 * Index of the table among the parts of a message; `undefined` if there is none.
 *
 * @throws Refusal if there are several, or if there is only JSON.
 */
export function tableIn({ parts }: Message): number | undefined {
  const places = parts.flatMap((part, place) => (isTable(part) ? [place] : []));
  if (places.length > 1)
    throw new Refusal("rejected", `You sent ${places.length} files. I look at one table at a time: send one of them.`);
  if (places.length === 0 && parts.some(isDataPart))
    throw notCsv("You sent a data part, which holds JSON.", "Send the table as a file, or as text of type text/csv.");
  return places[0];
}

/** The question: the text of the message without the table. A text that is too long to be a question is cut. */
export function questionIn({ parts }: Message): string {
  const texts = parts.filter((part) => isTextPart(part) && !isTable(part));
  return texts
    .map(({ text = "" }) => text.trim())
    .join("\n")
    .trim()
    .slice(0, maxQuestion + 1);
}

/**
 * The table in a part: its own bytes, or those at its address, which `fetch` checks first.
 *
 * @throws Refusal with a message for the sender.
 */
export async function loadTable(part: Part, fetch: GuardedFetch, signal: AbortSignal): Promise<Table> {
  if (isUrlPart(part)) {
    const { url, filename } = part;
    if (!URL.canParse(url))
      throw new Refusal("rejected", `I cannot fetch that file: “${shown(url)}” is not a URL. Send its whole address.`);
    return openTable(nameOf(filename ?? new URL(url).pathname), await download(url, fetch, signal));
  }
  const bytes = isRawPart(part) ? bytesOf(part) : new TextEncoder().encode(part.text ?? "");
  return openTable(nameOf(part.filename ?? ""), bytes);
}

/** Text from outside, on one short line. */
function shown(text: string): string {
  return text
    .slice(0, 1_000)
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, 80);
}

/** The last segment of a path, for titles and file names. */
function nameOf(path: string): string {
  const clean = shown(path.split(/[/\\]/).at(-1) ?? "");
  return clean === "" ? "table.csv" : clean;
}

const unreachable =
  "I could not fetch that file: its server did not answer as it should. Send the file itself, or try again later.";

async function download(url: string, fetch: GuardedFetch, signal: AbortSignal): Promise<Uint8Array> {
  try {
    const response = await fetch(url, { headers: { accept: "text/csv, text/*;q=0.5, */*;q=0.1" }, signal });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
    await response.body?.cancel();
    if (response.status >= 300 && response.status < 400)
      throw new Refusal(
        "failed",
        "That address leads to another one, and I do not follow redirects. Send the final address.",
      );
    throw new Refusal("failed", `I asked for that file and got the HTTP status ${response.status}.`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Refusal) throw error;
    // A `fetch` that was passed in may throw anything: the user gets a message in every case.
    switch (error instanceof A2AError ? error.code : undefined) {
      case "InvalidParams":
        throw new Refusal("rejected", `I do not fetch that file. ${(error as A2AError).message}.`);
      case "InvalidResponse":
        throw new Refusal("failed", "That file is larger than I may fetch. Send a smaller one.");
      default:
        throw new Refusal("failed", unreachable);
    }
  }
}
