import { connect, createServer, type Socket } from "node:net";

/** Passes bytes on to servers of this machine: each connection to the next one. It knows nothing of what it passes on. */
export interface Balancer {
  readonly port: number;
  /** Ends a share of the connections, such as 0.5. */
  cut(share: number): number;
  close(): Promise<void>;
}

/** Starts a balancer before these ports. A server that refuses a connection gets none of it: its client is cut off. */
export async function startBalancer(targets: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>();
  let turn = 0;
  const server = createServer({ noDelay: true }, (client) => {
    open.add(client);
    const upstream = connect({ port: targets[turn++ % targets.length] ?? 0, host: "127.0.0.1", noDelay: true });
    const end = (): void => {
      open.delete(client);
      client.destroy();
      upstream.destroy();
    };
    client.on("error", end).on("close", end).pipe(upstream);
    upstream.on("error", end).on("close", end).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    cut(share) {
      const cut = [...open].filter(() => Math.random() < share);
      for (const socket of cut) socket.resetAndDestroy();
      return cut.length;
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
