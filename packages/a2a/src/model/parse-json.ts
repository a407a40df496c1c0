import { A2AError } from "./errors.ts";

export interface ParseOptions {
  /** How many arrays and objects may stand inside each other. Default 64. */
  readonly maxDepth?: number;
}

/**
 * Parses JSON text from outside. Throws `ParseError` when it is none, and `InvalidRequest` when it is nested too deep; both
 * say nothing of the text itself. Never recurses, so depth costs no stack.
 */
export function parseJson(text: string, options: ParseOptions = {}): unknown {
  const { maxDepth = 64 } = options;
  if (isDeeper(text, maxDepth)) throw new A2AError("InvalidRequest", `JSON is nested deeper than ${maxDepth} levels`);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new A2AError("ParseError", undefined, { cause: error });
  }
}

const quote = 0x22;
const backslash = 0x5c;

/** Looks at brackets only; strings, where most bytes of a request are, are passed over by `indexOf`. */
function isDeeper(text: string, maxDepth: number): boolean {
  // Each level takes two characters.
  if (text.length <= maxDepth * 2) return false;
  let depth = 0;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === quote) {
      do i = text.indexOf('"', i + 1);
      while (i !== -1 && isEscaped(text, i));
      if (i === -1) return false;
      // `{` and `[`, `}` and `]` differ in one bit from each other.
    } else if ((char | 0x20) === 0x7b) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if ((char | 0x20) === 0x7d) depth -= 1;
  }
  return false;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - 1 - slashes) === backslash) slashes += 1;
  return slashes % 2 === 1;
}
