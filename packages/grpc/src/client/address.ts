import type { AgentCard } from "@parley/a2a";
import { isLoopback } from "@parley/a2a/protocol";

const schemes: Readonly<Record<string, "http" | "https">> = {
  http: "http",
  grpc: "http",
  https: "https",
  grpcs: "https",
};

/**
 * The origin of a gRPC interface, such as `https://agents.example.com:8443`; `undefined` for what is no address of gRPC. It
 * is written `host:port`, as the specification has it, or as a URL of `grpc`, `grpcs`, `http` or `https`. Whether a bare one
 * means TLS is what the card's other addresses agree on, else that it is not on this machine.
 */
export function originOf(url: string, card?: AgentCard): string | undefined {
  const match = /^(?:([a-z]+):\/\/)?([^/?#@\s]+)\/?$/i.exec(url);
  if (match === null) return undefined;
  const [, scheme, authority = ""] = match;
  const known = scheme === undefined ? undefined : schemes[scheme.toLowerCase()];
  if ((scheme !== undefined && known === undefined) || !URL.canParse(`http://${authority}`)) return undefined;
  const { hostname } = new URL(`http://${authority}`);
  const protocol = known ?? schemeOf(card) ?? (isLoopback(hostname) ? "http" : "https");
  return new URL(`${protocol}://${authority}`).origin;
}

/** Of all its addresses that have one, if they agree. */
function schemeOf(card: AgentCard | undefined): "http" | "https" | undefined {
  const urls = card?.supportedInterfaces.map(({ url }) => /^(https?):\/\//i.exec(url)?.[1]?.toLowerCase()) ?? [];
  const found = new Set(urls.filter((scheme) => scheme === "http" || scheme === "https"));
  return found.size === 1 ? [...found][0] : undefined;
}
