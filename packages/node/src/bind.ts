import type { AddressInfo, Server as NetServer } from "node:net";
import { setImmediate as nextRound } from "node:timers/promises";

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

/** How long connections that wait are accepted before a server stops listening, in milliseconds. */
const longestAccepting = 1_000;
/** A round of the event loop in less than this found no work, in milliseconds. */
const quietRound = 0.1;

/**
 * Stops listening. The kernel resets a connection that it has established and that nobody has accepted when the listener closes, and a TCP
 * balancer cannot repeat it. Node accepts one connection in a round of the event loop, so this waits for a round that accepts none and has
 * nothing else to do.
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
