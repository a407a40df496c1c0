import type { Principal } from "./service.ts";

/**
 * The token of a caller, for token exchange (RFC 8693) and nothing else. It is kept beside the principal and not in it, so that no
 * agent can send it on, and nothing stores or logs it. It goes with the principal.
 */
const tokens = new WeakMap<Principal, string>();

/** Keeps the token that a caller has shown. */
export function keepCallerToken(principal: Principal, token: string | undefined): void {
  if (token !== undefined && tokens.get(principal) !== token) tokens.set(principal, token);
}

/** The token of a caller; `undefined` where it has shown none, or where the principal was read from a store. */
export function callerToken(principal: Principal): string | undefined {
  return tokens.get(principal);
}
