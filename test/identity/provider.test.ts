import { randomUUID } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, importJWK, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browse, clientToken, tokenOf, userToken } from "./logins.ts";
import { signerKey } from "./provider-clients.ts";
import { startProvider, type TestProvider } from "./provider.ts";

/** Checks that the provider of the identity tests issues what they rely on. */

const resource = "https://agents.example.com/weather";

let provider: TestProvider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.close());

describe("the OpenID provider of the tests", () => {
  it("issues access tokens of RFC 9068 to a client, for the resource that it names (RFC 8707)", async () => {
    const token = await clientToken(provider, { resource, scope: "chat" });
    expect(decodeProtectedHeader(token)).toMatchObject({ alg: "ES256", typ: "at+jwt", kid: "key-1" });
    expect(decodeJwt(token)).toMatchObject({
      iss: provider.issuer,
      aud: resource,
      scope: "chat",
      sub: "service",
      organization: "acme",
    });
  });

  it("logs a user in without a page: authorization code with PKCE", async () => {
    const token = await userToken(provider, { resource, scope: "openid chat", user: "grace" });
    expect(decodeJwt(token.access_token)).toMatchObject({ aud: resource, sub: "grace", client_id: "native" });
    expect(token.refresh_token).toBeDefined();
  });

  it("redirects a user who declines back with the reason, and with its own name (RFC 9207)", async () => {
    const query = new URLSearchParams({
      client_id: "native",
      response_type: "code",
      redirect_uri: "http://127.0.0.1:9/callback",
      scope: "openid",
      login_hint: "nobody",
      code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
      code_challenge_method: "S256",
    });
    const { searchParams } = await browse(`${provider.issuer}/auth?${query.toString()}`, "http://127.0.0.1:9/callback");
    expect(Object.fromEntries(searchParams)).toMatchObject({ error: "access_denied", iss: provider.issuer });
  });

  it("authenticates a client by its key (private_key_jwt, RFC 7523)", async () => {
    const assertion = await new SignJWT({})
      .setProtectedHeader({ alg: "ES256", kid: "signer-1" })
      .setIssuer("signer")
      .setSubject("signer")
      .setAudience(provider.issuer)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime("1m")
      .sign(await importJWK(signerKey));
    const { access_token } = await tokenOf(provider, {
      grant_type: "client_credentials",
      client_id: "signer",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: assertion,
      resource,
    });
    expect(decodeJwt(access_token).sub).toBe("signer");
  });

  it("exchanges a token for one that names the actor (RFC 8693)", async () => {
    const { access_token } = await userToken(provider, { resource, scope: "openid chat" });
    const exchanged = await clientToken(provider, {
      client: "exchanger",
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: access_token,
      subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
      resource: "https://other.example.com",
      scope: "chat",
    });
    expect(decodeJwt(exchanged)).toMatchObject({
      sub: "ada",
      aud: "https://other.example.com",
      act: { sub: "exchanger" },
    });
  });
});
