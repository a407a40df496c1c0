import { X509Certificate } from "node:crypto";
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { isIP } from "node:net";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { A2AError, defineAgent, memoryStore, serve, silentLogger, type Server } from "@parley/node";
import { bearer, type Authenticator } from "@parley/a2a/auth";
import type { PeerCertificate, RequestFacts } from "@parley/a2a/internal/protocol/index";
import { times } from "../counts.ts";
import { randomFrom, type Random } from "./random.ts";

/**
 * Headers about the caller: from proxies, with credentials, and with certificates. Anyone can send all of them. None may crash
 * the server, keep it busy, or make it believe something that no trusted proxy reported.
 */

const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** What the server determined about the client of each request. */
const seen: {
  readonly facts: Pick<RequestFacts, "remoteAddress" | "secure" | "certificate">;
  readonly name: string;
}[] = [];

const tokens = bearer({ "a-token": { subject: "ada" } });
const noting: Authenticator = {
  ...tokens,
  authenticate(request, place) {
    const { remoteAddress, secure, certificate } = request.facts ?? {};
    seen.push({ facts: { remoteAddress, secure, certificate }, name: request.header("x-case") ?? "" });
    if (certificate !== undefined) return { subject: certificate.fingerprint };
    return tokens.authenticate(request, place);
  },
};

const agent = defineAgent({
  name: "Echo",
  description: "Says it again.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply(turn.text),
});

/** Headers that identify the caller, each with typical values, and headers that the server must ignore here. */
const valid: Readonly<Record<string, readonly string[]>> = {
  "x-forwarded-for": [
    "192.0.2.1",
    "192.0.2.1, 127.0.0.2",
    "[2001:db8::1]:80, 127.0.0.1",
    "unknown",
    "::ffff:192.0.2.1",
  ],
  "x-forwarded-proto": ["https", "http", "https, http"],
  forwarded: ['for="[2001:db8::1]:4711";proto=https;by=127.0.0.1', "for=192.0.2.1, for=127.0.0.1", "for=_hidden"],
  authorization: ["Bearer a-token", "Bearer wrong", "Basic YTpi", "DPoP x.y.z", "Bearer eyJhbGciOiJub25lIn0.e30."],
  dpop: ["eyJ0eXAiOiJkcG9wK2p3dCJ9.e30.AA"],
  host: ["127.0.0.1", "agents.example.com"],
  "x-forwarded-host": ["evil.example"],
  traceparent: ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
  "a2a-extensions": ["https://example.com/a, https://example.com/b"],
};

const pieces = [
  ",",
  ";",
  '"',
  "\\",
  "=",
  " ",
  "\t",
  ":",
  "[",
  "]",
  "for=",
  "%",
  "\u00ff",
  "/",
  "Cert=",
  "::",
  "..",
  "0x7f",
  "127.0.0.1",
];

const below = (random: Random, limit: number): number => Math.floor(random() * limit);
const pick = <T>(random: Random, list: readonly T[]): T => list[below(random, list.length)] as T;

/** A text with a few changes: cut, repeated, or with inserted pieces. */
function damaged(text: string, random: Random): string {
  let value = text;
  for (let count = below(random, 4); count > 0; count--) {
    const at = below(random, value.length + 1);
    const end = at + below(random, value.length + 1 - at);
    const change = below(random, 4);
    if (change === 0) value = value.slice(0, at) + pick(random, pieces) + value.slice(at);
    else if (change === 1) value = value.slice(0, at) + value.slice(end);
    else if (change === 2) value = value.slice(0, end) + value.slice(at);
    else value = value.slice(0, at) + pick(random, pieces).repeat(below(random, 200)) + value.slice(end);
  }
  return value.slice(0, 4_000).trim();
}

