import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/client/index.ts";
import { waitingClock } from "../../src/client/connect.ts";
import { authorizationCode, clientCredentials, deviceCode, type OAuthOptions } from "../../src/credentials/index.ts";
import { agentWith, authorizationServer, clientFlow, errorOf, refuse } from "./support.ts";

/** Tests browser logins at untrusted servers. */

const secret = "secret-of-a-test-0123456789";
const token = "token-of-a-test-0123456789";
const client: OAuthOptions = { clientId: "app", clientSecret: secret };

describe("a login with a pushed request (RFC 9126)", () => {
  it("opens a page with a state, which the redirect must repeat", async () => {
    const server = await authorizationServer((path, _form, issuer) => {
      if (path === "/par")
        return (to: ServerResponse) =>
          to
            .writeHead(201, { "content-type": "application/json" })
            .end(JSON.stringify({ request_uri: "urn:pushed", expires_in: 60 }));
      if (path === "/token") return { access_token: token, token_type: "Bearer" };
      return {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        pushed_authorization_request_endpoint: `${issuer}/par`,
        require_pushed_authorization_requests: true,
      };
    });
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) });
    const pages: URL[] = [];
    const redirectUri = "http://127.0.0.1:9/callback";
    const open = async (page: URL) => {
      pages.push(page);
      return new URL(`${redirectUri}?code=1&state=${page.searchParams.get("state")}`);
    };
    const redirect = { begin: async () => ({ redirectUri, open, close: async () => undefined }) };
    const credentials = [authorizationCode({ ...client, issuer: server.issuer, redirect })];
    await (await connect(agent.url, { credentials })).getTask("t1");
    expect(agent.calls[0]?.headers.authorization).toBe(`Bearer ${token}`);
    const [page] = pages;
    const pushed = new URLSearchParams(server.asked.find((one) => one.startsWith("/par "))?.slice(5));
    expect(page?.searchParams.get("request_uri")).toBe("urn:pushed");
    expect(page?.searchParams.get("state")).toBe(pushed.get("state"));
    expect(page?.searchParams.get("code_challenge")).toBeNull();
  });
});

describe("a card that names endpoints of several servers", () => {
  it("does not get a code or a secret sent to any of them (RFC 9700 §4.4)", async () => {
    const evil = await authorizationServer(() => ({ access_token: token, token_type: "bearer" }));
    const own = await authorizationServer(() => ({ access_token: token, token_type: "bearer", refresh_token: token }));
    const opened: string[] = [];
    const redirect = {
      begin: async () => ({
        redirectUri: "http://127.0.0.1:9/callback",
        open: async (page: URL) => (opened.push(page.href), page),
        close: async () => undefined,
      }),
    };
    const [scopes, tokenUrl] = [{}, `${own.issuer}/token`];
    const user = { authorizationUrl: `${own.issuer}/auth`, tokenUrl, scopes };
    for (const flows of [
      { clientCredentials: { tokenUrl, refreshUrl: `${evil.issuer}/refresh`, scopes } },
      { authorizationCode: { ...user, tokenUrl: `${evil.issuer}/token` } },
      { authorizationCode: { ...user, refreshUrl: `${evil.issuer}/refresh` } },
      { deviceCode: { deviceAuthorizationUrl: `${evil.issuer}/device`, tokenUrl, scopes } },
    ]) {
      const agent = await agentWith({ oauth: { oauth2SecurityScheme: { flows } } }, (_, to) => refuse(to, "Bearer"));
      for (const credential of [
        clientCredentials(client),
        authorizationCode({ ...client, redirect }),
        deviceCode({ ...client, prompt: () => undefined }),
      ]) {
        const connected = await connect(agent.url, { credentials: [credential] });
        const error = await errorOf(connected.getTask("t1"));
        expect(error.message).not.toContain(secret);
      }
    }
    expect([...evil.asked, ...own.asked, ...opened]).toEqual([]);
  });
});

describe("the user of a login (onUser)", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const good = { sub: "ada", aud: "app", exp: now / 1000 + 60, name: "Ada\nLovelace" };

  /** Logs in at an OpenID server that answers with this ID token. Returns the reported user, and the scopes in the login URL. */
  async function logIn(idToken: (issuer: string) => unknown, scopesSupported: unknown = ["openid", "email"]) {
    const server = await authorizationServer((path, _form, issuer) =>
      path === "/token"
        ? { access_token: token, token_type: "Bearer", id_token: idToken(issuer) }
        : {
            issuer,
            authorization_endpoint: `${issuer}/auth`,
            token_endpoint: `${issuer}/token`,
            scopes_supported: scopesSupported,
          },
    );
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) });
    const redirectUri = "http://127.0.0.1:9/callback";
    let scope: string | null = null;
    const open = async (page: URL) => {
      scope = page.searchParams.get("scope");
      return new URL(`${redirectUri}?code=1&state=${page.searchParams.get("state")}`);
    };
    const redirect = { begin: async () => ({ redirectUri, open, close: async () => undefined }) };
    const users: unknown[] = [];
    const clock = { ...waitingClock, now: () => now };
    const onUser = (user: unknown): void => void users.push(user);
    const credentials = [authorizationCode({ ...client, issuer: server.issuer, redirect, clock, onUser })];
    await (await connect(agent.url, { credentials })).getTask("t1");
    expect(agent.calls[0]?.headers.authorization).toBe(`Bearer ${token}`);
    return { users, scope, issuer: server.issuer };
  }

  const jwt = (claims: object): string =>
    [{ alg: "none" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".") + ".";

  it("comes from the ID token, which the login requests (OpenID Connect Core §5.4)", async () => {
    const { users, scope, issuer } = await logIn((iss) => jwt({ ...good, iss }));
    expect(users).toEqual([{ subject: "ada", issuer, name: "Ada Lovelace" }]);
    expect(scope).toBe("chat openid email");
  });

  it.each([
    ["of another issuer", () => jwt({ ...good, iss: "https://elsewhere.example" })],
    ["for another client", (iss: string) => jwt({ ...good, iss, aud: "other" })],
    ["used by another client", (iss: string) => jwt({ ...good, iss, aud: ["app", "other"], azp: "other" })],
    ["that has expired", (iss: string) => jwt({ ...good, iss, exp: now / 1000 })],
    ["without a subject", (iss: string) => jwt({ ...good, iss, sub: undefined })],
    ["that cannot be read", () => "x.y"],
    ["that is not text", () => ({ sub: "ada" })],
    ["that is missing", () => undefined],
  ])("is unknown with an ID token %s (§3.1.3.7), but the login succeeds", async (_, idToken) => {
    expect((await logIn(idToken)).users).toEqual([]);
  });

  it.each([[["chat"]], ["openid"], [undefined]])(
    "is not requested if the server knows the scopes %j",
    async (known) => {
      expect((await logIn((iss) => jwt({ ...good, iss }), known ?? null)).scope).toBe("chat");
    },
  );
});
