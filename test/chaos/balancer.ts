import { connect, createServer, type Socket } from "node:net";

/** Forwards bytes to local servers without reading them. Each connection goes to the next server. */
export interface Balancer {
  readonly port: number;
  /** Ends a share of the connections, such as 0.5. Returns how many were ended. */
  cut(share: number): number;
  /** Holds back all bytes of all connections, as if packets were lost without a reset. After `hold(false)`, the held bytes pass. */
  hold(isHeld: boolean): void;
  close(): Promise<void>;
}

/** Starts a balancer for these ports. If a server refuses a connection, the balancer closes the client's connection. */
export async function startBalancer(targets: readonly number[]): Promise<Balancer> {
  const open = new Map<Socket, Socket>();
  let turn = 0;
  let isHeld = false;
  const join = (client: Socket, upstream: Socket): void => {
    client.pipe(upstream);
    upstream.pipe(client);
  };
  const server = createServer({ noDelay: true, pauseOnConnect: true }, (client) => {
    const upstream = connect({ port: targets[turn++ % targets.length] ?? 0, host: "127.0.0.1", noDelay: true });
    open.set(client, upstream);
    const end = (): void => {
      open.delete(client);
      client.destroy();
      upstream.destroy();
    };
    client.on("error", end).on("close", end);
    upstream.on("error", end).on("close", end);
    if (!isHeld) join(client, upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    cut(share) {
      const cut = [...open.keys()].filter(() => Math.random() < share);
      for (const socket of cut) socket.resetAndDestroy();
      return cut.length;
    },
    hold(wanted) {
      isHeld = wanted;
      for (const [client, upstream] of open) {
        if (!wanted) join(client, upstream);
        else {
          client.unpipe(upstream);
          upstream.unpipe(client);
        }
      }
    },
    async close() {
      for (const socket of open.keys()) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
