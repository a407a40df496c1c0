import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/client/index.ts";
import {
  authorizationCode,
  clientCredentials,
  deviceCode,
  memoryTokenStore,
  tokenExchange,
  type CredentialProvider,
  type OAuthOptions,
  type TokenStore,
} from "../../src/credentials/index.ts";
import { fakeClock } from "@parley/testing";
import { agentWith, authorizationServer, clientFlow, errorOf, refuse } from "./support.ts";

/** Tests authorization servers with wrong responses, and cards that name wrong servers. */

const secret = "secret-of-a-test-0123456789";
const token = "token-of-a-test-0123456789";
const client: OAuthOptions = { clientId: "app", clientSecret: secret };

/** Makes a call that must fail. Returns its error. */
async function failure(url: string, credentials: readonly CredentialProvider[]) {
  const connected = await connect(url, { credentials });
  return errorOf(connected.getTask("t1"));
}

/** Fails if an error contains a secret anywhere. */
function expectNoSecret(error: Error): void {
  const all = [
    error.message,
    error.stack,
    JSON.stringify(error),
    String(error.cause),
    JSON.stringify(error.cause),
  ].join();
  expect(all).not.toContain(secret);
  expect(all).not.toContain(token);
}

it("an authorization server that cannot be reached: the error says why", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise((resolve) => server.close(resolve));
  const agent = await agentWith({ oauth: clientFlow(`${issuer}/token`) }, (_, response) => refuse(response, "Bearer"));
  const error = await failure(agent.url, [clientCredentials({ ...client, issuer })]);
  expect(error).toMatchObject({
    code: "Unauthenticated",
    message: expect.stringMatching(/no token: .* \([A-Z_]+\)$/) as string,
  });
  expectNoSecret(error);
});

describe("an answer of a token endpoint", () => {
  const answers: readonly (readonly [string, unknown])[] = [
    ["that is not JSON", `{"access_token":"${token}"`],
    ["that is a list", [token]],
    ["without a token", { token_type: "bearer", other: token }],
    ["with a token that is not text", { access_token: { token }, token_type: "bearer" }],
    ["with a token that ends a header", { access_token: `${token}\r\nx: y`, token_type: "bearer" }],
    ["with another type of token", { access_token: token, token_type: "mac" }],
    ["with a life that is not a number", { access_token: token, token_type: "bearer", expires_in: "soon" }],
    ["with a negative life", { access_token: token, token_type: "bearer", expires_in: -1 }],
    ["that is too large", `"${"x".repeat(2_000_000)}"`],
    [
      "that is an error with control characters",
      { error: "invalid_scope", error_description: `\u001b[2J${"x".repeat(9_000)}` },
    ],
    ["that echoes the secret as a name", { error: 1, error_description: secret }],
    ["that is a redirect", (to: ServerResponse) => to.writeHead(302, { location: "http://127.0.0.1:9/" }).end()],
    ["that breaks off", (to: ServerResponse) => void to.destroy()],
    ["of HTTP 500", (to: ServerResponse) => to.writeHead(500).end(secret)],
  ];
  it.each(answers)("%s is reported in a short, safe sentence", async (_what, answer) => {
    const server = await authorizationServer((path) => (path === "/token" ? answer : undefined));
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) });
    const error = await failure(agent.url, [clientCredentials(client)]);
    expect(["Unauthenticated", "InvalidParams"]).toContain(error.code);
    expectNoSecret(error);
    expect(error.message.length).toBeLessThan(1_000);
    expect(error.message).not.toContain("\u001b");
    expect(agent.calls).toEqual([]);
  });

  it("that never arrives ends with the call, and with its own timeout", async () => {
    const server = await authorizationServer(() => () => undefined);
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) });
    const clock = fakeClock();
    const connected = await connect(agent.url, { credentials: [clientCredentials({ ...client, clock })] });
    const leaving = new AbortController();
    const left = errorOf(connected.getTask("t1", { signal: leaving.signal }));
    const waiting = errorOf(connected.getTask("t1"));
    await expect.poll(() => server.asked.length).toBe(1);
    leaving.abort();
    expect(await left).toMatchObject({ code: "Aborted" });
    // The second call still waits for the same request.
    clock.advance(60_000);
    expect(await waiting).toMatchObject({ code: "Timeout" });
    expect(server.asked).toHaveLength(1);
  });
});

