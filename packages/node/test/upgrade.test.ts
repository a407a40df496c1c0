import type { Socket } from "node:net";
import type { ServerHost } from "@parley/a2a/protocol";
import { afterEach, describe, expect, it, vi } from "vitest";
import { anonymous, jsonRpcBinding, memoryStore } from "@parley/server";
import { serve, type Server, type UpgradeBinding, type UpgradedConnection } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";
import { RawClient } from "./support/host.ts";

/** Tests connections that a binding takes over from HTTP/1.1 (RFC 9110 §7.8). */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

/** Creates a binding with a protocol that answers in capitals. */
function shouting(upgrade?: (connection: UpgradedConnection) => void, close = (): void => {}): UpgradeBinding {
  const take = ({ socket, head }: UpgradedConnection): void => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n");
    socket.on("error", () => {}).on("data", (chunk: Buffer) => socket.write(chunk.toString().toUpperCase()));
    if (head.length > 0) socket.emit("data", head);
  };
  return {
    name: "https://example.com/bindings/shout",
    upgradesTo: "shout",
    interfaces: ({ url }) => [{ url: `${url}/shout` }],
    http: {
      claim: () => ({ paths: [{ path: "/shout" }] }),
      open: () => ({ answer: () => ({ status: 426, headers: { upgrade: "shout" } }), upgrade: upgrade ?? take, close }),
    },
  };
}

async function start(binding: UpgradeBinding): Promise<RawClient> {
  const server = await serve(echoAgent(), {
    port: 0,
    signals: false,
    logger: false,
    store: memoryStore(),
    bindings: [jsonRpcBinding(), binding],
  });
  running.push(server);
  return RawClient.to(server.port);
}

const asking = (path: string, protocol = "shout", more = ""): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: ${protocol}\r\n${more}\r\n`;

describe("a request for an upgrade", () => {
  it("goes to the binding that claims the path, with the bytes after it", async () => {
    using client = await start(shouting());
    client.socket.write(`${asking("/shout")}early `);
    client.socket.write("late");
    const text = await client.until((all) => all.endsWith("LATE"));
    expect(text).toMatch(/^HTTP\/1\.1 101 .*\r\n\r\nEARLY LATE$/s);
  });

  it.each([
    ["of a path without an upgrading binding", asking("/"), "405"],
    ["of an unknown path", asking("/nothing"), "404"],
    ["to another protocol", asking("/shout", "h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"), "426"],
    ["of a page of another origin", asking("/shout", "shout", "Origin: https://evil.example\r\n"), "403"],
  ])("%s is answered like an ordinary request, and the connection continues", async (_what, asked, status) => {
    using client = await start(shouting());
    for (const round of [1, 2]) {
      client.socket.write(asked);
      await client.until((text) => text.split(`HTTP/1.1 ${status} `).length > round);
    }
    client.socket.write("GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await client.until((text) => text.includes('"name":"Echo"'));
  });

  it("that has a body is answered over HTTP, and its body is read (RFC 9112 §6)", async () => {
    using client = await start(shouting());
    const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "ListTasks", params: {} });
    const head = ["POST / HTTP/1.1", "Host: localhost", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"];
    const type = ["Content-Type: application/json", `Content-Length: ${body.length}`, "", ""];
    client.socket.write([...head, ...type].join("\r\n") + body.slice(0, 10));
    client.socket.write(body.slice(10));
    expect(await client.until((text) => text.includes('"id":7'))).toContain("HTTP/1.1 200 ");
  });

  it("whose binding fails closes only its own connection", async () => {
    using client = await start(
      shouting(() => {
        throw new Error("defect");
      }),
    );
    client.socket.write(asking("/shout"));
    expect(await client.ended()).toBe("");
  });
});

it("an upgraded connection stays open until the server has stopped, which closes its binding", async () => {
  const close = vi.fn<() => void>();
  using client = await start(shouting(undefined, close));
  client.socket.write(asking("/shout"));
  await client.until((text) => text.includes("101"));
  const [server] = running.splice(0) as [Server];
  await server.close({ grace: 0 });
  expect(close).toHaveBeenCalledTimes(1);
  await client.ended();
});

describe("a connection that was taken over", () => {
  it("reaches the current service: another one, and none when its agent is removed", async () => {
    const seen: (string | undefined)[] = [];
    const named = (name: string) => ({ ...echoAgent(), name });
    const binding = shouting();
    const answered = async (socket: Socket, services: ServerHost["services"]): Promise<void> => {
      const context = { principal: anonymous, version: "1.0", extensions: [] };
      const reply = await services.get(undefined)?.call("ListTasks", {}, context);
      seen.push(reply === undefined ? "none" : String(reply.payload.value.tasks.length));
      socket.write("done;");
    };
    const answering: UpgradeBinding = {
      ...binding,
      http: {
        claim: () => ({ paths: [{ path: "/shout" }] }),
        open: ({ services }) => ({
          answer: () => ({ status: 426, headers: {} }),
          upgrade: ({ socket }) => {
            socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n");
            socket.on("error", () => {}).on("data", () => void answered(socket, services));
          },
        }),
      },
    };
    const server = await serve([{ agent: named("A"), path: "/a" }], {
      port: 0,
      signals: false,
      logger: false,
      store: memoryStore(),
      bindings: [jsonRpcBinding(), answering],
    });
    running.push(server);
    using client = await RawClient.to(server.port);
    const ask = async (count: number): Promise<void> => {
      client.socket.write("ask");
      await client.until((text) => text.split("done;").length > count);
    };
    client.socket.write(asking("/a/shout"));
    await client.until((text) => text.includes("101"));
    await ask(1);
    server.mounts.replace({ agent: named("B"), path: "/a" });
    await ask(2);
    await server.mounts.remove("/a");
    await ask(3);
    expect(seen).toEqual(["0", "0", "none"]);
  });
});
