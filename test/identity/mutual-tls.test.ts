import { randomUUID, X509Certificate } from "node:crypto";
import { request } from "node:https";
import { defineAgent, memoryStore, serve } from "@parley/node";
import { jwt, mutualTls, type Authenticator, type MutualTlsOptions } from "@parley/a2a/auth";
import type { PeerCertificate } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";
import { decodeJwt } from "jose";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ask, refusal } from "./asked.ts";
import { certificate, type TestCertificate } from "./certificates.ts";
import { providerSecret } from "./provider-clients.ts";
import { startProvider } from "./provider.ts";

/** `mutualTls()`, and tokens that are bound to a certificate (RFC 8705), over real TLS. */

const spiffe = "URI:spiffe://example.com/planner";

let ours: TestCertificate;
let partner: TestCertificate;
let localhost: TestCertificate;
let planner: TestCertificate;
let imitated: TestCertificate;
let selfSigned: TestCertificate;
let expired: TestCertificate;
beforeAll(async () => {
  ours = await certificate({ commonName: "Our authority", isAuthority: true });
  partner = await certificate({ commonName: "Authority of a partner", isAuthority: true });
  localhost = await certificate({ commonName: "localhost", names: ["DNS:localhost", "IP:127.0.0.1"], by: ours });
  planner = await certificate({ commonName: "planner", names: [spiffe, "DNS:planner.example.com"], by: ours });
  imitated = await certificate({ commonName: "planner", names: [spiffe], by: partner });
  selfSigned = await certificate({ commonName: "planner", names: [spiffe] });
  expired = await certificate({
    commonName: "planner",
    names: [spiffe],
    by: ours,
    expires: new Date(Date.now() - 60_000),
  });
});

const agent = defineAgent({
  name: "Echo",
  description: "Says who called.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => Promise.resolve(turn.reply(turn.principal.subject)),
});

/** Serves an agent over TLS, with trust in both authorities. Returns its URL. */
async function served(authenticator: Authenticator, publicUrl?: string): Promise<string> {
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    store: memoryStore(),
    logger: false,
    signals: false,
    authenticator,
    ...(publicUrl !== undefined && { publicUrl }),
    tls: { cert: localhost.cert, key: localhost.key, ca: [ours.cert, partner.cert] },
  });
  onTestFinished(() => server.close({ grace: 0 }));
  return `https://127.0.0.1:${server.port}`;
}

interface Answer {
  readonly status: number;
  readonly challenge: string | undefined;
  readonly body: string;
}

/** Sends a message to an agent, with or without a certificate. */
function send(url: string, client?: TestCertificate, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "Who am I?" }] };
    const sending = request(
      `${url}/message:send`,
      {
        method: "POST",
        agent: false,
        ca: ours.cert,
        ...(client !== undefined && { cert: client.cert, key: client.key }),
        headers: { "content-type": "application/json", "a2a-version": "1.0", ...headers },
      },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        const { statusCode: status = 0 } = response;
        response.on("end", () => resolve({ status, challenge: response.headers["www-authenticate"], body }));
      },
    );
    sending.on("error", reject).end(JSON.stringify({ message }));
  });
}

