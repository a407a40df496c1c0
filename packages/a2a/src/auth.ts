/** Who calls, and what they may do: authenticators for the schemes of a card, how they combine, and policies. */

export type { AuthenticationPlace, ProtectedResource } from "./auth/index.ts";
