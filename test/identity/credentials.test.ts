import {
  allOf,
  anyOf,
  apiKey,
  basic,
  bearer,
  hashKey,
  hashPassword,
  jwt,
  oauth2,
  openIdConnect,
} from "@parley/a2a/auth";
import { connect as connectAnywhere } from "@parley/a2a";
import {
  apiKeyCredential,
  authorizationCode,
  basicCredential,
  bearerToken,
  clientCredentials,
  type CredentialProvider,
  memoryTokenStore,
  savedTokens,
  signIn,
} from "@parley/a2a/credentials";
import { A2AError } from "@parley/a2a/model";
import { connect } from "@parley/node";
import { describe, expect, it } from "vitest";
import { answerOf, bindings, programRedirect, serving, started } from "./credentials.ts";
import { providerSecret, signerKey } from "./provider-clients.ts";

/** A client chooses credentials from the card, for real agents and a real provider (A2A 1.0 §7.3). */

const key = "key-of-a-test-0123456789";
const password = "password-of-a-test-0123456789";

/** OAuth 2.0 as agents declare it, with a provider's endpoints. */
function declared(issuer: string, scopes: readonly string[] = ["chat"]) {
  const flow = { tokenUrl: `${issuer}/token`, scopes: { chat: "Talk to the agent" } };
  return { issuer, scopes, flows: { clientCredentials: flow } };
}

const loginFlows = (issuer: string) => ({
  authorizationCode: {
    authorizationUrl: `${issuer}/auth`,
    tokenUrl: `${issuer}/token`,
    scopes: { chat: "Talk to the agent" },
    pkceRequired: true,
  },
});

describe.each(bindings)("credentials over %s", (binding) => {
  it("send an API key as the card says: in a header and in a cookie (A2A 1.0 §4.5.2)", async () => {
    for (const place of [{ header: "X-Api-Key" }, { cookie: "session" }]) {
      const { url } = await serving(apiKey({ [await hashKey(key)]: { subject: "ada" } }, place));
      const client = await connect(url, { binding, credentials: [apiKeyCredential(key)] });
      expect(answerOf(await client.sendMessage("Who am I?"))).toBe("ada");
    }
  });

  it("send an API key in the query, if the binding has one, and never name it in an error", async () => {
    const { url } = await serving(apiKey({ [await hashKey(key)]: { subject: "ada" } }, { query: "key" }));
    const client = await connect(url, { binding, credentials: [apiKeyCredential(key)] });
    if (binding === "GRPC") await expect(client.sendMessage("Who am I?")).rejects.toThrow(/gRPC, which has no query/);
    else expect(answerOf(await client.sendMessage("Who am I?"))).toBe("ada");
    const wrong = await connect(url, { binding, credentials: [apiKeyCredential("wrong-key")] });
    await expect(wrong.sendMessage("Who am I?")).rejects.toThrow(/^(?!.*wrong-key)/);
  });

  it("send Basic in UTF-8 (RFC 7617), and several schemes together (A2A 1.0 §4.5.1)", async () => {
    const people = basic({ dörte: { password: await hashPassword(`${password} ü`), subject: "dörte" } });
    const { url } = await serving(
      allOf(people, apiKey({ [await hashKey(key)]: { subject: "app" } }, { header: "x-key" })),
    );
    const both = [basicCredential("dörte", `${password} ü`), apiKeyCredential(key)];
    const client = await connect(url, { binding, credentials: both });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("dörte");
    const one = await connect(url, { binding, credentials: both.slice(0, 1) });
    await expect(one.sendMessage("Who am I?")).rejects.toThrow(
      /None of the credentials satisfies the card.*basic and apiKey/,
    );
  });

  it("use the first requirement of the card that they can satisfy", async () => {
    const either = anyOf(
      apiKey({ [await hashKey(key)]: { subject: "app" } }, { header: "x-key" }),
      bearer({ token: { subject: "ada" } }),
    );
    const { url } = await serving(either);
    const second = await connect(url, { binding, credentials: [bearerToken("token")] });
    expect(answerOf(await second.sendMessage("Who am I?"))).toBe("ada");
    const first = await connect(url, { binding, credentials: [bearerToken("token"), apiKeyCredential(key)] });
    expect(answerOf(await first.sendMessage("Who am I?"))).toBe("app");
  });

  it("get a token by client credentials for this agent alone (RFC 8707), with the scopes of the card", async () => {
    const provider = await started();
    const { url } = await serving(oauth2(declared(provider.issuer)));
    const options = { clientId: "service", clientSecret: providerSecret };
    const client = await connect(url, { binding, credentials: [clientCredentials(options)] });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("service chat");
    for await (const { message } of client.sendStreamingMessage("Who am I?"))
      expect(answerOf({ ...(message && { message }) })).toBe("service chat");
    expect(provider.requests.get("/token")).toBe(1);
  });

  it("renew a token that the agent rejects once, and repeat the call", async () => {
    const provider = await started();
    const { url } = await serving(oauth2(declared(provider.issuer)));
    const credential = clientCredentials({
      issuer: provider.issuer,
      clientId: "service",
      clientSecret: providerSecret,
    });
    const client = await connect(url, { binding, credentials: [credential] });
    await client.sendMessage("Who am I?");
    // The provider no longer has the key that signed the first token, so the agent rejects the token.
    provider.rotate(false);
    const calls = Array.from({ length: 5 }, () => client.sendMessage("Who am I?"));
    expect((await Promise.all(calls)).map(answerOf)).toEqual(Array.from({ length: 5 }, () => "service chat"));
    expect(provider.requests.get("/token")).toBeLessThanOrEqual(2);
  });
});

