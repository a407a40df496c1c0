import { lookup } from "node:dns/promises";
import { isIP, isIPv6, type AddressInfo, type Server } from "node:net";

/** The address that a server on `host` listens on. */
export async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  try {
    return (await lookup(host)).address;
  } catch (cause) {
    throw new Error(`Cannot listen on ${host}: this machine knows no address of that name; give it an address`, {
      cause,
    });
  }
}

export function urlOf(host: string, port: number, tls: boolean): string {
  return `${tls ? "https" : "http"}://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Listens, and says in plain words why it cannot. Gives the port that was bound. */
export function bind(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      reject(new Error(`Cannot listen on ${host}:${port}: ${reasons[cause.code ?? ""] ?? cause.message}`, { cause }));
    };
    server.once("error", onError);
    server.listen({ host, port }, () => {
      server.off("error", onError);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process listens there; choose another port, or 0 for any that is free",
  EACCES: "this user may not listen there; ports below 1024 often need more rights",
  EADDRNOTAVAIL: "this machine has no such address",
};
