import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { createHandler, defineAgent, memoryStore, nodeListener, serve, type ServeOptions } from "@parley/node";
import { mutualTls, type Authenticator, type MutualTlsOptions } from "@parley/a2a/auth";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { certificate, type TestCertificate } from "../identity/certificates.ts";

/*
 * Attacks on mutual TLS, over real handshakes with real authorities: certificates signed by another authority, names that look alike,
 * another certificate in the same connection or the next one, and headers that only a proxy may write ("Certificates" of
 * docs/authentication.md, "Behind a proxy" of docs/hosting.md).
 */

const planner = "URI:spiffe://example.com/planner";
const asPlanner: MutualTlsOptions = { names: { [planner]: { subject: "planner" } } };

let ours: TestCertificate;
let other: TestCertificate;
let localhost: TestCertificate;
let good: TestCertificate;
let mallory: TestCertificate;
let forged: TestCertificate;
beforeAll(async () => {
  ours = await certificate({ commonName: "Our authority", isAuthority: true });
  other = await certificate({ commonName: "Other authority", isAuthority: true });
  localhost = await certificate({ commonName: "localhost", names: ["DNS:localhost", "IP:127.0.0.1"], by: ours });
  good = await certificate({ commonName: "planner", names: [planner], by: ours });
  mallory = await certificate({ commonName: "mallory", names: ["URI:spiffe://example.com/mallory"], by: ours });
  forged = await certificate({ commonName: "planner", names: [planner], by: other });
});

const agent = defineAgent({
  name: "Echo",
  description: "Says who called.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply(`you are ${turn.principal.subject};`),
});

async function served(authenticator: Authenticator, more: Partial<ServeOptions> = {}): Promise<number> {
  const server = await serve(agent, {
    port: 0,
    store: memoryStore(),
    logger: false,
    signals: false,
    authenticator,
    tls: { cert: localhost.cert, key: localhost.key, ca: [ours.cert] },
    ...more,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  return server.port;
}

const shows = (one: TestCertificate | undefined, chain = ""): ConnectionOptions =>
  one === undefined ? {} : { cert: `${one.cert}\n${chain}`, key: one.key };

async function open(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connectTls({ port, host: "127.0.0.1", ca: ours.cert, ALPNProtocols: ["http/1.1"], ...options });
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  return socket;
}

/** Sends a message. Resolves to the caller that the agent sees, or to the status of a rejection. */
function whoami(socket: TLSSocket, headers = ""): Promise<string> {
  const body = JSON.stringify({ message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "?" }] } });
  return new Promise((resolve) => {
    let got = "";
    const hear = (bytes: Buffer): void => {
      got += bytes.toString();
      const found = /you are ([^;]*);/.exec(got)?.[1] ?? /^HTTP\/1.1 ([45]\d\d)[^]*\r\n\r\n/.exec(got)?.[1];
      if (found === undefined) return;
      socket.off("data", hear);
      resolve(found);
    };
    socket.on("data", hear);
    socket.once("close", () => resolve("closed")).on("error", () => resolve("closed"));
    socket.write(
      `POST /message:send HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`,
    );
  });
}

const asked = async (port: number, options: ConnectionOptions, headers?: string): Promise<string> =>
  whoami(await open(port, options), headers);

