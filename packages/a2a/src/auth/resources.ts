import { withoutSlashes } from "../base/index.ts";
import type { ProtectedResource } from "./port.ts";

/* Agents as resources that tokens are for (RFC 8707), and the metadata of them (RFC 9728). */

/** Whether one of the audiences of a token is one of the resources. A slash at the end does not count. */
export function isFor(audience: readonly string[], resources: readonly string[]): boolean {
  return audience.some((one) => resources.some((resource) => withoutSlashes(one) === withoutSlashes(resource)));
}

const metadataPath = "/.well-known/oauth-protected-resource";

/** The URL of the metadata of a resource: the well-known path is put between its host and its path (RFC 9728 §3.1). */
export function metadataUrlOf(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + metadataPath + withoutSlashes(pathname);
}

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
