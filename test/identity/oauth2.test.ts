import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import {
  allOf,
  anyOf,
  apiKey,
  introspection,
  jwt,
  oauth2,
  openIdConnect,
  type IntrospectionOptions,
  type TokenOptions,
} from "@parley/a2a/auth";
import { fakeClock } from "@parley/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { agentUrl, ask, askWith, refusal } from "./asked.ts";
import { clientToken, userToken } from "./logins.ts";
import { providerSecret } from "./provider-clients.ts";
import { startProvider, type ProviderOptions, type TestProvider } from "./provider.ts";

/** `oauth2()`, `openIdConnect()` and `introspection()` with a real provider. */

async function started(options?: ProviderOptions): Promise<TestProvider> {
  const provider = await startProvider(options);
  onTestFinished(() => provider.close());
  return provider;
}

const tokenUrl = "https://login.example.com/token";
const scopes = { chat: "Talk to the agent" };
const flows = {
  authorizationCode: { authorizationUrl: "https://login.example.com/auth", tokenUrl, scopes, pkceRequired: true },
  clientCredentials: { tokenUrl, scopes },
  deviceCode: { deviceAuthorizationUrl: "https://login.example.com/device", tokenUrl, scopes },
  implicit: { authorizationUrl: "https://login.example.com/auth", scopes },
  password: { tokenUrl, scopes },
};

describe("oauth2()", () => {
  it.each(Object.entries(flows))("declares the flow %s on the card (A2A 1.0 §4.5.7)", (kind, flow) => {
    const options = { issuer: "https://login.example.com", flows: { [kind]: flow }, scopes: ["chat"] };
    const { securitySchemes, securityRequirements } = oauth2({
      ...options,
      metadataUrl: "https://login.example.com/m",
    });
    expect(securitySchemes).toEqual({
      oauth2: { oauth2SecurityScheme: { flows: { [kind]: flow }, oauth2MetadataUrl: "https://login.example.com/m" } },
    });
    expect(securityRequirements).toEqual([{ schemes: { oauth2: { list: ["chat"] } } }]);
  });

  it("makes a scheme of each of several flows, because a card has one flow for each, and a token satisfies any of them", async () => {
    const provider = await started();
    const { clientCredentials, deviceCode } = flows;
    const subject = oauth2({ issuer: provider.issuer, flows: { clientCredentials, deviceCode }, name: "login" });
    expect(Object.keys(subject.securitySchemes)).toEqual(["login-clientCredentials", "login-deviceCode"]);
    expect(subject.securityRequirements).toEqual([
      { schemes: { "login-clientCredentials": { list: [] } } },
      { schemes: { "login-deviceCode": { list: [] } } },
    ]);
    const token = await clientToken(provider, { resource: agentUrl, scope: "chat" });
    expect((await askWith(subject, token)).schemes).toEqual({
      "login-clientCredentials": ["chat"],
      "login-deviceCode": ["chat"],
    });
  });

  it("asks the authorization server if tokens are not JWTs", async () => {
    const provider = await started({ accessTokens: "opaque" });
    const { clientCredentials } = flows;
    const asking = { clientId: "service", clientSecret: providerSecret };
    const subject = oauth2({ issuer: provider.issuer, flows: { clientCredentials }, introspection: asking });
    const token = await clientToken(provider, { resource: agentUrl, scope: "chat" });
    expect(await askWith(subject, token)).toMatchObject({ subject: "service", schemes: { oauth2: ["chat"] } });
  });

  it("rejects a configuration without a flow", () => {
    expect(() => oauth2({ issuer: "https://login.example.com", flows: {} })).toThrow(/flows must have/);
    const mistyped = { clientCredential: { tokenUrl: "https://login.example.com/token", scopes: {} } };
    expect(() => oauth2({ issuer: "https://login.example.com", flows: mistyped as object })).toThrow(
      /flows must have only .*; got "clientCredential"/,
    );
    expect(() => openIdConnect({} as never)).toThrow(/issuer is required/);
  });
});

