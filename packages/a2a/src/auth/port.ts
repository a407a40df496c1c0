import type { Principal, UniversalRequest } from "../protocol/index.ts";
import type { SecurityRequirement, SecurityScheme } from "../model/index.ts";

/**
 * Finds out who calls (A2A 1.0 §7). Throws `Unauthenticated` with a `challenge`, or `PermissionDenied`.
 * It also says what to declare on the card.
 */
export interface Authenticator {
  authenticate(request: UniversalRequest): Promise<Principal> | Principal;
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  readonly securityRequirements: readonly SecurityRequirement[];
}
