import { BlockList, isIP, isIPv6 } from "node:net";
import type { AgentCard } from "@parley/a2a";

/** Where a gRPC server is. */
export interface Address {
  /** As `http2.connect` takes it: `https://agents.example.com:443`. */
  readonly origin: string;
}

const schemes: Readonly<Record<string, "http" | "https">> = {
  http: "http",
  grpc: "http",
  https: "https",
  grpcs: "https",
};

/**
 * Reads the address of an interface: `host:port`, as the specification has it for gRPC, or a URL with `grpc`, `grpcs`, `http` or
 * `https`. A bare one means TLS, unless it is on this machine or all that the card says of HTTP is without TLS.
 */
export function readAddress(url: string, card?: AgentCard): Address | undefined {
  const match = /^(?:([a-z]+):\/\/)?([^/?#@\s]+)\/?$/i.exec(url);
  if (match === null) return undefined;
  const [, scheme, authority = ""] = match;
  const known = scheme === undefined ? undefined : schemes[scheme.toLowerCase()];
  if (scheme !== undefined && known === undefined) return undefined;
  const host = hostOf(authority);
  if (host === undefined) return undefined;
  const protocol = known ?? (isLoopback(host) || isPlain(card) ? "http" : "https");
  return { origin: new URL(`${protocol}://${authority}`).origin };
}

function hostOf(authority: string): string | undefined {
  if (!URL.canParse(`http://${authority}`)) return undefined;
  const { hostname } = new URL(`http://${authority}`);
  return hostname === "" ? undefined : hostname.replace(/^\[|\]$/g, "");
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host === "localhost" || host.endsWith(".localhost");
  return loopback.check(host, isIPv6(host) ? "ipv6" : "ipv4");
}

function isPlain(card: AgentCard | undefined): boolean {
  const urls = (card?.supportedInterfaces ?? []).map(({ url }) => url.toLowerCase());
  return urls.some((url) => url.startsWith("http://")) && !urls.some((url) => url.startsWith("https://"));
}