describe("several issuers", () => {
  const [one, other] = ["https://one.example.com", "https://other.example.com"];

  it("are rejected at startup if they could name each other's users", () => {
    expect(() => anyOf(jwt({ issuer: one }), jwt({ issuer: other, name: "other" }))).toThrow(
      /may use the same subject/,
    );
    const within = allOf(jwt({ issuer: other, name: "other" }), apiKey({ "key-of-an-app": { subject: "app" } }));
    expect(() => anyOf(anyOf(jwt({ issuer: one })), within)).toThrow(/may use the same subject/);
  });

  it("are accepted if the options distinguish their users, and if it is one issuer after all", () => {
    const principal: Required<TokenOptions>["principal"] = (_claims, usual) => ({ ...usual, organization: "other" });
    expect(() => anyOf(jwt({ issuer: one }), jwt({ issuer: other, name: "other", principal }))).not.toThrow();
    expect(() => anyOf(jwt({ issuer: one }), openIdConnect({ issuer: one }))).not.toThrow();
    expect(() => anyOf(jwt({ issuer: one }), apiKey({ "key-of-an-app": { subject: "app" } }))).not.toThrow();
  });
});

describe("openIdConnect()", () => {
  it("names the discovery document of its provider on the card, and accepts its access tokens, not its ID tokens", async () => {
    const provider = await started();
    const subject = openIdConnect({ issuer: provider.issuer });
    const { issuer } = provider;
    expect(subject.securitySchemes).toEqual({
      openIdConnect: {
        openIdConnectSecurityScheme: { openIdConnectUrl: `${issuer}/.well-known/openid-configuration` },
      },
    });
    const { access_token, id_token = "" } = await userToken(provider, { resource: agentUrl, scope: "openid chat" });
    expect((await askWith(subject, access_token)).subject).toBe("ada");
    expect((await refusal(askWith(subject, id_token))).code).toBe("Unauthenticated");
  });
});

