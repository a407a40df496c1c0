/**
 * Calls to addresses that a stranger chose: which are refused, and how a dialer reaches the one that was checked.
 * @packageDocumentation
 */

export type { Dialer, DialInit, GuardedFetch, NetPolicy, ResolvedAddress } from "./port.ts";
export { addressKind, type AddressKind } from "./address.ts";
export { addressProblem, guardedFetch } from "./guard.ts";
