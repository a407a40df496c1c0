/**
 * Who calls, and what they may do: authenticators for the schemes of a card, how they combine, and policies.
 * @packageDocumentation
 */

export * from "./auth/index.ts";
export * from "./auth/tokens/index.ts";
