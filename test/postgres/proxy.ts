import { connect, createServer, type Socket } from "node:net";

/**
 * `cut`: what the client sent does not arrive, and the connection ends. `cut after`: it arrives, and the answer does not. With `answer` the
 * client gets that before the connection ends. `swallow`: from then on nothing of that connection arrives, and nobody is told.
 */
export type Harm = "cut" | "cut after" | "swallow" | { readonly way: "cut" | "cut after"; readonly answer: Uint8Array };

/** An error as a server or a pooler sends it. */
export function errorMessage(severity: "ERROR" | "FATAL", state: string, text: string): Uint8Array {
  const fields = Buffer.from(`S${severity}\0V${severity}\0C${state}\0M${text}\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** A proxy between a client and a server, which can inject faults. */
export interface Proxy {
  readonly port: number;
  /** The port of the server that new connections reach. */
  target: number;
  /** Called with each piece that the client sends. */
  onRequest: (text: string) => Harm | undefined;
  /** Whether nothing passes, while connections stay open. */
  isSilent: boolean;
  /** Blocks all traffic on the connections that there are, and leaves them open, as a NAT does that has forgotten them. New ones work. */
  forget(): void;
  /** Ends the connections of clients, and not those to the server. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts a proxy before a server on this machine. */
export async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(proxy.target, "127.0.0.1");
    let isCut = false;
    let isSwallowed = false;
    let last: Uint8Array | undefined;
    const end = (): void => {
      if (last === undefined) client.destroy();
      else client.end(last);
    };
    clients.add(client);
    let isLeft = false;
    client.on("left", () => (isLeft = true));
    client.on("forgotten", () => (isSwallowed = true));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        clients.delete(client);
        client.destroy();
        if (!isLeft) upstream.destroy();
      });
    }
    client.on("data", (bytes) => {
      if (proxy.isSilent || isSwallowed) return;
      const harm = proxy.onRequest(bytes.toString("latin1"));
      const way = typeof harm === "object" ? harm.way : harm;
      if (typeof harm === "object") last = harm.answer;
      if (way === "cut") return end();
      if (way === "swallow") return void (isSwallowed = true);
      isCut ||= way === "cut after";
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      // What the server answers shows that it is done.
      if (isCut) end();
      else if (!proxy.isSilent && !isSwallowed) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const proxy: Proxy = {
    port: typeof address === "object" && address !== null ? address.port : 0,
    target,
    onRequest: () => undefined,
    isSilent: false,
    forget() {
      for (const client of clients) client.emit("forgotten");
    },
    cut() {
      for (const client of clients) {
        client.emit("left");
        client.destroy();
      }
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
