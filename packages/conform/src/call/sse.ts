import type { Json } from "../acts/format.ts";
import { parseJson } from "./json.ts";
import { InvalidAnswer } from "./stream.ts";

/**
 * The `data` of an event stream (HTML Living Standard §9.2), each parsed as JSON. Throws InvalidAnswer for anything else, and
 * for a stream of more than `maxBytes`.
 */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number = Infinity,
): AsyncGenerator<Json, void, void> {
  let data: string[] = [];
  let count = 0;
  for await (const line of readLines(body, maxBytes)) {
    if (line !== "") data.push(...dataOf(line));
    else if (data.length > 0) {
      yield parse(data.join("\n"), count++);
      data = [];
    }
  }
  // An event that no blank line ends is discarded by the standard, and so by every client.
  if (data.length > 0) throw new InvalidAnswer("the stream ends inside an event");
}

/** The lines of the stream. What follows the last line end is only an error where it is not blank. */
async function* readLines(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  // The line that is not whole yet, in pieces: a long one is joined once.
  let pieces: string[] = [];
  // A carriage return at the end of a chunk may be the first half of a line end.
  let held = "";
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new InvalidAnswer(`the stream is longer than ${maxBytes} bytes`);
    const text = held + decoder.decode(chunk, { stream: true });
    held = text.endsWith("\r") ? "\r" : "";
    const [first = "", ...others] = (held === "" ? text : text.slice(0, -1)).split(/\r\n|\n|\r/);
    pieces.push(first);
    for (const next of others) {
      yield pieces.join("");
      pieces = [next];
    }
  }
  if (held !== "") yield pieces.join("");
  else if (pieces.join("").trim() !== "") throw new InvalidAnswer("the stream ends inside an event");
}

function dataOf(line: string): readonly string[] {
  const colon = line.indexOf(":");
  const field = colon === -1 ? line : line.slice(0, colon);
  if (field === "data") return [colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)];
  if (["", "event", "id", "retry"].includes(field)) return [];
  throw new InvalidAnswer(`the stream has a line that is no field of an event: ${JSON.stringify(line.slice(0, 80))}`);
}

function parse(data: string, at: number): Json {
  const value = parseJson(data);
  if (value !== undefined) return value;
  throw new InvalidAnswer(`event ${at} of the stream is no JSON: ${JSON.stringify(data.slice(0, 80))}`);
}
