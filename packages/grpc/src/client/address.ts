import type { AgentCard } from "@parley/a2a";

const schemes: Readonly<Record<string, "http" | "https">> = {
  http: "http",
  grpc: "http",
  https: "https",
  grpcs: "https",
};

/**
 * The origin of a gRPC interface, such as `https://agents.example.com:8443`; `undefined` for what is no address of gRPC. It
 * is written `host:port`, as the specification has it, or as a URL of `grpc`, `grpcs`, `http` or `https`. A bare one means TLS, unless
 * it is on this machine or all that the card says of HTTP is without TLS.
 */
export function originOf(url: string, card?: AgentCard): string | undefined {
  const match = /^(?:([a-z]+):\/\/)?([^/?#@\s]+)\/?$/i.exec(url);
  if (match === null) return undefined;
  const [, scheme, authority = ""] = match;
  const known = scheme === undefined ? undefined : schemes[scheme.toLowerCase()];
  if ((scheme !== undefined && known === undefined) || !URL.canParse(`http://${authority}`)) return undefined;
  const { hostname } = new URL(`http://${authority}`);
  const protocol = known ?? (isLoopback(hostname) || isPlain(card) ? "http" : "https");
  return new URL(`${protocol}://${authority}`).origin;
}

/** Of a host as URLs have it: addresses in their shortest form. */
function isLoopback(hostname: string): boolean {
  return /^(?:127(?:\.\d+){3}|\[::1\]|(?:.+\.)?localhost)$/.test(hostname);
}

function isPlain(card: AgentCard | undefined): boolean {
  const urls = (card?.supportedInterfaces ?? []).map(({ url }) => url.toLowerCase());
  return urls.some((url) => url.startsWith("http://")) && !urls.some((url) => url.startsWith("https://"));
}
