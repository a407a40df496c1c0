import { lookup } from "node:dns/promises";
import { isIP, isIPv6 } from "node:net";
import type { Authenticator } from "@parley/a2a/auth";
import { isLoopback } from "@parley/a2a/protocol";

/* Where a server listens, and what it needs before other machines may reach it. */

/** The options that say who may reach a server, and how. */
export interface Exposure {
  readonly authenticator?: Authenticator;
  readonly publicUrl?: string;
  readonly insecure?: boolean;
  readonly tls?: object;
  readonly trustProxy?: unknown;
}

/**
 * Refuses to serve other machines without an authenticator, without a `publicUrl`, and without encryption.
 *
 * @param address - The IP address of `host`.
 */
export function refuseOpenDoor(host: string, address: string, options: Exposure): void {
  if (isLoopback(address)) return;
  const { authenticator, insecure = false, publicUrl, tls, trustProxy } = options;
  const reached = `The host ${host} can be reached from other machines, and`;
  if (authenticator === undefined && !insecure) {
    throw new Error(
      `${reached} there is no authenticator. Set \`authenticator\`, or set \`insecure: true\` to let everyone use the agents`,
    );
  }
  if (publicUrl === undefined) {
    throw new Error(
      `${reached} there is no publicUrl. Set \`publicUrl\` to the URL at which clients reach this server, such as ` +
        '"https://agents.example.com"',
    );
  }
  if (tls === undefined && trustProxy === undefined && !insecure) {
    throw new Error(
      `${reached} everyone on the way can read what is sent, credentials included. Set \`tls\`, or set \`trustProxy\` to the ` +
        'addresses of the proxies that encrypt the connections of clients, such as ["10.0.0.0/8"]. `insecure: true` serves ' +
        "everyone over plain HTTP",
    );
  }
}

/** Resolves a host name. */
export async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  try {
    return (await lookup(host)).address;
  } catch (cause) {
    throw new Error(
      `Cannot listen on ${host}: the name has no address. Set \`host\` to an IP address or another name`,
      {
        cause,
      },
    );
  }
}

export function urlOf(host: string, port: number, tls: boolean): string {
  return `${tls ? "https" : "http"}://${bracketed(host)}:${port}`;
}

/** A host as URLs have it: addresses of IPv6 are in brackets. */
export function bracketed(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}