describe("mutualTls()", () => {
  it("accepts a certificate that an authority of the server has signed, by its first name", async () => {
    const url = await served(mutualTls());
    const { status, body } = await send(url, planner);
    expect([status, body]).toEqual([200, expect.stringContaining('"spiffe://example.com/planner"')]);
  });

  it("rejects callers without a certificate, with an unknown one, and with an expired one", async () => {
    const url = await served(mutualTls());
    for (const client of [undefined, selfSigned, expired]) {
      const { status, challenge } = await send(url, client);
      expect([status, challenge]).toEqual([401, expect.stringMatching(/^MutualTLS/)]);
    }
  });

  it("shows its card to everyone: certificates are requested if only this scheme is required", async () => {
    const url = await served(mutualTls());
    const card = await new Promise<number>((resolve, reject) => {
      const asking = request(`${url}/.well-known/agent-card.json`, { ca: ours.cert, agent: false }, (response) => {
        resolve(response.resume().statusCode ?? 0);
      });
      asking.on("error", reject).end();
    });
    expect(card).toBe(200);
  });

  it("identifies callers by their names, and no others", async () => {
    const url = await served(mutualTls({ names: { [spiffe]: { subject: "planner", organization: "acme" } } }));
    expect((await send(url, planner)).body).toContain('"planner"');
    const other = await certificate({ commonName: "planner", names: ["URI:spiffe://example.com/other"], by: ours });
    expect((await send(url, other)).status).toBe(401);
  });

  it("identifies callers by their fingerprints, including self-signed ones, and not by the same name in another certificate", async () => {
    const url = await served(mutualTls({ certificates: { [selfSigned.fingerprint]: { subject: "pinned" } } }));
    expect((await send(url, selfSigned)).body).toContain('"pinned"');
    expect((await send(url, planner)).status).toBe(401);
  });

  it("accepts certificates of only one authority, so a partner cannot name our agents", async () => {
    const names = { [spiffe]: { subject: "planner" } };
    const open = await served(mutualTls({ names }));
    expect((await send(open, imitated)).status).toBe(200);
    const url = await served(mutualTls({ names, authorities: [ours.fingerprint] }));
    expect((await send(url, imitated)).status).toBe(401);
    expect((await send(url, planner)).status).toBe(200);
  });

  it("asks a function about certificates", async () => {
    const principal: MutualTlsOptions["principal"] = ({ subject }) =>
      subject["CN"] === "planner" ? { subject: "by function" } : undefined;
    const url = await served(mutualTls({ principal }));
    expect((await send(url, planner)).body).toContain('"by function"');
  });

  it("rejects a certificate that has expired while its connection was open", async () => {
    const clock = fakeClock(Date.now());
    const { fingerprint, validTo } = described(planner);
    const shown: PeerCertificate = {
      authorized: true,
      fingerprint,
      subject: {},
      names: [spiffe],
      expires: Date.parse(validTo),
    };
    const subject = mutualTls({ clock });
    expect((await ask(subject, { certificate: shown })).subject).toBe("spiffe://example.com/planner");
    clock.advance(Date.parse(validTo) - clock.now());
    expect((await refusal(ask(subject, { certificate: shown }))).code).toBe("Unauthenticated");
  });

  it("rejects a page of another origin, whose browser would show the certificate (RFC 6454)", async () => {
    const url = await served(mutualTls());
    expect((await send(url, planner, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  });

  it("rejects an invalid fingerprint when the server starts", () => {
    expect(() => mutualTls({ certificates: { "12:34": { subject: "ada" } } })).toThrow(/fingerprints/);
    expect(() => mutualTls({ authorities: ["sha1"] })).toThrow(/fingerprints/);
  });

  it("rejects names without their kind, which no certificate has", () => {
    for (const name of ["agent.example.com", "spiffe://example.com/agent", "https://example.com", "", "DNS:"]) {
      expect(() => mutualTls({ names: { [name]: { subject: "ada" } } })).toThrow(/names must begin with their kind/);
    }
    for (const name of [
      "DNS:agent.example.com",
      "URI:spiffe://example.com/agent",
      "IP Address:192.0.2.1",
      "email:a@b.c",
    ]) {
      expect(() => mutualTls({ names: { [name]: { subject: "ada" } } })).not.toThrow();
    }
  });

  it("declares itself on the card", () => {
    const { securitySchemes, securityRequirements } = mutualTls({ description: "Our agents have certificates" });
    expect(securitySchemes).toEqual({
      mutualTls: { mtlsSecurityScheme: { description: "Our agents have certificates" } },
    });
    expect(securityRequirements).toEqual([{ schemes: { mutualTls: { list: [] } } }]);
  });
});

function described({ cert }: TestCertificate): { readonly fingerprint: string; readonly validTo: string } {
  const { fingerprint256, validTo } = new X509Certificate(cert);
  return { fingerprint: fingerprint256.replaceAll(":", "").toLowerCase(), validTo };
}

describe("a token that is bound to a certificate (RFC 8705)", () => {
  it("is accepted only with that certificate, although no authority of the agent has signed it", async () => {
    const provider = await startProvider({ tls: { cert: localhost.cert, key: localhost.key } });
    onTestFinished(() => provider.close());
    const resource = "https://agents.example.com";
    const token = await certifiedToken(provider.issuer, selfSigned, resource);
    expect(decodeJwt(token)).toMatchObject({ cnf: { "x5t#S256": thumbprint(selfSigned) } });
    const keySet = { keys: provider.keys.map(({ d: _d, ...key }) => key) };
    const authenticator = jwt({ issuer: provider.issuer, keySet, bound: "certificate" });
    expect(authenticator.resource).toMatchObject({ certificateBound: true });
    const url = await served(authenticator, resource);
    const headers = { authorization: `Bearer ${token}` };
    expect(await send(url, selfSigned, headers)).toMatchObject({ status: 200 });
    expect((await send(url, planner, headers)).challenge).toContain("bound to another certificate");
    expect((await send(url, undefined, headers)).challenge).toContain("the connection has none");
    const plain = await certifiedToken(provider.issuer, undefined, resource, "service");
    const unbound = { authorization: `Bearer ${plain}` };
    expect((await send(url, selfSigned, unbound)).challenge).toContain("not bound to a certificate");
  });
});

function thumbprint({ fingerprint }: TestCertificate): string {
  return Buffer.from(fingerprint.replaceAll(":", ""), "hex").toString("base64url");
}

/** Gets a token over a connection with a certificate. */
function certifiedToken(
  issuer: string,
  client: TestCertificate | undefined,
  resource: string,
  id = "certified",
): Promise<string> {
  return new Promise((resolve, reject) => {
    const form = new URLSearchParams({ grant_type: "client_credentials", resource, scope: "chat" });
    const asking = request(
      `${issuer}/token`,
      {
        method: "POST",
        agent: false,
        ca: ours.cert,
        ...(client !== undefined && { cert: client.cert, key: client.key }),
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          authorization: `Basic ${btoa(`${id}:${providerSecret}`)}`,
        },
      },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        response.on("end", () => resolve((JSON.parse(body) as { readonly access_token: string }).access_token));
      },
    );
    asking.on("error", reject).end(form.toString());
  });
}
