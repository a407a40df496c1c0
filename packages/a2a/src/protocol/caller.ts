import type { SecurityRequirement } from "../model/index.ts";
import type { Principal } from "./service.ts";
import type { UniversalRequest } from "./http.ts";

/* Facts about a caller in addition to its principal: unmet requirements of a card, its token, and invalid credentials. */

/** The missing part of a requirement. */
export interface Unmet {
  /** Names of the schemes that the caller's credentials do not satisfy. Empty: only scopes are missing. */
  readonly schemes: readonly string[];
  /** The missing scopes, by the names of the schemes that must grant them. */
  readonly scopes: Readonly<Record<string, readonly string[]>>;
}

/** The schemes and scopes that a caller lacks for each requirement; `undefined` if it satisfies a requirement, or the list is empty. Everyone satisfies `{}`. */
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

/*
 * Tokens of callers, only for token exchange (RFC 8693). They are outside the principal, so that no agent forwards them and
 * nothing stores or logs them. They belong to one call, because authenticators return the same principal for many requests.
 */

/** The token that a scheme has verified, and the request that had it. */
interface VerifiedToken {
  readonly token: string;
  readonly request: UniversalRequest;
}

/** Keys are the principals that authenticators create for one request. */
const verified = new WeakMap<Principal, VerifiedToken>();

/** Keyed by the principals of calls. */
const tokens = new WeakMap<Principal, string>();

/** A copy of a principal, with the token that its scheme has verified on this request. */
export function withVerifiedToken(principal: Principal, request: UniversalRequest, token: string): Principal {
  const made = { ...principal };
  verified.set(made, { token, request });
  return made;
}

/** Copies a verified token to the new principal `made`: the token of the first of `from` that has one. Returns `made`. */
export function carryVerifiedToken(made: Principal, ...from: readonly Principal[]): Principal {
  const known = from.map((one) => verified.get(one)).find((one) => one !== undefined);
  if (known !== undefined) verified.set(made, known);
  return made;
}

/**
 * The principal of a call. If it has a token, it is a copy, so that no other call has the token. Drops a token of another request, because an
 * authenticator may have cached the principal.
 */
export function principalOfCall(principal: Principal, request: UniversalRequest): Principal {
  const known = verified.get(principal);
  if (known === undefined && !tokens.has(principal)) return principal;
  const made = { ...principal };
  if (known?.request === request) tokens.set(made, known.token);
  return made;
}

/** The token of a caller; `undefined` if its schemes verified none, or if the principal was read from a store. */
export function callerToken(principal: Principal): string | undefined {
  return tokens.get(principal);
}

/**
 * Which credentials of a request were valid, by place. A request may have several; the limit of failed attempts counts all invalid ones.
 */
const judged = new WeakMap<UniversalRequest, Record<string, boolean>>();

/** Records whether the credentials at `place` (`authorization`, `header x-api-key`) were valid. One scheme that accepts them is enough. */
export function judgeCredentials(request: UniversalRequest, place: string, isRight: boolean): void {
  const places = judged.get(request);
  if (places === undefined) judged.set(request, { [place]: isRight });
  else places[place] = isRight || places[place] === true;
}

/** Whether a request has credentials that are wrong for every scheme that has checked them. */
export function hasWrongCredentials(request: UniversalRequest): boolean {
  return Object.values(judged.get(request) ?? {}).includes(false);
}
