import { X509Certificate } from "node:crypto";
import { mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { Agent as HttpsAgent, get, type RequestOptions } from "node:https";
import type { IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { A2AError, memoryStore } from "@parley/server";
import { mutualTls, type Authenticator } from "@parley/a2a/auth";
import { serve, type ServeOptions, type Server } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";
import { certificateFor, type Certificate } from "./support/certificate.ts";
import { Http2Client } from "./support/http2.ts";

/** Tests TLS in `serve()`: versions, certificates that change, client certificates, and the header for browsers. */

async function start(options: ServeOptions): Promise<Server> {
  const server = await serve(echoAgent(), { port: 0, signals: false, store: memoryStore(), logger: false, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "parley-tls-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The SHA-256 digest of the server's certificate. */
  readonly certificate: string;
}

function ask(server: Server, options: RequestOptions = {}, look?: (socket: TLSSocket) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const url = `${server.url}/.well-known/agent-card.json`;
    get(url, { agent: false, rejectUnauthorized: false, ...options }, (response) => {
      const { statusCode: status = 0, headers, socket } = response;
      look?.(socket as TLSSocket);
      const certificate = (socket as TLSSocket).getPeerCertificate().fingerprint256;
      response.resume().on("end", () => resolve({ status, headers, certificate }));
    }).on("error", reject);
  });
}

const fingerprint = ({ cert }: Certificate): string => new X509Certificate(cert).fingerprint256;

/** Waits until new connections get this certificate. */
async function untilServed(server: Server, certificate: Certificate): Promise<void> {
  while ((await ask(server)).certificate !== fingerprint(certificate)) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Replaces a file atomically, so that no reader sees a partial file. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

describe("a certificate in files", () => {
  it("is reloaded when they change, and open connections stay", async () => {
    const path = await folder();
    const [certFile, keyFile] = [join(path, "cert.pem"), join(path, "key.pem")];
    const [first, second] = [await certificateFor("127.0.0.1"), await certificateFor("127.0.0.1")];
    await writeFile(certFile, first.cert);
    await writeFile(keyFile, first.key);
    const server = await start({ tls: { certFile, keyFile, reloadInterval: 5 } });
    const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
    onTestFinished(() => agent.destroy());
    using http2 = await Http2Client.to(server.url, { rejectUnauthorized: false });
    expect((await ask(server, { agent })).certificate).toBe(fingerprint(first));

    await replace(certFile, second.cert);
    await replace(keyFile, second.key);
    await untilServed(server, second);
    expect((await ask(server, { agent })).certificate).toBe(fingerprint(first));
    expect((await http2.get("/.well-known/agent-card.json")).status).toBe(200);
  });

  it("stays in use while the new files do not match, or are missing, and the log says so", async () => {
    const path = await folder();
    const [certFile, keyFile] = [join(path, "cert.pem"), join(path, "key.pem")];
    const [first, second] = [await certificateFor("127.0.0.1"), await certificateFor("127.0.0.1")];
    await writeFile(certFile, first.cert);
    await writeFile(keyFile, first.key);
    const lines: string[] = [];
    const add = (message: string): void => void lines.push(message);
    const logger = { debug: add, info: add, warn: add, error: add };
    const server = await start({ tls: { certFile, keyFile, reloadInterval: 5 }, logger });
    const until = async (count: number): Promise<void> => {
      const said = (): number => lines.filter((line) => line.includes("Failed to load TLS certificate")).length;
      while (said() < count) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    // The new certificate does not match the key.
    await replace(certFile, second.cert);
    await until(1);
    expect((await ask(server)).certificate).toBe(fingerprint(first));
    await rm(keyFile);
    await until(2);
    expect((await ask(server)).certificate).toBe(fingerprint(first));
    await replace(keyFile, "no key");
    await until(3);
    expect((await ask(server)).certificate).toBe(fingerprint(first));
    await replace(keyFile, second.key);
    await untilServed(server, second);
  });

  it("stays in use, with its authorities, while the file of these is empty or truncated", async () => {
    const path = await folder();
    const files = { certFile: join(path, "cert.pem"), keyFile: join(path, "key.pem"), caFile: join(path, "ca.pem") };
    const [own, client, other] = [
      await certificateFor("127.0.0.1"),
      await certificateFor("client"),
      await certificateFor("other"),
    ];
    await writeFile(files.certFile, own.cert);
    await writeFile(files.keyFile, own.key);
    await writeFile(files.caFile, "");
    await expect(start({ tls: files })).rejects.toThrow("has no certificate");
    await writeFile(files.caFile, client.cert);
    const lines: string[] = [];
    const add = (message: string): void => void lines.push(message);
    const logger = { debug: add, info: add, warn: add, error: add };
    const server = await start({ tls: { ...files, reloadInterval: 5 }, logger, authenticator: mutualTls() });
    const status = async ({ cert, key }: Certificate): Promise<number> =>
      (await ask(server, { cert, key, path: "/tasks", headers: { "a2a-version": "1.0" } })).status;
    const until = async (count: number, words: string): Promise<void> => {
      const said = (): number => lines.filter((line) => line.includes(words)).length;
      while (said() < count) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    expect([await status(client), await status(other)]).toEqual([200, 401]);
    const half = client.cert.slice(0, client.cert.length / 2);
    for (const [at, text] of ["", "no certificate", half, `${other.cert}\n${half}`].entries()) {
      await replace(files.caFile, text);
      await until(at + 1, "Failed to load TLS certificate");
      expect([await status(client), await status(other)]).toEqual([200, 401]);
    }
    await replace(files.caFile, `# Both\n${client.cert}\n${other.cert}`);
    await until(1, "Reloaded TLS certificate");
    expect([await status(client), await status(other)]).toEqual([200, 200]);
  });

  it("may be a link that changes to other files, as in Kubernetes", async () => {
    const path = await folder();
    const [first, second] = [await certificateFor("127.0.0.1"), await certificateFor("127.0.0.1")];
    const both = await Promise.all(
      [first, second].map(async ({ cert, key }, at) => {
        const files = [join(path, `cert-${at}.pem`), join(path, `key-${at}.pem`)] as const;
        await writeFile(files[0], cert);
        await writeFile(files[1], key);
        return files;
      }),
    );
    const [certFile, keyFile] = [join(path, "tls.crt"), join(path, "tls.key")];
    const point = async (at: number): Promise<void> => {
      for (const [which, link] of [certFile, keyFile].entries()) {
        await symlink(both[at]?.[which] ?? "", `${link}.new`);
        await rename(`${link}.new`, link);
      }
    };
    await point(0);
    const server = await start({ tls: { certFile, keyFile, reloadInterval: 5 } });
    expect((await ask(server)).certificate).toBe(fingerprint(first));
    await point(1);
    await untilServed(server, second);
  });

  it("that is missing, or has another key, is rejected at startup", async () => {
    const path = await folder();
    const [certFile, keyFile] = [join(path, "cert.pem"), join(path, "key.pem")];
    await expect(start({ tls: { certFile, keyFile } })).rejects.toThrow("ENOENT");
    await writeFile(certFile, (await certificateFor("127.0.0.1")).cert);
    await writeFile(keyFile, (await certificateFor("127.0.0.1")).key);
    await expect(start({ tls: { certFile, keyFile } })).rejects.toThrow(/key/i);
  });
});

describe("the TLS version", () => {
  const handshake = (server: Server, options: ConnectionOptions): Promise<string> =>
    new Promise((resolve) => {
      const socket = connectTls({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
      socket.on("secureConnect", () => resolve(socket.getProtocol() ?? "")).on("error", () => resolve("refused"));
      onTestFinished(() => void socket.destroy());
    });

  it("is 1.2 or newer", async () => {
    const server = await start({ tls: await certificateFor("127.0.0.1") });
    const old = { minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    expect(await handshake(server, { ...old, maxVersion: "TLSv1" })).toBe("refused");
    expect(await handshake(server, { ...old, maxVersion: "TLSv1.1" })).toBe("refused");
    expect(await handshake(server, { maxVersion: "TLSv1.2" })).toBe("TLSv1.2");
    expect(await handshake(server, {})).toBe("TLSv1.3");
  });

  it.each([{}, { certFile: "cert.pem" }, { keyFile: "key.pem" }, { cert: "a certificate" }, { caFile: "ca.pem" }])(
    "is rejected at startup without a certificate and its key: %j",
    async (tls) => {
      await expect(start({ tls })).rejects.toThrow("`tls` needs a certificate and its key");
    },
  );

  it.each([
    { minVersion: "TLSv1" },
    { minVersion: "TLSv1.1" },
    { maxVersion: "TLSv1.1" },
    { secureProtocol: "TLS_method" },
  ])("cannot be lowered: %j is rejected at startup", async (options) => {
    await expect(start({ tls: { ...(await certificateFor("127.0.0.1")), ...options } as never })).rejects.toThrow(
      "before TLS 1.2",
    );
  });
});

describe("certificates of clients (mutual TLS)", () => {
  const byCertificate: Authenticator = {
    securitySchemes: { tls: { mtlsSecurityScheme: {} } },
    securityRequirements: [{ schemes: { tls: { list: [] } } }],
    authenticate({ facts }) {
      const { certificate } = facts ?? {};
      if (certificate?.authorized) return { subject: certificate.fingerprint };
      throw new A2AError("Unauthenticated");
    },
  };

  it("are requested and not required: the card needs none, and the authenticator decides each call", async () => {
    const [own, known, stranger] = [
      await certificateFor("127.0.0.1"),
      await certificateFor("agent-7.example"),
      await certificateFor("stranger.example"),
    ];
    const server = await start({ tls: { ...own, ca: known.cert }, authenticator: byCertificate });
    const list = (client?: Certificate): Promise<Answer> => ask(server, { path: "/tasks", ...client });
    expect((await ask(server)).status).toBe(200);
    expect([(await list(known)).status, (await list(stranger)).status, (await list()).status]).toEqual([200, 401, 401]);
  });

  it("are shown again by each connection: no TLS session is resumed", async () => {
    const [own, known] = [await certificateFor("127.0.0.1"), await certificateFor("agent-7.example")];
    const server = await start({ tls: { ...own, ca: known.cert }, authenticator: byCertificate });
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const agent = new HttpsAgent({ maxVersion, rejectUnauthorized: false, ...known });
      const reused: boolean[] = [];
      for (let at = 0; at < 3; at++)
        expect(
          (await ask(server, { agent, path: "/tasks" }, (socket) => reused.push(socket.isSessionReused()))).status,
        ).toBe(200);
      expect(reused).toEqual([false, false, false]);
      agent.destroy();
    }
  });

  it("cause a warning if no certificate can reach the server", async () => {
    const warnings: string[] = [];
    const quiet = (): void => {};
    const warn = (message: string): void => void warnings.push(message);
    await start({ authenticator: byCertificate, logger: { debug: quiet, info: quiet, warn, error: quiet } });
    expect(warnings.join()).toContain("needs client certificates");
  });
});

describe("Strict-Transport-Security (RFC 6797)", () => {
  const header = "strict-transport-security";
  const publicUrl = "https://agents.example.com";

  it("is in every answer over TLS, errors included, over both versions of HTTP", async () => {
    const tls = await certificateFor("127.0.0.1");
    const server = await start({ tls, publicUrl });
    expect((await ask(server)).headers[header]).toBe("max-age=31536000");
    expect((await ask(server, { path: "/nothing" })).headers[header]).toBe("max-age=31536000");
    using http2 = await Http2Client.to(server.url, { ca: tls.cert });
    expect((await http2.post("/", "{}")).headers[header]).toBe("max-age=31536000");
    const own = await start({ tls, publicUrl, hsts: "max-age=60; includeSubDomains" });
    expect((await ask(own)).headers[header]).toBe("max-age=60; includeSubDomains");
  });

  it("is not sent for a host of this machine, without TLS, or if it is switched off", async () => {
    const tls = await certificateFor("127.0.0.1");
    for (const options of [
      { tls },
      { tls, publicUrl: "https://localhost:8443" },
      { tls, publicUrl, hsts: false },
    ] as const) {
      expect((await ask(await start(options))).headers[header]).toBeUndefined();
    }
    const plain = await start({ publicUrl, trustProxy: ["loopback"] });
    const url = `${plain.url}/.well-known/agent-card.json`;
    expect((await fetch(url)).headers.get(header)).toBeNull();
    expect((await fetch(url, { headers: { "x-forwarded-proto": "http" } })).headers.get(header)).toBeNull();
    // The proxy declares that the client's connection is encrypted.
    const behind = { "x-forwarded-for": "192.0.2.1", "x-forwarded-proto": "https" };
    expect((await fetch(url, { headers: behind })).headers.get(header)).toBe("max-age=31536000");
    // Other peers cannot declare an encrypted connection.
    const unnamed = await start({ publicUrl });
    const answer = await fetch(`${unnamed.url}/.well-known/agent-card.json`, { headers: behind });
    expect(answer.headers.get(header)).toBeNull();
  });
});