describe("introspection()", () => {
  function asking(provider: TestProvider, options: Partial<IntrospectionOptions> = {}) {
    return introspection({ issuer: provider.issuer, clientId: "service", clientSecret: providerSecret, ...options });
  }

  it.each(["basic", "post"] as const)("authenticates with its secret (%s), and asks once for a token", async (how) => {
    const provider = await started({ accessTokens: "opaque" });
    const clientId = how === "basic" ? "service" : "service-post";
    const subject = asking(provider, { clientId, clientAuthentication: how });
    const { access_token } = await userToken(provider, { resource: agentUrl, scope: "openid chat", user: "grace" });
    const found = await Promise.all([1, 2, 3].map(() => askWith(subject, access_token)));
    expect(found[0]).toMatchObject({ subject: "grace", scopes: ["chat"], audience: [agentUrl] });
    await askWith(subject, access_token);
    expect(provider.requests.get("/token/introspection")).toBe(1);
  });

  it("does not show tokens of another issuer to the authorization server", async () => {
    const [one, another] = [await started({ accessTokens: "opaque" }), await started()];
    const organization =
      (name: string): Required<TokenOptions>["principal"] =>
      (_claims, usual) => ({ ...usual, organization: name });
    const subject = anyOf(
      asking(one, { principal: organization("one") }),
      jwt({ issuer: another.issuer, principal: organization("another") }),
    );
    const token = await clientToken(another, { resource: agentUrl, scope: "chat" });
    expect(await askWith(subject, token)).toMatchObject({ subject: "service", organization: "another" });
    expect(one.requests.get("/token/introspection")).toBeUndefined();
  });

  it("rejects a token that was never issued, and one for another resource", async () => {
    const provider = await started({ accessTokens: "opaque" });
    const subject = asking(provider);
    expect((await refusal(askWith(subject, "invented"))).says).toContain("not active");
    const other = await clientToken(provider, { resource: "https://other.example.com", scope: "chat" });
    expect((await refusal(askWith(subject, other))).says).toContain("another audience");
    expect((await askWith(asking(provider, { audience: false }), other)).subject).toBe("service");
    expect((await refusal(ask(subject))).says).toContain("Bearer");
  });

  it("rejects a revoked token as soon as its cached answer expires", async () => {
    const provider = await started({ accessTokens: "opaque" });
    const clock = fakeClock(Date.now());
    const subject = asking(provider, { clock, clientId: "exchanger" });
    const token = await clientToken(provider, { client: "exchanger", resource: agentUrl, scope: "chat" });
    expect((await askWith(subject, token)).subject).toBe("exchanger");
    const authorization = `Basic ${btoa(`exchanger:${providerSecret}`)}`;
    const body = new URLSearchParams({ token });
    await fetch(`${provider.issuer}/token/revocation`, { method: "POST", headers: { authorization }, body });
    expect((await askWith(subject, token)).subject).toBe("exchanger");
    clock.advance(30_000);
    expect((await refusal(askWith(subject, token))).says).toContain("not active");
  });

  it("rejects a token that has expired meanwhile, although its answer is cached", async () => {
    const provider = await started({ accessTokens: "opaque" });
    const clock = fakeClock(Date.now());
    const subject = asking(provider, { clock, remember: 3_600_000 });
    const token = await clientToken(provider, { resource: agentUrl, scope: "chat" });
    expect((await askWith(subject, token)).subject).toBe("service");
    clock.advance(660_000);
    expect((await refusal(askWith(subject, token))).says).toContain("has expired");
  });

  it("accepts nobody while the authorization server is down, and rejects nobody permanently", async () => {
    const provider = await started({ accessTokens: "opaque" });
    const token = await clientToken(provider, { resource: agentUrl, scope: "chat" });
    provider.break(500);
    const endpoint = `${provider.issuer}/token/introspection`;
    expect((await refusal(askWith(asking(provider, { endpoint }), token))).code).toBe("Unavailable");
    provider.break(undefined);
    expect((await refusal(askWith(asking(provider, { clientSecret: "wrong" }), token))).code).toBe("Unavailable");
  });

  const strange: readonly (readonly [string, unknown, string])[] = [
    ["is not JSON", "<html>", "Unavailable"],
    ["is a list", [], "Unavailable"],
    ["does not say whether the token is active", { sub: "ada", aud: agentUrl }, "Unavailable"],
    ["says so in a text", { active: "true", sub: "ada", aud: agentUrl }, "Unavailable"],
    ["names no subject", { active: true, aud: agentUrl }, "Unauthenticated"],
    ["has a subject that is a number", { active: true, sub: 1, aud: agentUrl }, "Unauthenticated"],
    [
      "is about a token of another issuer",
      { active: true, sub: "ada", aud: agentUrl, iss: "https://evil.example" },
      "Unauthenticated",
    ],
    [
      "is about a refresh token",
      { active: true, sub: "ada", aud: agentUrl, token_type: "refresh_token" },
      "Unauthenticated",
    ],
    [
      "is about a token of tomorrow",
      { active: true, sub: "ada", aud: agentUrl, nbf: 9_999_999_999 },
      "Unauthenticated",
    ],
    ["is about an expired token", { active: true, sub: "ada", aud: agentUrl, exp: 1 }, "Unauthenticated"],
    [
      "is about a token that is bound to a key",
      { active: true, sub: "ada", aud: agentUrl, cnf: { jkt: "x" } },
      "Unauthenticated",
    ],
  ];
  it.each(strange)("accepts nobody if the answer %s", async (_title, answer, code) => {
    const endpoint = await answering((_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
    });
    const subject = introspection({ issuer: endpoint, endpoint, clientId: "a", clientSecret: providerSecret });
    expect((await refusal(askWith(subject, "token"))).code).toBe(code);
  });

  it("asks about 64 tokens at a time, and rejects more temporarily", async () => {
    const waiting: (() => void)[] = [];
    const endpoint = await answering((_request, response) => {
      waiting.push(() => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ active: true, sub: "ada", aud: agentUrl }));
      });
    });
    const subject = introspection({ issuer: endpoint, endpoint, clientId: "a", clientSecret: providerSecret });
    const first = Array.from({ length: 64 }, (_, at) => askWith(subject, `token-${at}`));
    await expect.poll(() => waiting.length).toBe(64);
    expect((await refusal(askWith(subject, "one-more"))).code).toBe("Unavailable");
    for (const answer of waiting) answer();
    expect((await Promise.all(first)).map(({ subject: name }) => name)).toEqual(
      Array.from({ length: 64 }, () => "ada"),
    );
  });
});

/** Starts a server that answers introspection, and returns its URL. */
async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/introspect`;
}
