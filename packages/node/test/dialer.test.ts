import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { A2AError } from "@parley/server";
import { guardedFetch, type Dialer } from "@parley/a2a/protocol";
import { nodeDialer } from "../src/client/dialer.ts";
import { certificateFor } from "./support/certificate.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function portOf(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const toHere: Dialer["resolve"] = async () => [{ address: "127.0.0.1", family: 4 }];
const sayHost: RequestListener = (request, response) => response.end(request.headers.host);
const codeOf = (error: unknown): unknown => (error instanceof A2AError ? error.code : error);

describe("the Node dialer", () => {
  it("connects to the checked addresses, even if the name now resolves to others (DNS rebinding)", async () => {
    const port = await portOf(createServer(sayHost));
    const asked: string[] = [];
    const resolve: Dialer["resolve"] = async (name) => {
      asked.push(name);
      // A second lookup would return an attacker's address.
      if (asked.length > 1) throw new Error("was resolved again");
      return toHere(name);
    };
    const fetch = guardedFetch({ allowPrivate: true }, nodeDialer({ resolve }));
    const answer = await fetch(`http://rebinding.example:${port}/`);
    expect(await answer.text()).toBe(`rebinding.example:${port}`);
    expect(asked).toEqual(["rebinding.example"]);
  });

  it("does not call a name that resolves to this machine", async () => {
    let reached = false;
    const port = await portOf(createServer(() => (reached = true)));
    const fetch = guardedFetch({}, nodeDialer({ resolve: toHere }));
    const error: unknown = await fetch(`http://rebinding.example:${port}/`).catch((thrown: unknown) => thrown);
    expect([codeOf(error), reached]).toEqual(["InvalidParams", false]);
  });

  it("tries the next address when the first does not answer", async () => {
    const port = await portOf(createServer(sayHost));
    const resolve: Dialer["resolve"] = async () => [
      { address: "::1", family: 6 },
      { address: "127.0.0.1", family: 4 },
    ];
    const answer = await guardedFetch({ allowPrivate: true }, nodeDialer({ resolve }))(`http://a.example:${port}/`);
    expect(answer.status).toBe(200);
  });

  it("calls an address without a look-up", async () => {
    const port = await portOf(createServer(sayHost));
    const resolve: Dialer["resolve"] = () => Promise.reject(new Error("was resolved"));
    const answer = await guardedFetch({ allow: ["127.0.0.1"] }, nodeDialer({ resolve }))(`http://127.0.0.1:${port}/`);
    expect(await answer.text()).toBe(`127.0.0.1:${port}`);
  });

  it("resolves names with the system resolver", async () => {
    const port = await portOf(createServer(sayHost));
    const answer = await guardedFetch({ allow: ["localhost"] }, nodeDialer())(`http://localhost:${port}/`);
    expect(await answer.text()).toBe(`localhost:${port}`);
  });

  it("returns status, headers and body, and does not follow redirects", async () => {
    const port = await portOf(
      createServer((_request, response) => {
        response.setHeader("x-many", ["a", "b"]);
        response.writeHead(307, { location: "http://127.0.0.1/" }).end("moved");
      }),
    );
    const answer = await guardedFetch({ allowPrivate: true }, nodeDialer())(`http://127.0.0.1:${port}/`);
    expect([answer.status, answer.headers.get("x-many"), await answer.text()]).toEqual([307, "a, b", "moved"]);
  });

  it.each([204, 304])("returns a status %i, which has no body", async (status) => {
    const port = await portOf(createServer((_request, response) => response.writeHead(status).end()));
    const answer = await guardedFetch({ allowPrivate: true }, nodeDialer())(`http://127.0.0.1:${port}/`);
    expect([answer.status, answer.body]).toEqual([status, null]);
  });

  it("asks for uncompressed answers", async () => {
    const port = await portOf(createServer((request, response) => response.end(request.headers["accept-encoding"])));
    const answer = await guardedFetch({ allowPrivate: true }, nodeDialer())(`http://127.0.0.1:${port}/`);
    expect(await answer.text()).toBe("identity");
  });

  it("closes the connection when the body is canceled", async () => {
    let gone!: () => void;
    const closed = new Promise<void>((resolve) => (gone = resolve));
    const port = await portOf(
      createServer((_request, response) => {
        response.on("close", gone);
        response.write("half");
      }),
    );
    const answer = await guardedFetch({ allowPrivate: true }, nodeDialer())(`http://127.0.0.1:${port}/`);
    await answer.body?.cancel();
    await expect(closed).resolves.toBeUndefined();
  });

  it("ends when the signal of the call fires, also within the answer", async () => {
    const port = await portOf(createServer((_request, response) => response.write("half")));
    const fetch = guardedFetch({ allowPrivate: true, timeout: 200 }, nodeDialer());
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    const error: unknown = await answer.text().catch((thrown: unknown) => thrown);
    expect(codeOf(error)).toBe("Timeout");
  });

  it("sends the host name to a TLS server, and accepts only a certificate of that name", async () => {
    const { cert, key } = await certificateFor("hooks.example");
    const server = createTlsServer({ cert, key }, (request, response) => {
      response.end(`${request.headers.host} ${String((request.socket as TLSSocket).servername)}`);
    });
    const port = await portOf(server);
    const fetch = guardedFetch({ allowPrivate: true }, nodeDialer({ resolve: toHere, tls: { ca: cert } }));
    const answer = await fetch(`https://hooks.example:${port}/`);
    expect(await answer.text()).toBe(`hooks.example:${port} hooks.example`);

    const wrongName: unknown = await fetch(`https://other.example:${port}/`).catch((thrown: unknown) => thrown);
    const untrusted: unknown = await guardedFetch(
      { allowPrivate: true },
      nodeDialer({ resolve: toHere }),
    )(`https://hooks.example:${port}/`).catch((thrown: unknown) => thrown);
    expect([codeOf(wrongName), codeOf(untrusted)]).toEqual(["ConnectionFailed", "ConnectionFailed"]);
  });
});
