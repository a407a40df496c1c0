import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { jwt, type JwtOptions } from "@parley/a2a/auth";
import { fakeClock, type FakeClock } from "@parley/testing";
import { exportJWK, generateKeyPair, importJWK, SignJWT, type JWTHeaderParameters, type JWTPayload } from "jose";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { agentUrl, ask, askWith, place, refusal } from "./asked.ts";
import { clientToken, userToken } from "./logins.ts";
import { startProvider, type ProviderOptions, type TestProvider } from "./provider.ts";

/** `jwt()` with tokens from a real provider, and with tokens that have the provider's key but that no provider would issue. */

let clock: FakeClock;
beforeEach(() => {
  clock = fakeClock(Date.now());
});

async function started(options?: ProviderOptions): Promise<TestProvider> {
  const provider = await startProvider(options);
  onTestFinished(() => provider.close());
  return provider;
}

function authenticator(provider: TestProvider, options: Partial<JwtOptions> = {}) {
  return jwt({ issuer: provider.issuer, clock, ...options });
}

interface Forged {
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Claims that are times, in seconds relative to now. */
  readonly times?: Readonly<Record<string, number>>;
  readonly header?: Partial<JWTHeaderParameters>;
}

/** A token with the provider's key and the content of a test. Omits claims that are `undefined`. */
async function signed(provider: TestProvider, { claims, times = {}, header }: Forged = {}): Promise<string> {
  const [key = {}] = provider.keys;
  const now = Math.floor(clock.now() / 1000);
  const usual = { iss: provider.issuer, aud: agentUrl, sub: "ada", iat: now, exp: now + 600, scope: "chat" };
  const moments = Object.fromEntries(Object.entries(times).map(([name, after]) => [name, now + after]));
  return new SignJWT(JSON.parse(JSON.stringify({ ...usual, ...claims, ...moments })) as JWTPayload)
    .setProtectedHeader({ alg: key["alg"] as string, kid: key["kid"] as string, typ: "at+jwt", ...header })
    .sign(await importJWK(key, header?.alg), { crit: { "x-new": true } });
}

describe("jwt()", () => {
  it.each(["ES256", "EdDSA", "RS256"] as const)(
    "accepts a token of a provider that signs with %s (RFC 9068)",
    async (algorithm) => {
      const provider = await started({ algorithm });
      const token = await clientToken(provider, { resource: agentUrl, scope: "chat" });
      expect(await askWith(authenticator(provider), token)).toMatchObject({
        subject: "service",
        scopes: ["chat"],
        schemes: { jwt: ["chat"] },
        audience: [agentUrl],
        claims: { organization: "acme" },
      });
    },
  );

  it("accepts the token of a user, with the organization that the options find in its claims", async () => {
    const provider = await started();
    const { access_token } = await userToken(provider, { resource: agentUrl, scope: "openid chat", user: "grace" });
    const byOrganization = authenticator(provider, {
      principal: (claims, usual) => ({ ...usual, organization: String(claims["organization"]) }),
    });
    expect(await askWith(byOrganization, access_token)).toMatchObject({ subject: "grace", organization: "acme" });
  });

  it("asks a function who the caller is, once a verification, and rejects unknown callers", async () => {
    const provider = await started();
    const asked: unknown[] = [];
    const known = authenticator(provider, {
      principal: (claims, usual) => {
        asked.push(claims["sub"]);
        return Promise.resolve(claims["sub"] === "ada" ? { ...usual, subject: "Ada" } : undefined);
      },
    });
    const token = await signed(provider);
    expect((await askWith(known, token)).subject).toBe("Ada");
    expect((await askWith(known, token)).subject).toBe("Ada");
    expect((await refusal(askWith(known, await signed(provider, { claims: { sub: "eve" } })))).says).toContain(
      "holder",
    );
    expect(asked).toEqual(["ada", "eve"]);
  });

  it("does not hide a mistake of that function as an invalid token", async () => {
    const provider = await started();
    const broken = authenticator(provider, { principal: () => Promise.reject(new Error("The database is down")) });
    await expect(askWith(broken, await signed(provider))).rejects.toThrow("The database is down");
  });

  it("declares itself on the card, and in the metadata of the resource", () => {
    const { securitySchemes, securityRequirements, resource } = jwt({
      issuer: "https://login.example.com",
      scopes: ["chat"],
      description: "A token of our login",
    });
    expect(securitySchemes).toEqual({
      jwt: { httpAuthSecurityScheme: { scheme: "Bearer", bearerFormat: "JWT", description: "A token of our login" } },
    });
    expect(securityRequirements).toEqual([{ schemes: { jwt: { list: ["chat"] } } }]);
    expect(resource).toEqual({ authorizationServers: ["https://login.example.com"], scopes: ["chat"] });
  });

  it("challenges callers without a token, and names the metadata of the resource (RFC 9728 §5.1)", async () => {
    const provider = await started();
    const answer = await refusal(ask(authenticator(provider)));
    expect(answer).toEqual({
      code: "Unauthenticated",
      says: 'Bearer resource_metadata="https://agents.example.com/.well-known/oauth-protected-resource/weather"',
    });
    expect(provider.requests.size).toBe(0);
  });

  it("rejects a token for another resource (RFC 8707), unless the option names it", async () => {
    const provider = await started();
    const token = await clientToken(provider, { resource: "https://other.example.com", scope: "chat" });
    const { says } = await refusal(askWith(authenticator(provider), token));
    expect(says).toContain('error="invalid_token", error_description="The token is for another audience"');
    const anywhere = authenticator(provider, { audience: ["https://other.example.com"] });
    expect((await askWith(anywhere, token)).audience).toBeUndefined();
  });

  it("accepts a token for the server as well as for the agent", async () => {
    const provider = await started();
    const token = await clientToken(provider, { resource: "https://agents.example.com", scope: "chat" });
    expect((await askWith(authenticator(provider), token)).subject).toBe("service");
  });
});

