import type { AgentCard, SecurityRequirement, SecurityScheme } from "../model/index.ts";
import type { CredentialProvider, SchemeRequest } from "./port.ts";

/** A scheme of the requirement that was chosen, and who satisfies it. */
export interface ChosenScheme {
  readonly name: string;
  readonly scheme: SecurityScheme;
  /** The scopes that the requirement names. */
  readonly scopes: readonly string[];
  readonly provider: CredentialProvider;
}

/** How many requirements and schemes of a card are read. */
const maxOfCard = 100;

/**
 * The schemes of the first requirement of a card that providers can satisfy (A2A 1.0 §7.3). A requirement without schemes allows
 * anonymous calls: it counts only where no other can be satisfied. `undefined`: there is none.
 */
export function chooseSchemes(
  card: AgentCard,
  resource: string,
  providers: readonly CredentialProvider[],
): readonly ChosenScheme[] | undefined {
  const requirements = requirementsOf(card);
  for (const { schemes = {} } of requirements) {
    const wanted = Object.entries(schemes).slice(0, maxOfCard);
    const chosen = wanted.map(([name, { list = [] }]) => choose(card, resource, name, list, providers));
    if (chosen.length > 0 && chosen.every((one) => one !== undefined)) return chosen;
  }
  const open = requirements.length === 0 || requirements.some(({ schemes = {} }) => Object.keys(schemes).length === 0);
  return open ? [] : undefined;
}

/** The requirements of a card. Many cards list schemes and forget to require them: then each alone will do. */
function requirementsOf({
  securityRequirements = [],
  securitySchemes = {},
}: AgentCard): readonly SecurityRequirement[] {
  if (securityRequirements.length > 0) return securityRequirements.slice(0, maxOfCard);
  const names = Object.keys(securitySchemes).slice(0, maxOfCard);
  const each = names.map((name) => ({ schemes: { [name]: { list: [] } } }));
  return each.length === 0 ? [] : [...each, { schemes: {} }];
}

function choose(
  card: AgentCard,
  resource: string,
  name: string,
  scopes: readonly string[],
  providers: readonly CredentialProvider[],
): ChosenScheme | undefined {
  const schemes = card.securitySchemes ?? {};
  const scheme = Object.hasOwn(schemes, name) ? schemes[name] : undefined;
  if (scheme === undefined) return undefined;
  const request: SchemeRequest = { name, scheme, scopes, card, resource };
  const provider = providers.find((one) => one.supports(request));
  return provider && { name, scheme, scopes, provider };
}

/** What a card asks for, for messages: `key, or oauth and certificate`. */
export function describeRequirements(card: AgentCard): string {
  const each = requirementsOf(card).map(({ schemes = {} }) => Object.keys(schemes).slice(0, 10).join(" and "));
  return each
    .filter((text) => text !== "")
    .slice(0, 10)
    .join(", or ");
}
