import { connect, createServer, type Socket } from "node:net";

/** What stands between a client and a server, and can do harm. */
export interface Proxy {
  readonly port: number;
  /** Called with each piece that the client sends. `cut`: it does not arrive, and the connection ends. `cut after`: it arrives, and the answer does not. */
  onRequest: (text: string) => "cut" | "cut after" | undefined;
  /** Whether nothing passes any more, while connections stay open. */
  isSilent: boolean;
  close(): Promise<void>;
}

/** Starts a proxy before a server on this machine. */
export async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    let isCut = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", (bytes) => {
      if (proxy.isSilent) return;
      const harm = proxy.onRequest(bytes.toString("latin1"));
      if (harm === "cut") return void client.destroy();
      isCut ||= harm === "cut after";
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      // What the server answers shows that it is done.
      if (isCut) client.destroy();
      else if (!proxy.isSilent) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const proxy: Proxy = {
    port: typeof address === "object" && address !== null ? address.port : 0,
    onRequest: () => undefined,
    isSilent: false,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
