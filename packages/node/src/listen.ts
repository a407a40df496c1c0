import { lookup } from "node:dns/promises";
import { isIP, isIPv6, type Server as NetServer } from "node:net";
import { setImmediate as nextRound } from "node:timers/promises";
import type { Authenticator } from "@parley/a2a/auth";
import { isLoopback, type Logger } from "@parley/a2a/internal/base/index";
import type { UniversalHandler } from "@parley/a2a/internal/protocol/index";
import type { AnyPathBinding } from "@parley/a2a/internal/transport/server/binding";
import type { ServerBinding } from "@parley/server/internal/handler";
import type { TrustProxy } from "./http/proxies.ts";

/* Listening, and the options that are required before other machines may reach a server. */

/** The options that determine who may reach a server, and how. */
export interface Exposure {
  readonly authenticator?: Authenticator;
  readonly console?: boolean | object;
  readonly publicUrl?: string;
  readonly insecure?: boolean;
  readonly tls?: object;
  readonly trustProxy?: TrustProxy;
}

/**
 * Throws if other machines could reach the server without an authenticator, a `publicUrl` or encryption.
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
      `${reached} its traffic, credentials included, is not encrypted. Set \`tls\`, or set \`trustProxy\` to the ` +
        'addresses of the proxies that encrypt the connections of clients, such as ["10.0.0.0/8"]. `insecure: true` serves ' +
        "everyone over plain HTTP",
    );
  }
}

/** Throws if other machines could reach the console without an authenticator, even with `insecure`, because the console lists all tasks. */
export function refuseOpenConsole(host: string, address: string, options: Exposure): void {
  const { authenticator, console: wanted = false, publicUrl, trustProxy } = options;
  if (wanted === false || authenticator !== undefined) return;
  // A proxy on this machine makes the server reachable from other machines.
  const isLocalUrl = publicUrl === undefined || (URL.canParse(publicUrl) && isLoopback(new URL(publicUrl).hostname));
  if (isLoopback(address) && isLocalUrl && trustProxy === undefined) return;
  const where = isLoopback(address) ? (isLocalUrl ? "its proxy" : publicUrl) : host;
  throw new Error(
    `The console can be reached from other machines by ${where}, and there is no authenticator. Set \`authenticator\`, or leave ` +
      "`console` out",
  );
}

/** Rejects an authenticator that asks a framework for its users: `serve()` has no framework, so every call would fail. */
export function refuseHostUser({ authenticator }: Pick<Exposure, "authenticator">): void {
  if (authenticator?.needsMount !== true) return;
  throw new Error(
    "hostUser() reads the user from a web framework, and serve() has none. Mount the agents in the framework with " +
      "`expressMount`, `fastifyMount`, `fetchMount` or `nodeListener` with the option `principal`, or set another `authenticator`",
  );
}

/** Whether to request client certificates: for mutual TLS (A2A 1.0 §4.5.6), or for certificate-bound tokens (RFC 8705). */
export function asksForCertificates(
  authenticator: Pick<Authenticator, "securitySchemes" | "resource"> | undefined,
): boolean {
  const { securitySchemes = {}, resource } = authenticator ?? {};
  return (
    resource?.certificateBound === true ||
    Object.values(securitySchemes).some(({ mtlsSecurityScheme }) => mtlsSecurityScheme !== undefined)
  );
}

/** Warns if the authenticator needs client certificates but none can reach it. */
export function warnOfMutualTls(options: Exposure, logger: Logger): void {
  const { tls, trustProxy } = options;
  const isTold = typeof trustProxy === "object" && "certificate" in trustProxy;
  if (tls !== undefined || isTold || !asksForCertificates(options.authenticator)) return;
  logger.warn("The authenticator needs client certificates, but none can reach this server", {
    set: "tls, or trustProxy.certificate",
  });
}

/** Resolves a host name. */
export async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  try {
    return (await lookup(host)).address;
  } catch (cause) {
    throw new Error(
      `Cannot listen on ${host}: the name has no address. Set \`host\` to an IP address or another name`,
      { cause },
    );
  }
}

export function urlOf(host: string, port: number, tls: boolean): string {
  return `${tls ? "https" : "http"}://${bracketed(host)}:${port}`;
}

/** A host as in URLs: IPv6 addresses get brackets. */
export function bracketed(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}

/** A binding on its own port. It recognizes its requests by their headers, as gRPC does, because it has no paths. */
export interface BindingOnPort {
  /** The binding. */
  readonly binding: AnyPathBinding;
  /** The port; 0 for any free port. */
  readonly port: number;
}

export function hasOwnPort(binding: ServerBinding | BindingOnPort): binding is BindingOnPort {
  return "port" in binding;
}

/** The entries on cards for a binding that is served on its own port. */
export function elsewhere(binding: AnyPathBinding, port: number): ServerBinding {
  return {
    name: binding.name,
    interfaces: ({ url, ...agent }, codec) => binding.interfaces({ ...agent, url: withPort(url, port) }, codec),
  };
}

function withPort(text: string, port: number): string {
  const url = new URL(text);
  url.port = String(port);
  return url.href.replace(/\/$/, "");
}

/** The answer on the port of one binding to requests that do not belong to that binding. */
export const nothingElse: UniversalHandler = () => ({
  status: 404,
  headers: { "content-type": "application/json" },
  body: '{"error":{"code":404,"status":"NOT_FOUND","message":"This port does not serve this protocol"}}',
});

/** Listens. Resolves with the port number. Rejects with an error that says why the port cannot be used. */
export async function bind(server: NetServer, host: string, port: number): Promise<number> {
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new TypeError(`port must be an integer from 0 to 65535; got ${JSON.stringify(port)}`);
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      reject(new Error(`Cannot listen on ${host}:${port}: ${reasons[cause.code ?? ""] ?? cause.message}`, { cause }));
    };
    server.once("error", onError);
    server.listen({ host, port }, () => {
      server.off("error", onError);
      resolve(portOf(server));
    });
  });
}

export function portOf(server: NetServer): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Maximum milliseconds for which a server still accepts pending connections before it stops listening. */
const longestAccepting = 1_000;
/** A turn of the event loop that takes less than this had no work, in milliseconds. */
const quietRound = 0.1;

/**
 * Stops listening. When the listener closes, the kernel resets connections that are established but not yet accepted, and a TCP load
 * balancer cannot retry them. Node accepts one connection per turn of the event loop, so this waits for an idle turn that accepts
 * none.
 *
 * @param acceptedCount - How many connections the server has accepted so far.
 */
export async function stopListening(server: NetServer, acceptedCount: () => number): Promise<void> {
  const since = performance.now();
  let [round, accepted] = [since, -1];
  while (server.listening) {
    const [now, count] = [performance.now(), acceptedCount()];
    const isQuiet = count === accepted && now - round < quietRound;
    if (isQuiet || now - since > longestAccepting) break;
    [round, accepted] = [now, count];
    await nextRound();
  }
  server.close();
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process uses this port. Choose another port, or 0 for any free port",
  EACCES: "the user of this process may not use this port. Ports below 1024 often need more rights",
  EADDRNOTAVAIL: "this machine has no such address",
};