describe("a caller is not authenticated", () => {
  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "without a certificate, with one of another authority, or an expired one, over %s",
    async (maxVersion) => {
      const expired = await certificate({
        commonName: "p",
        names: [planner],
        by: ours,
        expires: new Date(Date.now() - 60_000),
      });
      const early = await certificate({
        commonName: "p",
        names: [planner],
        by: ours,
        expires: new Date(Date.now() + 30 * 86_400_000),
      });
      const self = await certificate({ commonName: "planner", names: [planner] });
      const imitator = await certificate({ commonName: "Our authority", isAuthority: true });
      const imitated = await certificate({ commonName: "planner", names: [planner], by: imitator });
      const byALeaf = await certificate({ commonName: "planner", names: [planner], by: mallory });
      const port = await served(mutualTls(asPlanner));
      expect(await asked(port, { ...shows(good), maxVersion })).toBe("planner");
      for (const one of [undefined, forged, expired, early, self, byALeaf]) {
        expect(await asked(port, { ...shows(one, one === byALeaf ? mallory.cert : ""), maxVersion })).toBe("401");
      }
      // OpenSSL may end a connection whose certificate has a wrong signature.
      for (const chain of ["", imitator.cert]) {
        expect(await asked(port, { ...shows(imitated, chain), maxVersion })).toMatch(/^(?:401|closed)$/);
      }
    },
  );

  it("with the name only in the common name, or with a similar name", async () => {
    const names = [
      "URI:spiffe://example.com/planner\u0000.evil",
      "URI:spiffe://example.com/planner\n",
      "URI:spiffe://example.com/planner/",
      "URI:spiffe://example.com/Planner",
      "URI:SPIFFE://example.com/planner",
      "URI:spiffe://example.com/*",
      "URI:spiffe://*/planner",
      "URI:x, URI:spiffe://example.com/planner",
      'URI:x", URI:spiffe://example.com/planner',
      "URI:x\\, URI:spiffe://example.com/planner",
      "URI:x\r\nURI:spiffe://example.com/planner",
      "DNS:x, URI:spiffe://example.com/planner",
      "DNS:spiffe://example.com/planner",
      "email:spiffe://example.com/planner",
      "DNS:*",
    ];
    const port = await served(mutualTls(asPlanner));
    for (const commonName of ["planner", planner, "spiffe://example.com/planner"]) {
      expect(await asked(port, shows(await certificate({ commonName, by: ours })))).toBe("401");
    }
    for (const name of names) {
      const one = await certificate({ commonName: "x", names: [name], by: ours });
      expect(await asked(port, shows(one)), JSON.stringify(name)).toBe("401");
    }
  });
});

