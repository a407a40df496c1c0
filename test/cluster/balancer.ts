import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A simple load balancer, which gives each connection to the next server, whatever health the server reports. */
export interface Balancer {
  readonly url: string;
  /** The ports of the servers. If a server refuses a connection, the next server gets it. */
  targets: readonly number[];
  close(): void;
}

export async function startBalancer(): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let next = 0;
  const server = createServer((client) => {
    watch(client);
    const attempt = (left: number): void => {
      const target = balancer.targets[(next += 1) % Math.max(1, balancer.targets.length)];
      if (left === 0 || target === undefined) return void client.destroy();
      const upstream = connect(target, "127.0.0.1");
      watch(upstream);
      upstream.once("connect", () => {
        client.pipe(upstream).pipe(client);
        client.once("close", () => upstream.destroy());
        upstream.once("close", () => client.destroy());
        upstream.removeListener("close", retry);
      });
      const retry = (): void => attempt(left - 1);
      upstream.once("close", retry);
    };
    attempt(balancer.targets.length);
  });
  const watch = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const balancer: Balancer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    targets: [],
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
  return balancer;
}
