import type { CredentialProvider, SchemeRequest } from "@parley/a2a/credentials";

/* OAuth for MCP servers, with the credential providers that agent clients use. */

/**
 * Sends a request with credentials for the server. If the server rejects the credentials, retries once with new credentials.
 *
 * @param url - URL of the MCP server, the resource for which tokens are issued (RFC 8707).
 */
export async function authorized(
  provider: CredentialProvider,
  url: string,
  { method = "GET", signal }: RequestInit,
  send: (headers: Readonly<Record<string, string>>) => Promise<Response>,
): Promise<Response> {
  const request: SchemeRequest = { ...anyBearer, resource: url, ...(signal instanceof AbortSignal && { signal }) };
  let hasSent = false;
  const attempt = async (): Promise<Response> => {
    const { headers = {} } = await provider.credentials(request, { method, url });
    hasSent = Object.keys(headers).length > 0;
    const response = await send(headers);
    provider.answered?.(request, response.headers);
    return response;
  };
  const response = await attempt();
  if (response.status !== 401 && response.status !== 403) return response;
  const challenge = response.headers.get("www-authenticate") ?? undefined;
  const isNamed = hasSent || challenge?.includes("resource_metadata") === true;
  for (const each of isNamed ? [challenge] : metadataOf(url)) {
    if ((await provider.refused?.(request, each)) !== true) continue;
    await response.body?.cancel();
    return attempt();
  }
  return response;
}

/** The default locations of a server's metadata (RFC 9728 §3.1), as challenges. */
function metadataOf(url: string): string[] {
  const { origin, pathname } = new URL(url);
  const paths = new Set([pathname.replace(/\/$/, ""), ""]);
  return [...paths].map((path) => `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource${path}"`);
}

/** MCP servers accept bearer tokens, and name their authorization server in the rejection of a request (RFC 9728). */
const anyBearer: Omit<SchemeRequest, "resource"> = {
  name: "mcp",
  scheme: { httpAuthSecurityScheme: { scheme: "Bearer" } },
  scopes: [],
  card: {
    name: "",
    description: "",
    version: "",
    supportedInterfaces: [],
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
  },
};