describe("a connection keeps its certificate", () => {
  it.each(["TLSv1.2", "TLSv1.3"] as const)("and is not renegotiated with another one, over %s", async (maxVersion) => {
    const port = await served(mutualTls());
    const socket = await open(port, { ...shows(mallory), maxVersion });
    expect(await whoami(socket)).toBe("spiffe://example.com/mallory");
    const ended = new Promise<string>((resolve) => socket.once("close", () => resolve("closed")));
    const outcome = new Promise<string>((resolve) => {
      const begun = socket.renegotiate({}, (error) => resolve(error === null ? "renegotiated" : "refused"));
      if (!begun) resolve("refused");
    });
    socket.on("error", () => undefined);
    expect(await Promise.race([outcome, ended])).not.toBe("renegotiated");
  });

  it("also in an application whose server renegotiates: Node then calls the other certificate authorized, and names its error", async () => {
    const handler = createHandler(agent, {
      store: memoryStore(),
      authenticator: mutualTls(),
      publicUrl: "https://localhost",
    });
    const listener: RequestListener = nodeListener(handler.handle);
    const tls = {
      cert: localhost.cert,
      key: localhost.key,
      ca: [ours.cert],
      requestCert: true,
      rejectUnauthorized: false,
    };
    const server = createServer(tls, (incoming, response) => {
      // Puts Node's socket in the state after a renegotiation with a certificate that none of the server's authorities has signed.
      const socket = incoming.socket as TLSSocket;
      if (incoming.headers["x-renegotiated"] !== undefined) {
        expect(socket.authorized).toBe(true);
        Object.assign(socket, { authorizationError: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" });
      }
      listener(incoming, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await handler.close();
    });
    const socket = await open((server.address() as AddressInfo).port, shows(good));
    expect(await whoami(socket)).toBe("spiffe://example.com/planner");
    expect(await whoami(socket, "x-renegotiated: 1\r\n")).toBe("401");
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "and no session is resumed: the next connection has the certificate that it shows, over %s",
    async (maxVersion) => {
      const port = await served(mutualTls());
      const sessionOf = async (one: TestCertificate | undefined): Promise<{ session: Buffer; who: string }> => {
        const socket = await open(port, { ...shows(one), maxVersion });
        const came = new Promise<Buffer>((resolve) => socket.once("session", resolve));
        const known = maxVersion === "TLSv1.2" ? Promise.resolve(socket.getSession() as Buffer) : came;
        const who = await whoami(socket);
        return { session: await known, who };
      };
      const [ofMallory, ofNobody] = [await sessionOf(mallory), await sessionOf(undefined)];
      expect([ofMallory.who, ofNobody.who]).toEqual(["spiffe://example.com/mallory", "401"]);
      const offered = async (
        session: Buffer,
        one: TestCertificate | undefined,
      ): Promise<readonly [boolean, string]> => {
        const socket = await open(port, { ...shows(one), maxVersion, session });
        return [socket.isSessionReused(), await whoami(socket)];
      };
      for (const { session } of [ofMallory, ofNobody]) {
        expect(await offered(session, good)).toEqual([false, "spiffe://example.com/planner"]);
        expect(await offered(session, forged)).toEqual([false, "401"]);
        expect(await offered(session, undefined)).toEqual([false, "401"]);
      }
    },
  );

  it("and a removed authority is no longer trusted, also for callers with a session", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-mtls-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const [certFile, keyFile, caFile] = ["cert.pem", "key.pem", "ca.pem"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    await writeFile(certFile, localhost.cert);
    await writeFile(keyFile, localhost.key);
    await writeFile(caFile, `${ours.cert}\n${other.cert}\n`);
    const port = await served(mutualTls(), { tls: { certFile, keyFile, caFile, reloadInterval: 20 } });
    const first = await open(port, shows(forged));
    const came = new Promise<Buffer>((resolve) => first.once("session", resolve));
    expect(await whoami(first)).toBe("spiffe://example.com/planner");
    const session = await came;
    expect(await asked(port, { ...shows(forged), session })).toBe("spiffe://example.com/planner");
    await writeFile(caFile, `${ours.cert}\n`);
    await vi.waitFor(async () => expect(await asked(port, shows(forged))).toBe("401"), { timeout: 20_000 });
    expect(await asked(port, { ...shows(forged), session })).toBe("401");
    expect(await asked(port, { session })).toBe("401");
  });

  it("and an authority that was cross-signed is trusted in the next connection too", async () => {
    const between = await certificate({ commonName: "Between", isAuthority: true, by: ours });
    const leaf = await certificate({ commonName: "leaf", names: [planner], by: between });
    const port = await served(mutualTls({ ...asPlanner, authorities: [ours.fingerprint] }));
    const first = await open(port, shows(leaf, between.cert));
    const came = new Promise<Buffer>((resolve) => first.once("session", resolve));
    expect(await whoami(first)).toBe("planner");
    const socket = await open(port, { ...shows(leaf, between.cert), session: await came });
    expect(await whoami(socket)).toBe("planner");
  });
});

describe("headers of proxies", () => {
  const forgedHeaders = (): readonly string[] => {
    const der = good.cert.replaceAll(/-----[A-Z ]+-----|\s/g, "");
    const hash = good.fingerprint.replaceAll(":", "").toLowerCase();
    return [
      `x-forwarded-client-cert: Hash=${hash};URI=spiffe://example.com/planner\r\n`,
      `X-Forwarded-Client-Cert: Hash=${hash};Cert="${encodeURIComponent(good.cert)}"\r\n`,
      `client-cert: :${der}:\r\n`,
      `x-ssl-client-cert: ${encodeURIComponent(good.cert)}\r\n`,
      `x-ssl-client-verify: SUCCESS\r\nssl-client-cert: ${der}\r\n`,
      `x-forwarded-for: 10.0.0.2\r\nforwarded: for=10.0.0.2;proto=https\r\nx-forwarded-client-cert: Hash=${hash};URI=spiffe://example.com/planner\r\n`,
    ];
  };

  it.each([undefined, "client-cert", "x-forwarded-client-cert", "x-ssl-client-cert"] as const)(
    "change nothing from a client that is not a proxy, where %s is read",
    async (certificateHeader) => {
      const trustProxy = certificateHeader && { addresses: ["10.0.0.2"], certificate: certificateHeader };
      const port = await served(mutualTls(asPlanner), trustProxy && { trustProxy });
      for (const headers of forgedHeaders()) {
        for (const one of [undefined, mallory]) expect(await asked(port, shows(one), headers), headers).toBe("401");
      }
    },
  );

  it("of the proxy itself are not its client's certificate, and only the configured header is read", async () => {
    const trustProxy = { addresses: ["loopback"], certificate: "client-cert" };
    const port = await served(mutualTls(asPlanner), { trustProxy });
    const [envoy, , standard] = forgedHeaders();
    const from = "x-forwarded-for: 192.0.2.1\r\nx-forwarded-proto: https\r\n";
    expect(await asked(port, shows(good), from)).toBe("401");
    expect(await asked(port, shows(good), from + String(envoy))).toBe("401");
    expect(await asked(port, shows(undefined), from + String(standard))).toBe("planner");
    // If there are two headers, the server cannot know which header comes from the proxy.
    expect(await asked(port, shows(undefined), from + String(standard) + String(standard))).toBe("401");
  });
});
