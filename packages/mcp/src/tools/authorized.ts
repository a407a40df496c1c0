import type { CredentialProvider, SchemeRequest } from "@parley/a2a/credentials";

/* OAuth for MCP servers, by the providers that clients of agents use. */

/**
 * Sends a request with credentials for the server, and once more with others if it rejects them.
 *
 * @param url - The MCP server: the resource that tokens are for (RFC 8707).
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

/** Where a server's metadata is if it does not say so (RFC 9728 §3.1), as challenges. */
function metadataOf(url: string): string[] {
  const { origin, pathname } = new URL(url);
  const paths = new Set([pathname.replace(/\/$/, ""), ""]);
  return [...paths].map((path) => `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource${path}"`);
}

/** MCP servers take bearer tokens, and name their authorization server when they reject a request (RFC 9728). */
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