describe.each(["x-forwarded", "forwarded"] as const)(
  `headers about the caller, through proxies that write %s (FUZZ_SEED=${seed})`,
  (family) => {
    const certificateHeader = family === "forwarded" ? "client-cert" : "x-forwarded-client-cert";
    const agentOfHttp = new HttpAgent({ keepAlive: true, maxSockets: 8 });
    let server: Server;
    let certificate: X509Certificate;
    let known: Readonly<Record<string, readonly string[]>>;

    beforeAll(async () => {
      const made = await generate([{ name: "commonName", value: "agent-7.example" }], {
        keyType: "ec",
        algorithm: "sha256",
      });
      certificate = new X509Certificate(made.cert);
      const base64 = certificate.raw.toString("base64");
      const shown =
        family === "forwarded"
          ? [`:${base64}:`]
          : [`Hash=${"a".repeat(64)};URI=urn:a;DNS=b`, `By=urn:a;Cert="${encodeURIComponent(made.cert)}"`];
      known = { ...valid, [certificateHeader]: shown };
      server = await serve(agent, {
        port: 0,
        signals: false,
        store: memoryStore(),
        logger: silentLogger,
        publicUrl: "https://agents.example.com",
        authenticator: noting,
        trustProxy: { addresses: ["loopback"], headers: family, certificate: certificateHeader },
        limits: {
          rate: {
            principal: { requests: 1e6, per: 1 },
            address: { requests: 1e6, per: 1 },
            failures: { requests: 50, per: 60_000 },
          },
        },
      });
    });
    afterAll(async () => {
      agentOfHttp.destroy();
      await server.close({ grace: 0 });
    });

    function ask(headers: Readonly<Record<string, string>>): Promise<number> {
      return new Promise((resolve, reject) => {
        httpRequest(`${server.url}/tasks`, { agent: agentOfHttp, headers }, (answer) => {
          answer.resume().on("end", () => resolve(answer.statusCode ?? 0));
        })
          .on("error", reject)
          .end();
      });
    }

    test(`are answered, and report nothing but addresses and certificates: ${times(1_500, 20_000)}`, async () => {
      const random = randomFrom(seed);
      const statuses = new Map<number, number>();
      const wrong: string[] = [];
      const count = times(1_500, 20_000);
      for (let at = 0; at < count; at += 8) {
        seen.length = 0;
        const sent = new Map<string, Readonly<Record<string, string>>>();
        const all = Array.from({ length: 8 }, async (_, of) => {
          const names = Object.keys(known).filter(() => random() < 0.5);
          const headers: Record<string, string> = { "x-case": `${at + of}` };
          for (const name of names) headers[name] = damaged(pick(random, known[name] ?? [""]), random);
          sent.set(headers["x-case"] as string, headers);
          const status = await ask(headers);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (![200, 400, 401, 403, 429].includes(status)) wrong.push(`${status}: ${JSON.stringify(headers)}`);
        });
        await Promise.all(all);
        for (const { facts, name } of seen) {
          const problem = problemOf(facts);
          if (problem !== undefined) wrong.push(`${problem}: ${JSON.stringify(sent.get(name))}`);
        }
      }
      expect(wrong.slice(0, 5)).toEqual([]);
      // Some of the requests are accepted.
      expect(statuses.get(200)).toBeGreaterThan(0);
      expect(statuses.get(401)).toBeGreaterThan(0);
      expect(
        await ask({
          authorization: "Bearer a-token",
          "x-forwarded-for": "198.51.100.77",
          forwarded: "for=198.51.100.77",
        }),
      ).toBe(200);
    });

    /** What is wrong with the facts that the server derived. */
    function problemOf({ remoteAddress, secure, certificate: shown }: RequestFacts): string | undefined {
      if (remoteAddress === undefined || isIP(remoteAddress) === 0) return `the address is ${String(remoteAddress)}`;
      if (typeof secure !== "boolean") return `secure is ${String(secure)}`;
      return shown === undefined ? undefined : problemOfCertificate(shown);
    }

    function problemOfCertificate({ der, fingerprint, authorized }: PeerCertificate): string | undefined {
      if (!/^[\da-f]{64}$/.test(fingerprint) || !authorized) return `the fingerprint is ${fingerprint}`;
      if (der === undefined) return undefined;
      const own = new X509Certificate(der).fingerprint256.replaceAll(":", "").toLowerCase();
      return own === fingerprint ? undefined : "the fingerprint is not that of the certificate";
    }
  },
);

test("an error of an authenticator never leaves its credentials in the answer", async () => {
  const secret = "s3cret-parley-test-token";
  const server = await serve(agent, {
    port: 0,
    signals: false,
    store: memoryStore(),
    logger: silentLogger,
    authenticator: {
      ...tokens,
      authenticate: (request) => {
        const token = request.header("authorization");
        throw token === undefined ? new A2AError("Unauthenticated") : new Error(`cannot read ${token}`);
      },
    },
  });
  try {
    for (const path of ["/tasks", "/"]) {
      const answer = await fetch(server.url + path, {
        method: path === "/" ? "POST" : "GET",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        ...(path === "/" && { body: "{}" }),
      });
      expect(await answer.text()).not.toContain(secret);
    }
  } finally {
    await server.close({ grace: 0 });
  }
});