describe("clientCredentials()", () => {
  it.each([
    ["client_secret_post", { clientId: "service-post", clientSecret: providerSecret, secretIn: "body" as const }],
    ["private_key_jwt (RFC 7523)", { clientId: "signer", clientKey: signerKey }],
    ["a secret from a function", { clientId: "service", clientSecret: async () => providerSecret }],
  ])("authenticates by %s, named by issuer and named by the card", async (_way, client) => {
    const provider = await started();
    const { url } = await serving(oauth2(declared(provider.issuer)));
    for (const issuer of [{ issuer: provider.issuer }, {}]) {
      const { sendMessage } = await agentAt(url, [clientCredentials({ ...client, ...issuer })]);
      expect(answerOf(await sendMessage("Who am I?"))).toBe(`${client.clientId} chat`);
    }
  });

  it("finds the server by OpenID discovery, and by the metadata that a 401 names (RFC 9728)", async () => {
    const provider = await started({ path: "/realm" });
    const { issuer } = provider;
    for (const authenticator of [openIdConnect({ issuer }), jwt({ issuer })]) {
      const { url } = await serving(authenticator);
      const credential = clientCredentials({ clientId: "service", clientSecret: providerSecret, scopes: ["chat"] });
      const client = await connect(url, { credentials: [credential] });
      expect(answerOf(await client.sendMessage("Who am I?"))).toBe("service chat");
    }
  });

  it("requests more scopes once the agent requires them (step-up, RFC 6750 §3.1)", async () => {
    const provider = await started();
    const { issuer } = provider;
    const credential = clientCredentials({
      issuer,
      clientId: "service",
      clientSecret: providerSecret,
      scopes: ["chat"],
    });
    // The card names no scope, but the policy requires one.
    const { url } = await serving(jwt({ issuer }), {
      authorizer: ({ principal }) => {
        if (principal.scopes?.includes("admin")) return "allow";
        throw insufficientScope();
      },
    });
    const client = await connect(url, { credentials: [credential] });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("service admin chat");
    expect(provider.requests.get("/token")).toBe(2);
  });

  it("keeps tokens in a store by issuer, client and resource, so another client needs no new one", async () => {
    const provider = await started();
    const { issuer } = provider;
    const [one, other] = [await serving(oauth2(declared(issuer))), await serving(oauth2(declared(issuer)))];
    const store = memoryTokenStore();
    const options = { issuer, clientId: "service", clientSecret: providerSecret, store };
    for (const { url } of [one, one, other, other]) {
      const client = await connect(url, { credentials: [clientCredentials(options)] });
      expect(answerOf(await client.sendMessage("Who am I?"))).toBe("service chat");
    }
    expect(provider.requests.get("/token")).toBe(2);
  });

  it("sends its secret to only one authorization server, whatever cards name", async () => {
    const [own, foreign] = [await started(), await started()];
    const credential = clientCredentials({ clientId: "service", clientSecret: providerSecret });
    const [first, second] = [
      await serving(oauth2(declared(own.issuer))),
      await serving(oauth2(declared(foreign.issuer))),
    ];
    const client = await connect(first.url, { credentials: [credential] });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("service chat");
    const other = await connect(second.url, { credentials: [credential] });
    await expect(other.sendMessage("Who am I?")).rejects.toThrow(/the card names another server/);
    expect(foreign.requests.get("/token")).toBeUndefined();
  });

  it("passes on the server's message if there is no token, without a secret", async () => {
    const provider = await started();
    const { url } = await serving(oauth2(declared(provider.issuer)));
    const client = await connect(url, {
      credentials: [clientCredentials({ clientId: "service", clientSecret: "wrong-secret" })],
    });
    const error = await client.sendMessage("Who am I?").catch((thrown: unknown) => thrown as Error & { code: string });
    expect(error).toMatchObject({
      code: "Unauthenticated",
      message: expect.stringContaining("invalid_client") as string,
    });
    expect(JSON.stringify([error, (error as Error).message, (error as Error).stack])).not.toContain("wrong-secret");
    provider.break(503);
    await expect(client.sendMessage("Who am I?")).rejects.toMatchObject({ code: "Unauthenticated" });
  });

  it("binds tokens to its key (DPoP, RFC 9449), even if the server requires a nonce", async () => {
    for (const dpopNonce of [false, true]) {
      const provider = await started({ dpopNonce });
      const { issuer } = provider;
      const { url } = await serving(jwt({ issuer, bound: "dpop" }));
      const store = memoryTokenStore();
      const options = { issuer, clientId: "bound", clientSecret: providerSecret, dpop: true, store };
      for (const binding of bindings) {
        const client = await connect(url, { binding, credentials: [clientCredentials(options)] });
        expect(answerOf(await client.sendMessage("Who am I?"))).toBe("bound");
      }
      expect(provider.requests.get("/token")).toBe(dpopNonce ? 2 : 1);
    }
  });
});

