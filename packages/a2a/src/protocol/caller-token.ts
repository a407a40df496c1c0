import type { UniversalRequest } from "./http.ts";
import type { Principal } from "./service.ts";

/*
 * Tokens of callers, for token exchange (RFC 8693) and nothing else. They are kept beside the principal, not in it: an agent cannot send
 * one on, and nothing stores or logs one. A token belongs to one call. So it is kept on an object that is made for the call:
 * authenticators hand out one principal for many requests.
 */

/** The token that a scheme has verified, and the request that had it. */
interface VerifiedToken {
  readonly token: string;
  readonly request: UniversalRequest;
}

/** By the principals that authenticators make for one request. */
const verified = new WeakMap<Principal, VerifiedToken>();

/** By the principals of calls. */
const tokens = new WeakMap<Principal, string>();

/** A copy of a principal, with the token that its scheme has verified on this request. */
export function withVerifiedToken(principal: Principal, request: UniversalRequest, token: string): Principal {
  const made = { ...principal };
  verified.set(made, { token, request });
  return made;
}

/** Gives a principal that was just made the verified token of the first of others that has one. Returns it. */
export function carryVerifiedToken(made: Principal, ...from: readonly Principal[]): Principal {
  const known = from.map((one) => verified.get(one)).find((one) => one !== undefined);
  if (known !== undefined) verified.set(made, known);
  return made;
}

/**
 * The principal of a call, as the authenticator returned it for a request. One with a token is a copy, so that no other call has it. A
 * token of another request is left out: an authenticator may have kept the principal.
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
