import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { sendBody } from "./harness/bodies.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/* Tests DNS rebinding: a page of `evil.example` calls a server on loopback, after the page's host name starts to resolve to this machine. */

const attacked = servers();

function ask(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const body = sendBody({ words: "work" });
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method: "POST", headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

describe("a server on loopback without authentication", () => {
  const type = { "content-type": "application/json", "a2a-version": "1.0" };

  it("rejects foreign names in each header, and accepts its own", async () => {
    const server = await attacked.start();
    const { port } = server;
    const evil = "evil.example";
    await withstands(server, async () => {
      const hostile: Readonly<Record<string, string>>[] = [
        { host: evil },
        { host: `${evil}:${port}` },
        { host: `127.0.0.1.${evil}:${port}` },
        { host: `localhost.${evil}` },
        { host: `127.0.0.1:${port}`, origin: `http://${evil}:${port}` },
        { host: `${evil}:${port}`, origin: `http://${evil}:${port}` },
        { host: `localhost:${port}`, origin: "null" },
      ];
      for (const headers of hostile) {
        for (const path of ["/message:send", "/"]) {
          const status = await ask(port, path, { ...type, ...headers });
          expect({ headers, path, refused: status >= 400 && status < 500 }).toEqual({ headers, path, refused: true });
        }
      }
      const ours = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
      for (const host of ours) expect([host, await ask(port, "/message:send", { ...type, host })]).toEqual([host, 200]);
    });
  });
});
