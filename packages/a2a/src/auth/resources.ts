import type { ProtectedResource } from "./port.ts";

/* The metadata of agents as resources that tokens are for (RFC 9728). */

/** What the metadata of a resource says about it, beside its tokens. */
export interface ResourceDescription {
  /** Its URL. */
  readonly resource: string;
  /** Its name, for people. */
  readonly name?: string | undefined;
  /** Web page for those who write clients. */
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
