/**
 * Calls to untrusted URLs: rejects private addresses, and connects only to the checked address.
 * @packageDocumentation
 */

export type { Dialer, DialInit, GuardedFetch, NetPolicy, ResolvedAddress } from "./port.ts";
export { addressKind, type AddressKind } from "./address.ts";
export { addressProblem, guardedFetch } from "./guard.ts";
