import type { SecurityRequirement } from "../model/index.ts";
import type { Principal } from "./service.ts";

/* What a card demands of its callers: one of its requirements, each of them schemes that go together (A2A 1.0 §4.5, §7). */

/** What keeps a caller from satisfying a requirement. */
export interface Unmet {
  /** Names of the schemes that its credentials do not satisfy. Empty: only scopes are missing. */
  readonly schemes: readonly string[];
  /** The scopes that are missing, by the names of the schemes that were to grant them. */
  readonly scopes: Readonly<Record<string, readonly string[]>>;
}

/**
 * What a caller lacks for each of the requirements; `undefined` where it satisfies one of them, and where there are none.
 *
 * @param requirements - Those of a card or a skill. An empty one, `{}`, is satisfied by everyone.
 */
export function unmet(
  requirements: readonly SecurityRequirement[] | undefined,
  principal: Principal,
): readonly Unmet[] | undefined {
  if (requirements === undefined || requirements.length === 0) return undefined;
  const lacking: Unmet[] = [];
  for (const requirement of requirements) {
    const lacks = lackOf(requirement, principal.schemes);
    if (lacks === undefined) return undefined;
    lacking.push(lacks);
  }
  return lacking;
}

function lackOf({ schemes = {} }: SecurityRequirement, granted: Principal["schemes"]): Unmet | undefined {
  const missing: string[] = [];
  const scopes: Record<string, readonly string[]> = {};
  let lacks = false;
  for (const [name, { list = [] }] of Object.entries(schemes)) {
    const has = granted !== undefined && Object.hasOwn(granted, name) ? granted[name] : undefined;
    const wanted = has === undefined ? list : list.filter((scope) => !has.includes(scope));
    if (has === undefined) missing.push(name);
    if (wanted.length > 0) scopes[name] = wanted;
    lacks ||= has === undefined || wanted.length > 0;
  }
  return lacks ? { schemes: missing, scopes } : undefined;
}