describe("an invalid JWT", () => {
  const wrong: readonly (readonly [string, Forged, string])[] = [
    ["is by another issuer", { claims: { iss: "https://evil.example.com" } }, "another issuer"],
    ["never expires", { claims: { exp: undefined } }, "claims"],
    ["has expired", { times: { exp: -31 } }, "has expired"],
    ["is not valid yet", { times: { nbf: 60 } }, "claims"],
    ["is of the future", { times: { iat: 60 } }, "future"],
    ["names nobody", { claims: { sub: undefined } }, "no subject"],
    ["names someone whose name is too long", { claims: { sub: "a".repeat(1025) } }, "too long"],
    ["has no audience", { claims: { aud: undefined } }, "another audience"],
    [
      "is for the same name on another host",
      { claims: { aud: "https://agents.example.com.evil.example/weather" } },
      "audience",
    ],
    ["is an ID token (RFC 9068 §2.1)", { header: { typ: "JWT" } }, "type of the token is not at+jwt"],
    [
      "has an extension that is not known (RFC 7515 §4.1.11)",
      { header: { crit: ["x-new"], "x-new": true } },
      "not a JWT",
    ],
    ["is bound in an unknown way", { claims: { cnf: { "x5u#S256": "x" } } }, "unknown kind of binding"],
    [
      "is bound to a key, and shown as a bearer token (RFC 9449 §7.2)",
      { claims: { cnf: { jkt: "x" } } },
      "needs a proof",
    ],
    [
      "is bound to a certificate that the connection lacks",
      { claims: { cnf: { "x5t#S256": "x" } } },
      "connection has none",
    ],
  ];
  it.each(wrong)("is rejected if it %s", async (_title, forged, says) => {
    const provider = await started();
    const answer = await refusal(askWith(authenticator(provider), await signed(provider, forged)));
    expect(answer.code).toBe("Unauthenticated");
    expect(answer.says).toContain(says);
  });

  it("is rejected if it is unsigned, or signed with the public key as a secret: no key is even read", async () => {
    const provider = await started();
    const [header, payload] = (await signed(provider)).split(".");
    const as = (alg: string) => Buffer.from(JSON.stringify({ alg, typ: "at+jwt", kid: "key-1" })).toString("base64url");
    const secret = JSON.stringify(provider.keys[0]);
    const mac = createHmac("sha256", secret)
      .update(`${as("HS256")}.${payload}`)
      .digest("base64url");
    expect(header).toBeDefined();
    for (const token of [
      `${as("none")}.${payload}.`,
      `${as("NONE")}.${payload}.`,
      `${as("HS256")}.${payload}.${mac}`,
    ]) {
      const { says } = await refusal(askWith(authenticator(provider), token));
      expect(says).toMatch(/algorithm of the token is not accepted/);
    }
    expect(provider.requests.size).toBe(0);
  });

  it("is rejected if one of its parts was changed", async () => {
    const provider = await started();
    const subject = authenticator(provider);
    const parts = (await signed(provider)).split(".");
    const other = (await signed(provider, { claims: { sub: "root" } })).split(".");
    expect((await refusal(askWith(subject, `${parts[0]}.${other[1]}.${parts[2]}`))).says).toContain("signature");
    for (const text of [
      "a",
      "a.b.c",
      "....",
      `${parts[0]}.${parts[1]}`,
      `${parts.join(".")}.x`,
      "a".repeat(20_000),
      "é.é.é",
    ]) {
      expect((await refusal(askWith(subject, text))).code).toBe("Unauthenticated");
    }
  });

  it("is rejected with an algorithm that the options do not allow", async () => {
    const provider = await started({ algorithm: "RS256" });
    const token = await signed(provider);
    const pinned = authenticator(provider, { algorithms: ["ES256"] });
    expect((await refusal(askWith(pinned, token))).says).toContain("algorithm");
    expect((await askWith(authenticator(provider, { algorithms: ["RS256"] }), token)).subject).toBe("ada");
  });
});

