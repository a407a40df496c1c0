/** A challenge of `WWW-Authenticate` (RFC 9110 §11.6.1). */
export interface Challenge {
  /** Its scheme, in lower case. */
  readonly scheme: string;
  /** Its parameters, by their names in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Longest header that is read. A longer one is cut. */
const longest = 8_192;

/** A scheme or a parameter: `Bearer`, `realm="x"`, `error=invalid_token`. Each part is bounded by another character, so it takes linear time. */
const piece = /([\w!#$%&'*+.^`|~-]+)(?:[\t ]*=[\t ]*("(?:[^"\\]|\\.)*"|[\w!#$%&'*+.^`|~:/?@-]+)|(?=[\t ,]|$))/g;

/**
 * The challenges of a header. Several headers of this name are joined with commas, so a parameter belongs to the scheme before it.
 * What is no challenge is left out.
 */
export function challengesOf(header: string | undefined): readonly Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  for (const [, name = "", value] of (header ?? "").slice(0, longest).matchAll(piece)) {
    if (value === undefined) {
      challenges.push({ scheme: name.toLowerCase(), parameters: Object.create(null) as Record<string, string> });
      continue;
    }
    const parameters = challenges.at(-1)?.parameters;
    const text = value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
    if (parameters !== undefined) parameters[name.toLowerCase()] ??= text;
  }
  return challenges;
}

/** A parameter of the first challenge that has it. */
export function parameterOf(challenges: readonly Challenge[], name: string): string | undefined {
  return challenges.find(({ parameters }) => parameters[name] !== undefined)?.parameters[name];
}

/** The scopes that a text lists. Of a stranger's list at most 100 count, each of at most 256 characters (RFC 6749 §3.3). */
export function scopesOf(text: string | undefined): readonly string[] {
  const named = (text ?? "").split(" ").filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(scope));
  return [...new Set(named)].slice(0, 100);
}
