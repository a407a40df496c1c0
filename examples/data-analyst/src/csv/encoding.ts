import { isUtf8 } from "node:buffer";
import { notCsv } from "../refusal.ts";

/** Labels of the Encoding standard. */
export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";

const headBytes = 4096;
const chunkBytes = 64 * 1024;

/** First bytes of files that people send instead of a table, and the answers to them. */
const signatures: readonly (readonly [bytes: string, what: string, hint?: string])[] = [
  ["PK\x03\x04", "This is a ZIP file, perhaps an Excel workbook.", "Save the sheet as CSV and send that."],
  ["\xd0\xcf\x11\xe0", "This is an old Excel or Office file.", "Save the sheet as CSV and send that."],
  ["PAR1", "This is a Parquet file.", "Export it as CSV and send that."],
  ["SQLite format 3", "This is an SQLite database.", "Export one table as CSV and send that."],
  ["\x1f\x8b", "This is a gzip file.", "Unpack it and send the CSV inside."],
  ["%PDF-", "This is a PDF."],
  ["\x89PNG", "This is a PNG image."],
  ["\xff\xd8\xff", "This is a JPEG image."],
  ["GIF8", "This is a GIF image."],
];

/**
 * How the bytes of a text are encoded: by its byte order mark, else UTF-8 when all of it is valid, else UTF-16 by the
 * pattern of its zeros, else windows-1252, which spreadsheets of western offices still write.
 *
 * @throws Refusal if the bytes are not text.
 */
export function encodingOf(bytes: Uint8Array): Encoding {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, headBytes));
  const start = head.toString("latin1", 0, 32);
  for (const [signature, what, hint] of signatures) if (start.startsWith(signature)) throw notCsv(what, hint);
  if (start.startsWith("\xff\xfe")) return "utf-16le";
  if (start.startsWith("\xfe\xff")) return "utf-16be";
  const zeros = [0, 0];
  let controls = 0;
  head.forEach((byte, index) => {
    if (byte === 0) zeros[index % 2] = (zeros[index % 2] ?? 0) + 1;
    else if (byte < 32 && byte !== 9 && byte !== 10 && byte !== 13) controls += 1;
  });
  const [even = 0, odd = 0] = zeros;
  if (controls > head.length / 50) throw notCsv("This is a binary file, not text.");
  if (even + odd > 0) {
    if (odd > head.length / 4 && even === 0) return "utf-16le";
    if (even > head.length / 4 && odd === 0) return "utf-16be";
    throw notCsv("This is a binary file, not text.");
  }
  return isUtf8(bytes) ? "utf-8" : "windows-1252";
}

/** The text of the bytes, piece by piece, without its byte order mark. */
export function* decode(bytes: Uint8Array, encoding: Encoding): Generator<string, void, void> {
  const decoder = new TextDecoder(encoding);
  for (let offset = 0; offset < bytes.byteLength; offset += chunkBytes) {
    const end = offset + chunkBytes;
    yield decoder.decode(bytes.subarray(offset, end), { stream: end < bytes.byteLength });
  }
}

/** Rejects text in another format: a web page, XML, JSON. */
export function refuseOtherFormats(head: string, whole: boolean): void {
  const text = head.trimStart();
  if (text === "" && whole) throw notCsv("The file is empty.");
  if (/^<(!doctype\s+html|html|head|body)\b/i.test(text)) throw notCsv("This is a web page (HTML), not a table.");
  if (/^<(\?xml\b|!--|[a-z][\w:.-]*[\s/>])/i.test(text)) throw notCsv("This is XML, not a table.");
  if (!/^[[{]/.test(text)) return;
  // Half a document cannot be parsed. Its beginning is enough: the header of a CSV file opens no object and no list.
  const begins = /^(\{\s*"|\[\s*[[{])/.test(text);
  if (begins || isJson(whole ? text : (text.split("\n", 1)[0] ?? ""))) throw notCsv("This is JSON, not CSV.");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
