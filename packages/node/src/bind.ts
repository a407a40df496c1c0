import type { AddressInfo, Server as NetServer } from "node:net";

/** Listens. Resolves with the port number. Rejects with an error that says why the port cannot be used. */
export function bind(server: NetServer, host: string, port: number): Promise<number> {
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
  EADDRINUSE: "another process uses this port. Choose another port, or 0 for any free port",
  EACCES: "the user of this process may not use this port. Ports below 1024 often need more rights",
  EADDRNOTAVAIL: "this machine has no such address",
};
