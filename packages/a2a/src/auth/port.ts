import type { Principal, UniversalRequest } from "../protocol/index.ts";
import type { SecurityRequirement, SecurityScheme } from "../model/index.ts";

/**
 * Finds out who calls (A2A 1.0 §7.4). It also says what the card declares. `bearer()` is one for bearer tokens.
 *
 * @example
 * ```ts
 * const byKey: Authenticator = {
 *   securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "x-api-key" } } },
 *   securityRequirements: [{ schemes: { key: { list: [] } } }],
 *   authenticate(request) {
 *     if (request.header("x-api-key") === "secret") return { subject: "ada" };
 *     throw new A2AError("Unauthenticated", "The API key is missing or wrong");
 *   },
 * };
 * ```
 */
export interface Authenticator {
  /**
   * Returns the caller of a request. Do not read the body here.
   *
   * @throws A2AError `Unauthenticated` with a `challenge` where nobody is known, `PermissionDenied` where a known caller
   * may not call.
   */
  authenticate(request: UniversalRequest): Promise<Principal> | Principal;
  /** Schemes for the card (A2A 1.0 §4.5.1), by name. */
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  /** Requirements for the card. Their names refer to `securitySchemes`. */
  readonly securityRequirements: readonly SecurityRequirement[];
}