describe("a card", () => {
  it.each([
    "http://login.example.com/token",
    "https://169.254.169.254/token",
    "https://10.0.0.1/token",
    "https://login.corp.internal/token",
    "https://user:password@login.example.com/token",
    "ftp://login.example.com/token",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "not a url",
  ])("that names the token endpoint %s gets no secret sent there", async (tokenUrl) => {
    const agent = await agentWith({ oauth: clientFlow(tokenUrl) }, (_, response) => refuse(response, "Bearer"));
    const error = await failure(agent.url, [clientCredentials(client)]);
    expect(["Unauthenticated", "InvalidParams"]).toContain(error.code);
    expectNoSecret(error);
  });

  it("that names other metadata has no effect if the user named the issuer", async () => {
    const evil = await authorizationServer(() => ({ access_token: token, token_type: "bearer" }));
    const own = await authorizationServer((path, _form, issuer) => {
      if (path === "/token") return { access_token: token, token_type: "Bearer", expires_in: 60 };
      return path === "/.well-known/oauth-authorization-server"
        ? { issuer, token_endpoint: `${issuer}/token` }
        : undefined;
    });
    const agent = await agentWith({ oauth: clientFlow(`${evil.issuer}/token`) });
    const connected = await connect(agent.url, { credentials: [clientCredentials({ ...client, issuer: own.issuer })] });
    await connected.getTask("t1");
    expect(evil.asked).toEqual([]);
    expect(own.asked.at(-1)).toContain(`scope=chat&resource=${encodeURIComponent(agent.url)}`);
  });

  it("whose metadata belongs to another issuer is rejected (RFC 8414 §3.3)", async () => {
    const server = await authorizationServer((path) =>
      path.startsWith("/.well-known")
        ? { issuer: "https://login.example.com", token_endpoint: "https://login.example.com/token" }
        : undefined,
    );
    const openIdConnectUrl = `${server.issuer}/.well-known/openid-configuration`;
    const agent = await agentWith({ login: { openIdConnectSecurityScheme: { openIdConnectUrl } } });
    for (const issuer of [{}, { issuer: server.issuer }]) {
      const error = await failure(agent.url, [clientCredentials({ ...client, ...issuer })]);
      expect(error).toMatchObject({
        code: "Unauthenticated",
        message: expect.stringContaining("another issuer") as string,
      });
    }
    expect(server.asked.filter((one) => one.startsWith("/token"))).toEqual([]);
  });

  it("whose 401 names the metadata of another resource is rejected (RFC 9728 §3.3)", async () => {
    const server = await authorizationServer((path, _form, issuer) => {
      if (path === "/token") return { access_token: token, token_type: "Bearer" };
      if (path === "/resource") return { resource: "https://other.example.com", authorization_servers: [issuer] };
      return { issuer, token_endpoint: `${issuer}/token` };
    });
    const agent = await agentWith({ bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } }, (_, response) =>
      refuse(response, `Bearer resource_metadata="${server.issuer}/resource"`),
    );
    const error = await failure(agent.url, [clientCredentials(client)]);
    expect(error.code).toBe("Unauthenticated");
    expect(server.asked).toEqual(["/resource"]);
  });

  it("cannot make the client open a URL that is not a web page", async () => {
    const opened: string[] = [];
    const redirect = {
      begin: async () => ({
        redirectUri: "http://127.0.0.1:9/callback",
        open: async (page: URL) => (opened.push(page.href), page),
        close: async () => undefined,
      }),
    };
    for (const authorizationUrl of [
      "file:///etc/passwd",
      "javascript:alert(1)",
      "http://login.example.com/auth",
      "x",
    ]) {
      const tokenUrl = "https://login.example.com/token";
      const flows = { authorizationCode: { authorizationUrl, tokenUrl, scopes: {} } };
      const agent = await agentWith({ oauth: { oauth2SecurityScheme: { flows } } });
      const error = await failure(agent.url, [authorizationCode({ clientId: "app", redirect })]);
      expect(["Unauthenticated", "InvalidParams"]).toContain(error.code);
    }
    expect(opened).toEqual([]);
  });

  it("cannot send a user to an invalid page, nor make the client poll without a pause", async () => {
    const clock = fakeClock();
    const shown: unknown[] = [];
    let page = "javascript:alert(1)";
    const server = await authorizationServer((path) => {
      if (path === "/token") return { error: "authorization_pending" };
      return {
        device_code: token,
        user_code: "A\u001b[2JB",
        verification_uri: page,
        expires_in: 600,
        interval: 0.000_1,
      };
    });
    const flows = {
      deviceCode: { deviceAuthorizationUrl: `${server.issuer}/device`, tokenUrl: `${server.issuer}/token`, scopes: {} },
    };
    const agent = await agentWith({ oauth: { oauth2SecurityScheme: { flows } } });
    const credential = deviceCode({ clientId: "app", clock, prompt: (prompt) => void shown.push(prompt) });
    expect(await failure(agent.url, [credential])).toMatchObject({ code: "InvalidParams" });
    page = `${server.issuer}/enter`;
    const connected = await connect(agent.url, { credentials: [credential] });
    const leaving = new AbortController();
    const call = errorOf(connected.getTask("t1", { signal: leaving.signal }));
    await expect
      .poll(() => shown)
      .toMatchObject([{ verificationUri: page, userCode: expect.not.stringContaining("\u001b") as string }]);
    // Without the pause, the client would already have polled.
    await connected.getTask("t1", { timeout: 50 }).catch(() => undefined);
    expect(server.asked.filter((one) => one.startsWith("/token"))).toEqual([]);
    leaving.abort();
    expect(await call).toMatchObject({ code: "Aborted" });
  });
});

