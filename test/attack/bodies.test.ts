import { describe, it } from "vitest";
import { mebi } from "./harness/bodies.ts";
import { Connection, head } from "./harness/connection.ts";
import { Http2Connection } from "./harness/http2-connection.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/* Request bodies that arrive in one-byte pieces, and request bodies that never end. */

const json = { "content-type": "application/json", "a2a-version": "1.0" };
const attacked = servers();

/** This number of pieces exceeds the server's heap if each piece takes a few hundred bytes. */
const pieces = 4 * mebi;

describe("a body in one-byte pieces", () => {
  it("takes memory for its bytes and not for its pieces over HTTP/1.1", async () => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const attacker = await Connection.to(server.port);
      await attacker.send(head("/message:send", { ...json, "transfer-encoding": "chunked" }));
      const many = Buffer.from("1\r\n \r\n".repeat(8192));
      for (let sent = 0; sent < pieces && !attacker.over; sent += 8192) await attacker.send(many);
      await other.answers(3);
      attacker.close();
    });
  });

  it("takes memory for its bytes and not for its pieces over HTTP/2", async () => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const attacker = await Http2Connection.to(server.port);
      await attacker.pieces(await attacker.open("/message:send", json), pieces);
      await other.answers(3);
      attacker.close();
    });
  });

  it.each([
    ["gRPC", "/lf.a2a.v1.A2AService/SendMessage"],
    ["gRPC's health check", "/grpc.health.v1.Health/Check"],
  ])("takes memory for its bytes and not for its pieces over %s", async (_name, path) => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const attacker = await Http2Connection.to(server.port);
      const start = Buffer.alloc(5);
      start.writeUInt32BE(9 * mebi, 1);
      const stream = await attacker.open(path, { "content-type": "application/grpc", te: "trailers" });
      await attacker.pieces(stream, pieces, start);
      await other.answers(3);
      attacker.close();
    });
  });
});

describe("request bodies that never end", () => {
  /** Sends all but the last byte of each request. */
  async function unfinished(port: number, count: number, size: number): Promise<readonly Connection[]> {
    const most = Buffer.alloc(size - 1, " ");
    return Promise.all(
      Array.from({ length: count }, async () => {
        const attacker = await Connection.to(port);
        await attacker.send(head("/message:send", { ...json, "content-length": size }));
        for (let at = 0; at < most.length && !attacker.over; at += mebi) {
          attacker.socket.write(most.subarray(at, at + mebi));
        }
        return attacker;
      }),
    );
  }

  it("do not fill the memory, 200 of 9.5 MiB on 200 connections, and other callers are answered", async () => {
    const server = await attacked.start();
    await withstands(server, async (other) => {
      const attackers = await unfinished(server.port, 200, 9.5 * mebi);
      await other.answers(10);
      for (const attacker of attackers) attacker.close();
    });
  });
});
