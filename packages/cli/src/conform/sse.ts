import type { Json } from "./format.ts";
import { BrokenWire } from "./stream.ts";

/** The `data` of an event stream (HTML Living Standard §9.2), each as the JSON that it is. Throws BrokenWire for anything else. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<Json, void, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = "";
  let data: string[] = [];
  let count = 0;
  for await (const bytes of body) {
    // A carriage return at the end may be half of a line end.
    const lines = (line + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    line = lines.pop() ?? "";
    for (const one of lines) {
      if (one !== "") {
        data.push(...dataOf(one));
        continue;
      }
      if (data.length > 0) yield parse(data.join("\n"), count++);
      data = [];
    }
  }
  // What no blank line ends is no event: the standard throws it away, and so do clients.
  if (data.length > 0 || line.trim() !== "") throw new BrokenWire("the stream ends inside an event");
}

function dataOf(line: string): readonly string[] {
  const [, field = "", value = ""] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
  if (field === "data") return [value];
  if (["", "event", "id", "retry"].includes(field)) return [];
  throw new BrokenWire(`the stream has a line that is no field of an event: ${JSON.stringify(line.slice(0, 80))}`);
}

function parse(data: string, at: number): Json {
  try {
    return JSON.parse(data) as Json;
  } catch {
    throw new BrokenWire(`event ${at} of the stream is no JSON: ${JSON.stringify(data.slice(0, 80))}`);
  }
}
