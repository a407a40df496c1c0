import { createServer } from "node:net";

/**
 * A port for servers that stop and restart. It is outside the range of ephemeral ports: while no server listens, a client could get
 * such a port as its own local port, and then connect to itself. `fetch()` and browsers block port 10080.
 */
export async function reservePort(): Promise<number> {
  for (;;) {
    const port = 10_100 + Math.floor(Math.random() * 20_000);
    const probe = createServer();
    const free = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
