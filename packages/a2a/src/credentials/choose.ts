import type { AgentCard, SecurityRequirement, SecurityScheme } from "../model/index.ts";
import type { CredentialProvider, SchemeRequest } from "./port.ts";

/** A scheme of the chosen requirement, and the provider for it. */
export interface ChosenScheme {
  readonly name: string;
  readonly scheme: SecurityScheme;
  /** The scopes that the requirement names. */
  readonly scopes: readonly string[];
  readonly provider: CredentialProvider;
}

const maxOfCard = 100;

/**
 * The schemes of a card's first requirement that providers can satisfy (A2A 1.0 §7.3). A requirement without schemes
 * allows anonymous calls, and is the last choice. `undefined`: the client cannot satisfy any requirement.
 */
export function chooseSchemes(
  card: AgentCard,
  resource: string,
  providers: readonly CredentialProvider[],
): readonly ChosenScheme[] | undefined {
  const requirements = requirementsOf(card);
  for (const { schemes = {} } of requirements) {
    const wanted = Object.entries(schemes).slice(0, maxOfCard);
    const chosen = wanted.map(([name, { list: scopes = [] }]) => {
      const all = card.securitySchemes ?? {};
      const scheme = Object.hasOwn(all, name) ? all[name] : undefined;
      return scheme && chosenFor({ name, scheme, scopes, card, resource }, providers);
    });
    if (chosen.length > 0 && chosen.every((one) => one !== undefined)) return chosen;
  }
  const open = requirements.length === 0 || requirements.some(({ schemes = {} }) => Object.keys(schemes).length === 0);
  return open ? [] : undefined;
}

/** The requirements of a card. Many cards list schemes without requiring them; each scheme is then an alternative. */
function requirementsOf({
  securityRequirements = [],
  securitySchemes = {},
}: AgentCard): readonly SecurityRequirement[] {
  if (securityRequirements.length > 0) return securityRequirements.slice(0, maxOfCard);
  const names = Object.keys(securitySchemes).slice(0, maxOfCard);
  const each = names.map((name) => ({ schemes: { [name]: { list: [] } } }));
  return each.length === 0 ? [] : [...each, { schemes: {} }];
}

/** The first provider that can satisfy a scheme. */
export function chosenFor(request: SchemeRequest, providers: readonly CredentialProvider[]): ChosenScheme | undefined {
  const { name, scheme, scopes } = request;
  const provider = providers.find((one) => one.supports(request));
  return provider && { name, scheme, scopes, provider };
}

/** The requirements of a card as text: `key, or oauth and certificate`. */
export function describeRequirements(card: AgentCard): string {
  const each = requirementsOf(card).map(({ schemes = {} }) => Object.keys(schemes).slice(0, 10).join(" and "));
  return each
    .filter((text) => text !== "")
    .slice(0, 10)
    .join(", or ");
}

/** A challenge of `WWW-Authenticate` (RFC 9110 §11.6.1). */
export interface Challenge {
  /** Its scheme, in lower case. */
  readonly scheme: string;
  /** Its parameters, by their names in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Maximum header length in characters. A longer header is truncated. */
const longest = 8_192;

/** Patterns for the pieces of a header. Each is matched where the previous one ended. */
const name = /[\w!#$%&'*+.^`|~-]+/y;
const equals = /[\t ]*=[\t ]*/y;
const quoted = /"((?:[^"\\]|\\.)*)"/y;
/** A value without quotes. Some servers send such URLs. */
const bare = /[\w!#$%&'*+.^`|~:/?@-]+/y;

/** Matches a sticky pattern at an index. */
function take(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/**
 * The challenges of a header. Several headers of this name are joined with commas, so a parameter belongs to the scheme before it.
 * Ignores text that is not a challenge, and everything after an unclosed quote.
 */
export function challengesOf(header: string | undefined): readonly Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  const text = (header ?? "").slice(0, longest);
  for (let at = 0; at < text.length;) {
    const [word] = take(name, text, at) ?? [];
    at += word?.length ?? 1;
    if (word === undefined) continue;
    const sign = take(equals, text, at);
    if (sign === undefined) {
      challenges.push({ scheme: word.toLowerCase(), parameters: Object.create(null) as Record<string, string> });
      continue;
    }
    at += sign[0].length;
    const isQuoted = text[at] === '"';
    const value = take(isQuoted ? quoted : bare, text, at);
    if (isQuoted && value === undefined) break;
    at += value?.[0].length ?? 0;
    const parameters = challenges.at(-1)?.parameters;
    if (parameters !== undefined && value !== undefined)
      parameters[word.toLowerCase()] ??= value[1]?.replace(/\\(.)/g, "$1") ?? value[0];
  }
  return challenges;
}

/** A parameter of the first challenge that has it. */
export function parameterOf(challenges: readonly Challenge[], name: string): string | undefined {
  return challenges.find(({ parameters }) => parameters[name] !== undefined)?.parameters[name];
}

/** The scopes in a text (RFC 6749 §3.3). Because the text is untrusted, reads at most 100, each of at most 256 characters. */
export function scopesOf(text: string | undefined): readonly string[] {
  const named = (text ?? "").split(" ").filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(scope));
  return [...new Set(named)].slice(0, 100);
}