describe("the clock of jwt()", () => {
  it("may be wrong by the tolerance: 30 s", async () => {
    const provider = await started();
    const subject = authenticator(provider);
    const token = await signed(provider);
    clock.jump(-29_000);
    expect((await askWith(subject, token)).subject).toBe("ada");
    clock.jump(29_000 + 600_000 + 29_000);
    expect((await askWith(subject, token)).subject).toBe("ada");
    clock.jump(1_000);
    expect((await refusal(askWith(subject, token))).says).toContain("has expired");
  });

  it("expires a remembered token in time, and a backward clock jump does not keep it longer", async () => {
    const provider = await started();
    const subject = authenticator(provider, { keySet: { keys: provider.keys.map(({ d: _d, ...rest }) => rest) } });
    const token = await signed(provider, { times: { exp: 100 } });
    expect((await askWith(subject, token)).subject).toBe("ada");
    clock.advance(131_000);
    expect((await refusal(askWith(subject, token))).says).toContain("has expired");
    clock.jump(-131_000);
    expect((await askWith(subject, token)).subject).toBe("ada");
    clock.advance(170_000);
    clock.jump(-170_000);
    // After five minutes the authenticator verifies the token again, by the current clock.
    expect((await askWith(subject, token)).subject).toBe("ada");
  });
});

