import { A2AError } from "../model/index.ts";
import type { ChallengeProblem, ProtectedResource } from "./port.ts";

/* Challenges: the values of `WWW-Authenticate` (RFC 9110 §11.6.1). */

/** Parameters of a challenge. Omits those that are `undefined`. */
export type ChallengeParams = Readonly<Record<string, string | undefined>>;

/**
 * Writes a challenge.
 *
 * @param scheme - Name of the authentication scheme: `Bearer`.
 * @param params - Its parameters, written as quoted strings. Replaces characters other than printable ASCII by `?`.
 *
 * @example
 * ```ts
 * challenge("Bearer", { realm: "agents", error: "invalid_token" }); // Bearer realm="agents", error="invalid_token"
 * ```
 */
export function challenge(scheme: string, params: ChallengeParams = {}): string {
  const written = Object.entries(params).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}="${quoted(value)}"`],
  );
  return written.length === 0 ? scheme : `${scheme} ${written.join(", ")}`;
}

function quoted(value: string): string {
  return value.replaceAll(/[^\x20-\x7e]/g, "?").replaceAll(/["\\]/g, "\\$&");
}

/** The parameters of a problem (RFC 6750 §3). */
export function problemParams(problem: ChallengeProblem | undefined): ChallengeParams {
  return problem === undefined
    ? {}
    : { error: problem.error, error_description: problem.description, scope: problem.scope };
}

/** The error for a rejected caller, with the challenges that it can answer, each once. */
export function unauthenticated(message: string | undefined, challenges: readonly (string | undefined)[]): A2AError {
  const all = [...new Set(challenges)].filter((one) => one !== undefined && one !== "");
  return new A2AError("Unauthenticated", message, all.length === 0 ? {} : { challenge: all.join(", ") });
}

/* The metadata of agents as protected resources (RFC 9728). */

interface ResourceDescription {
  readonly resource: string;
  /** Its display name. */
  readonly name?: string | undefined;
  /** Web page for developers of clients. */
  readonly documentation?: string | undefined;
}

/** The metadata of a resource (RFC 9728 §2). */
export function resourceMetadata(
  { authorizationServers, scopes, dpopAlgorithms, certificateBound }: ProtectedResource,
  { resource, name, documentation }: ResourceDescription,
): Readonly<Record<string, unknown>> {
  return {
    resource,
    authorization_servers: authorizationServers,
    ...(scopes !== undefined && { scopes_supported: scopes }),
    bearer_methods_supported: ["header"],
    ...(dpopAlgorithms !== undefined && { dpop_signing_alg_values_supported: dpopAlgorithms }),
    ...(certificateBound === true && { tls_client_certificate_bound_access_tokens: true }),
    ...(name !== undefined && { resource_name: name }),
    ...(documentation !== undefined && { resource_documentation: documentation }),
  };
}
