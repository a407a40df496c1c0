import type { Json } from "../acts/format.ts";
import { InvalidAnswer } from "./stream.ts";

/** Deeper than any answer of the protocol, and shallow enough for functions that call themselves once a level. */
const maxDepth = 200;

/** The value of a JSON text; undefined where it is none. Throws InvalidAnswer where it is nested too deeply to be looked at. */
export function parseJson(text: string): Json | undefined {
  if (depthOf(text) > maxDepth) throw new InvalidAnswer(`the JSON has more than ${maxDepth} levels`);
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** How many arrays and objects are open at once, at most. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === backslash) at += 1;
      else if (code === quote) quoted = false;
    } else if (code === quote) quoted = true;
    else if (code === openArray || code === openObject) deepest = Math.max(deepest, (depth += 1));
    else if (code === closeArray || code === closeObject) depth -= 1;
  }
  return deepest;
}

const [quote, backslash, openArray, closeArray, openObject, closeObject] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];