describe("the keys of jwt()", () => {
  it("are read once for many tokens, also for concurrent ones", async () => {
    const provider = await started();
    const subject = authenticator(provider);
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, at) => signed(provider, { claims: { jti: `${at}` } })),
    );
    await Promise.all(tokens.map((token) => askWith(subject, token)));
    expect(Object.fromEntries(provider.requests)).toEqual({ "/.well-known/openid-configuration": 1, "/jwks": 1 });
  });

  it("are read again when a token has a new key, at most every 10 s", async () => {
    const provider = await started();
    const subject = authenticator(provider);
    await askWith(subject, await signed(provider));
    provider.rotate();
    const rotated = await signed(provider);
    expect((await refusal(askWith(subject, rotated))).says).toContain("no such key");
    clock.advance(10_000);
    expect((await askWith(subject, rotated)).subject).toBe("ada");
    expect(provider.requests.get("/jwks")).toBe(2);
    // The server must not call the provider for each invented token.
    for (const kid of ["a", "b", "c"]) {
      await refusal(askWith(subject, await signed(provider, { header: { kid } })));
    }
    expect(provider.requests.get("/jwks")).toBe(2);
  });

  it("are forgotten if the provider has removed them, after ten minutes at most", async () => {
    const provider = await started();
    const subject = authenticator(provider);
    const old = await signed(provider, { times: { exp: 3600 } });
    expect((await askWith(subject, old)).subject).toBe("ada");
    provider.rotate(false);
    clock.advance(10 * 60_000 + 1);
    expect((await refusal(askWith(subject, old))).says).toContain("no such key");
  });

  it("are required: while the provider is down, no rejection is permanent, and known keys are used", async () => {
    const provider = await started();
    provider.break(503);
    const subject = authenticator(provider);
    expect((await refusal(askWith(subject, await signed(provider)))).code).toBe("Unavailable");
    provider.break(undefined);
    clock.advance(30_000);
    expect((await askWith(subject, await signed(provider))).subject).toBe("ada");
    provider.break(503);
    clock.advance(11 * 60_000);
    expect((await askWith(subject, await signed(provider, { claims: { jti: "later" } }))).subject).toBe("ada");
  });

  it("may be given, by address or value, if an issuer has no metadata", async () => {
    const provider = await started();
    const token = await signed(provider);
    const keys = provider.keys.map(({ d: _d, ...rest }) => rest);
    expect((await askWith(authenticator(provider, { keySet: `${provider.issuer}/jwks` }), token)).subject).toBe("ada");
    expect((await askWith(authenticator(provider, { keySet: { keys } }), token)).subject).toBe("ada");
    expect(provider.requests.has("/.well-known/openid-configuration")).toBe(false);
  });

  it("are one of several that match, if tokens do not name their key", async () => {
    const provider = await started();
    provider.rotate();
    const token = await signed(provider, { header: { kid: undefined as never } });
    expect((await askWith(authenticator(provider), token)).subject).toBe("ada");
  });

  it("are tried up to the eighth, if tokens do not name their key", async () => {
    const provider = await started();
    const [key = {}] = provider.keys;
    const { publicKey } = await generateKeyPair("ES256");
    const other = await exportJWK(publicKey);
    const keysBefore = (count: number) => ({
      keys: [...Array.from({ length: count }, (_, at) => ({ ...other, kid: `${at}` })), { ...key, d: undefined }],
    });
    const token = await signed(provider, { header: { kid: undefined as never } });
    expect((await askWith(authenticator(provider, { keySet: keysBefore(7) }), token)).subject).toBe("ada");
    const many = authenticator(provider, { keySet: keysBefore(8) });
    expect((await refusal(askWith(many, token))).says).toContain("no such key");
  });

  it("that are unknown or broken do not affect the others", async () => {
    const provider = await started();
    const [{ d: _d, ...key } = {}] = provider.keys;
    const broken = [
      {},
      { kty: "EC" },
      { kty: "XX", kid: "a" },
      { ...key, x: "AAAA", kid: "b" },
      { kty: "oct", k: "c2VjcmV0" },
    ];
    const keySet = { keys: [...broken, key] };
    expect((await askWith(authenticator(provider, { keySet }), await signed(provider))).subject).toBe("ada");
    const byBroken = await signed(provider, { header: { kid: "b" } });
    expect((await refusal(askWith(authenticator(provider, { keySet }), byBroken))).code).toBe("Unauthenticated");
  });

  it("are not read from an address in this network that the metadata names", async () => {
    const provider = await started();
    const metadata = createServer((_request, response) => {
      const issuer = `http://127.0.0.1:${(metadata.address() as AddressInfo).port}`;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ issuer, jwks_uri: "https://10.0.0.1/jwks" }));
    });
    onTestFinished(() => void metadata.close());
    await new Promise<void>((resolve) => metadata.listen(0, "127.0.0.1", resolve));
    const issuer = `http://127.0.0.1:${(metadata.address() as AddressInfo).port}`;
    const asking = askWith(jwt({ issuer, clock }), await signed(provider, { claims: { iss: issuer } }));
    await expect(asking).rejects.toMatchObject({
      code: "Unavailable",
      cause: { cause: { message: "Address refused: 10.0.0.1 is a private address" } },
    });
  });

  it("are not those of metadata that another issuer has written (RFC 8414 §3.3)", async () => {
    const provider = await started();
    const subject = authenticator(provider, {
      fetch: () =>
        Promise.resolve(
          Response.json({ issuer: "https://evil.example.com", jwks_uri: "https://evil.example.com/jwks" }),
        ),
    });
    expect((await refusal(askWith(subject, await signed(provider)))).code).toBe("Unavailable");
  });

  it("are found by either well-known path of an issuer with a path", async () => {
    const provider = await started({ path: "/realms/agents" });
    const token = await clientToken(provider, { resource: agentUrl, scope: "chat" });
    expect((await askWith(authenticator(provider), token)).subject).toBe("service");
  });
});

describe("the options of jwt()", () => {
  const bad: readonly (readonly [string, Partial<JwtOptions>])[] = [
    ["no issuer", { issuer: "" }],
    ["an issuer without TLS", { issuer: "http://login.example.com" }],
    ["an issuer that is not a URL, and no keys", { issuer: "login" }],
    ["an algorithm with a shared secret", { algorithms: ["HS256"] }],
    ["no algorithm", { algorithms: [] }],
    ["the algorithm none", { algorithms: ["ES256", "none"] }],
    ["a key set without keys", { keySet: { keys: [] } }],
    ["a tolerance that is not a number", { tolerance: Number.NaN }],
  ];
  it.each(bad)("reject %s when the server starts", (_title, options) => {
    expect(() => jwt({ issuer: "https://login.example.com", ...options })).toThrow(/Invalid parameters/);
  });

  it("accept an issuer that is not a URL, if its keys are given", async () => {
    const provider = await started();
    const keys = provider.keys.map(({ d: _d, ...rest }) => rest);
    const token = await signed(provider, { claims: { iss: "kubernetes/serviceaccount" } });
    const subject = authenticator(provider, { issuer: "kubernetes/serviceaccount", keySet: { keys } });
    expect(await askWith(subject, token, { place })).toMatchObject({ subject: "ada" });
  });
});