describe("logins", () => {
  it("log a user in by authorization code with PKCE, and renew the token without the user (RFC 7636)", async () => {
    const provider = await started();
    const { issuer } = provider;
    const { url } = await serving(oauth2({ issuer, scopes: ["chat"], flows: loginFlows(issuer) }));
    const redirect = programRedirect();
    const store = memoryTokenStore();
    const options = { clientId: "native", store, scopes: ["openid", "offline_access"] };
    const client = await connect(url, {
      credentials: [authorizationCode({ ...options, redirect, loginHint: "grace" })],
    });
    const answers = await Promise.all([client.sendMessage("Who am I?"), client.sendMessage("Who am I?")]);
    expect(answers.map(answerOf)).toEqual(["grace chat", "grace chat"]);
    const [page] = redirect.pages;
    expect(Object.fromEntries(page?.searchParams ?? [])).toMatchObject({
      resource: url.replace(/\/$/, ""),
      code_challenge_method: "S256",
      prompt: "consent",
    });
    // The agent now rejects the token, and the client renews it without a login.
    provider.rotate(false);
    const later = await connect(url, { credentials: [savedTokens({ ...options, issuer })] });
    expect(answerOf(await later.sendMessage("Who am I?"))).toBe("grace chat");
    expect(redirect).toMatchObject({ pages: [page], closed: 1 });
  });

  it("are pushed beforehand if the server requires it, so the page has only a reference (RFC 9126 §5)", async () => {
    const provider = await started({ pushedRequests: true });
    const { issuer } = provider;
    const { url } = await serving(openIdConnect({ issuer }));
    const redirect = programRedirect();
    const options = { clientId: "native", redirect, loginHint: "grace", scopes: ["openid", "chat"] };
    const client = await connect(url, { credentials: [authorizationCode(options)] });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("grace chat");
    expect(provider.requests.get("/request")).toBe(1);
    expect(redirect.pages.map(({ searchParams }) => Object.fromEntries(searchParams))).toEqual([
      {
        client_id: "native",
        request_uri: expect.stringMatching(/^urn:ietf:params:oauth:request_uri:/) as string,
        state: expect.stringMatching(/./) as string,
      },
    ]);
  });

  it("report why a user is not logged in, and ask once for calls that wait together", async () => {
    const provider = await started();
    const { issuer } = provider;
    const { url } = await serving(oauth2({ issuer, scopes: ["chat"], flows: loginFlows(issuer) }));
    const redirect = programRedirect();
    const client = await connect(url, {
      credentials: [authorizationCode({ clientId: "native", redirect, loginHint: "nobody" })],
    });
    const calls = await Promise.allSettled([client.sendMessage("Who am I?"), client.sendMessage("Who am I?")]);
    expect(calls).toMatchObject([
      { reason: { code: "Unauthenticated", message: expect.stringContaining("access_denied") as string } },
      { reason: { code: "Unauthenticated" } },
    ]);
    expect(redirect).toMatchObject({ pages: [expect.anything()], closed: 1 });
  });

  it("reject an answer of another authorization server (RFC 9207 §2.4), and one without the state", async () => {
    const provider = await started();
    const { issuer } = provider;
    const { url } = await serving(openIdConnect({ issuer }));
    for (const [name, value] of [
      ["iss", "https://evil.example.com"],
      ["state", "another"],
    ] as const) {
      const honest = programRedirect();
      const redirect = {
        begin: async (signal: AbortSignal) => {
          const pending = await honest.begin(signal);
          const open = async (page: URL): Promise<URL> => {
            const back = await pending.open(page);
            back.searchParams.set(name, value);
            return back;
          };
          return { ...pending, open };
        },
      };
      const client = await connect(url, {
        credentials: [authorizationCode({ clientId: "native", redirect, scopes: ["openid"] })],
      });
      await expect(client.sendMessage("Who am I?")).rejects.toMatchObject({ code: "Unauthenticated" });
      expect(provider.requests.get("/token")).toBeUndefined();
    }
  });

  it("sign in without a call, for a login of the command line", async () => {
    const provider = await started();
    const { issuer } = provider;
    const { url } = await serving(oauth2({ issuer, scopes: ["chat"], flows: loginFlows(issuer) }));
    const { card } = await connect(url);
    const store = memoryTokenStore();
    const redirect = programRedirect();
    const names = await signIn(card, url, [authorizationCode({ issuer, clientId: "native", redirect, store })]);
    expect(names).toEqual(["oauth2"]);
    const client = await connect(url, { credentials: [savedTokens({ issuer, clientId: "native", store })] });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("ada chat");
    const nobody = await connect(url, { credentials: [savedTokens({ issuer, clientId: "native" })] });
    await expect(nobody.sendMessage("Who am I?")).rejects.toThrow(/No valid login is stored/);
    await expect(signIn(card, url, [apiKeyCredential(key)])).rejects.toThrow(/requires oauth2/);
  });
});

function insufficientScope(): A2AError {
  const challenge = 'Bearer error="insufficient_scope", scope="admin"';
  return new A2AError("PermissionDenied", "Only admins", { challenge });
}

async function agentAt(url: string, credentials: readonly CredentialProvider[]) {
  const client = await connectAnywhere(url, { credentials });
  return { sendMessage: (text: string) => client.sendMessage(text) };
}