describe("tokens", () => {
  const issuing = (life: number) => {
    let count = 0;
    return authorizationServer((path) =>
      path === "/token" ? { access_token: `${token}-${++count}`, token_type: "Bearer", expires_in: life } : undefined,
    );
  };

  it("are renewed before they expire, and again after a clock that jumped", async () => {
    const server = await issuing(600);
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) });
    const clock = fakeClock();
    const connected = await connect(agent.url, { credentials: [clientCredentials({ ...client, clock })] });
    const sent = async (): Promise<string | undefined> => {
      await connected.getTask("t1");
      return agent.calls.at(-1)?.headers.authorization?.slice(-2);
    };
    expect([await sent(), await sent()]).toEqual(["-1", "-1"]);
    clock.advance(569_000);
    expect(await sent()).toBe("-1");
    clock.advance(2_000);
    expect(await sent()).toBe("-2");
    clock.jump(-86_400_000);
    expect(await sent()).toBe("-2");
    clock.jump(2 * 86_400_000);
    expect(await sent()).toBe("-3");
  });

  it("are still required if the store fails, and may come from another process", async () => {
    const server = await issuing(600);
    let refused = "";
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) }, (request, response) =>
      request.headers.authorization === refused ? refuse(response, 'Bearer error="invalid_token"') : false,
    );
    const broken: TokenStore = { get: () => Promise.reject(new Error("the disk is gone")), set: () => undefined };
    const failed = await connect(agent.url, { credentials: [clientCredentials({ ...client, store: broken })] });
    await expect(failed.getTask("t1")).rejects.toThrow("the disk is gone");
    expect(agent.calls).toEqual([]);
    const store = memoryTokenStore();
    const [one, other] = await Promise.all(
      [1, 2].map(() => connect(agent.url, { credentials: [clientCredentials({ ...client, store })] })),
    );
    await one?.getTask("t1");
    refused = `Bearer ${token}-1`;
    await one?.getTask("t1");
    await other?.getTask("t1");
    expect(agent.calls.map(({ headers }) => headers.authorization?.slice(-2))).toEqual(["-1", "-1", "-2", "-2"]);
    expect(server.asked).toHaveLength(2);
  });

  it("that many calls need are requested once", async () => {
    const server = await issuing(600);
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) });
    const connected = await connect(agent.url, { credentials: [clientCredentials(client)] });
    await Promise.all(Array.from({ length: 50 }, () => connected.getTask("t1")));
    expect([agent.calls.length, server.asked.length]).toEqual([50, 1]);
  });

  it("of two subjects are never mixed, in one store (RFC 8693)", async () => {
    const server = await authorizationServer((_path, form) => ({
      access_token: `for-${form.get("subject_token")}`,
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
      expires_in: 600,
    }));
    const agent = await agentWith({ oauth: clientFlow(`${server.issuer}/token`) });
    const store = memoryTokenStore();
    for (const subject of ["ada", "bob", "ada", "bob"]) {
      const credential = tokenExchange({ ...client, store, subject: { token: subject } });
      const connected = await connect(agent.url, { credentials: [credential] });
      await connected.getTask("t1");
    }
    expect(agent.calls.map(({ headers }) => headers.authorization)).toEqual(
      ["ada", "bob", "ada", "bob"].map((subject) => `Bearer for-${subject}`),
    );
    expect(server.asked).toHaveLength(2);
  });
});
