import { defineAgent, memoryStore, serve, type ServeOptions } from "@parley/node";
import { jwt, type Authenticator, type DpopOptions } from "@parley/a2a/auth";
import { fakeClock, type FakeClock } from "@parley/testing";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT, type JWTHeaderParameters } from "jose";
import * as oauth from "oauth4webapi";
import { createHash, randomUUID } from "node:crypto";
import { connect } from "node:http2";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { agentUrl, ask, place, refusal } from "./asked.ts";
import { providerSecret } from "./provider-clients.ts";
import { startProvider, type TestProvider } from "./provider.ts";

/** Tokens that are bound to a key of the caller (DPoP, RFC 9449). */

let provider: TestProvider;
let clock: FakeClock;
/** The caller's key. */
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
/** A token from the provider that is bound to this key. */
let token: string;
beforeAll(async () => {
  provider = await startProvider();
  keys = await generateKeyPair("ES256");
  token = await boundToken(agentUrl);
});
afterAll(() => provider.close());
beforeEach(() => {
  clock = fakeClock(Date.now());
});

const insecure = { [oauth.allowInsecureRequests]: true };
const client: oauth.Client = { client_id: "bound" };

/** Gets a token like any client, with a separate proof for this request. */
async function boundToken(resource: string): Promise<string> {
  const server = { issuer: provider.issuer, token_endpoint: `${provider.issuer}/token` };
  const secret = oauth.ClientSecretBasic(providerSecret);
  const options = { DPoP: oauth.DPoP(client, keys), ...insecure };
  const form = new URLSearchParams({ resource, scope: "chat" });
  const response = await oauth.clientCredentialsGrantRequest(server, client, secret, form, options);
  const { access_token, token_type } = await oauth.processClientCredentialsResponse(server, client, response);
  expect(token_type).toBe("dpop");
  return access_token;
}

interface Proof {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  /** A key other than that of the token. */
  readonly key?: typeof keys;
}

/** A proof for the request of `ask`, with the changes of a test. */
async function proof({ claims, header, key = keys }: Proof = {}): Promise<string> {
  const usual = {
    htm: "POST",
    htu: place.url,
    iat: Math.floor(clock.now() / 1000),
    jti: randomUUID(),
    ath: createHash("sha256").update(token).digest("base64url"),
  };
  const { kty, crv, x, y } = await exportJWK(key.publicKey);
  const jwk = { kty, crv, x, y };
  const protectedHeader = { alg: "ES256", typ: "dpop+jwt", jwk, ...header } as JWTHeaderParameters;
  return new SignJWT(JSON.parse(JSON.stringify({ ...usual, ...claims })) as Record<string, unknown>)
    .setProtectedHeader(protectedHeader)
    .sign(key.privateKey);
}

function authenticator(dpop?: DpopOptions, bound?: "dpop"): Authenticator {
  const { issuer } = provider;
  return jwt({ issuer, clock, ...(dpop !== undefined && { dpop }), ...(bound !== undefined && { bound }) });
}

function show(subject: Authenticator, dpop: string | undefined, scheme = "DPoP") {
  return ask(subject, { headers: { authorization: `${scheme} ${token}`, ...(dpop !== undefined && { dpop }) } });
}

describe("a token that is bound to a key (DPoP)", () => {
  it("is accepted with a proof of that key", async () => {
    expect(await show(authenticator(), await proof())).toMatchObject({ subject: "bound", schemes: { jwt: ["chat"] } });
  });

  it("is accepted with a query in the URL of the request, which proofs leave out (RFC 9449 §4.3)", async () => {
    const asked = { headers: { authorization: `DPoP ${token}`, dpop: await proof() } };
    const withQuery = { ...place, url: `${place.url}?historyLength=0` };
    expect((await ask(authenticator(), { ...asked, place: withQuery })).subject).toBe("bound");
  });

  const wrong: readonly (readonly [string, Proof, string])[] = [
    ["is for another method", { claims: { htm: "GET" } }, "another method"],
    ["is for another path", { claims: { htu: "https://agents.example.com/weather/message:stream" } }, "another URL"],
    ["is for another host", { claims: { htu: "https://evil.example.com/weather/message:send" } }, "another URL"],
    ["has a URL that is none", { claims: { htu: "message:send" } }, "another URL"],
    ["is for another token", { claims: { ath: "x" } }, "another token"],
    ["is for no token", { claims: { ath: undefined } }, "another token"],
    ["has no name", { claims: { jti: undefined } }, "no jti"],
    ["has a name that is a number", { claims: { jti: 1 } }, "no jti"],
    ["has no time", { claims: { iat: undefined } }, "too old, or from the future"],
    ["is old", { claims: { iat: Math.floor(Date.now() / 1000) - 3600 } }, "too old, or from the future"],
    ["is of the future", { claims: { iat: Math.floor(Date.now() / 1000) + 3600 } }, "too old, or from the future"],
    ["is a JWT of another kind", { header: { typ: "at+jwt" } }, "not valid"],
    ["has no key", { header: { jwk: undefined } }, "not valid"],
  ];
  it.each(wrong)("is rejected if the proof %s (RFC 9449 §4.3)", async (_title, changed, says) => {
    const { code, says: said } = await refusal(show(authenticator(), await proof(changed)));
    expect(code).toBe("Unauthenticated");
    expect(said).toMatch(/^Bearer .*DPoP error="invalid_dpop_proof"/);
    expect(said).toContain(says);
  });

  it("is rejected with a proof of another key, and with one that shows its private key", async () => {
    const other = await generateKeyPair("ES256", { extractable: true });
    expect((await refusal(show(authenticator(), await proof({ key: other })))).says).toContain("another key");
    const jwk = await exportJWK(other.privateKey);
    expect((await refusal(show(authenticator(), await proof({ key: other, header: { jwk } })))).says).toContain(
      "not valid",
    );
  });

  it("is rejected without a proof, as a bearer token, and with two proofs", async () => {
    expect((await refusal(show(authenticator(), undefined))).says).toContain("has no proof");
    expect((await refusal(show(authenticator(), await proof(), "Bearer"))).says).toContain("needs a proof");
    const two = `${await proof()}, ${await proof()}`;
    expect((await refusal(show(authenticator(), two))).says).toContain("not one JWT");
  });

  it("is rejected with a used proof, even after a backward clock jump", async () => {
    const subject = authenticator();
    const used = await proof();
    expect((await show(subject, used)).subject).toBe("bound");
    expect((await refusal(show(subject, used))).says).toContain("used before");
    clock.jump(-30_000);
    expect((await refusal(show(subject, used))).says).toContain("used before");
  });

  it("is rejected with a proof that another process has seen, if they share their memory", async () => {
    const proofs = new Set<string>();
    const seen = (name: string) => proofs.size === proofs.add(name).size;
    const used = await proof();
    expect((await show(authenticator({ seen }), used)).subject).toBe("bound");
    expect((await refusal(show(authenticator({ seen }), used))).says).toContain("used before");
  });

  it("is rejected with an unsupported proof algorithm", async () => {
    const subject = authenticator({ algorithms: ["EdDSA"] });
    const { says } = await refusal(show(subject, await proof()));
    expect(says).toContain('algs="EdDSA"');
    expect(says).toContain("not valid");
  });
});

describe("a server that requires DPoP", () => {
  it("rejects unbound tokens, and says so in its challenge and in the metadata of the resource", async () => {
    const subject = authenticator({ algorithms: ["ES256", "EdDSA"] }, "dpop");
    expect((await refusal(ask(subject))).says).toMatch(/^DPoP .*algs="ES256 EdDSA"$/);
    expect(subject.resource).toMatchObject({ dpopAlgorithms: ["ES256", "EdDSA"] });
    const [key = {}] = provider.keys;
    const bearer = await new SignJWT({ sub: "ada" })
      .setProtectedHeader({ alg: "ES256", kid: String(key["kid"]), typ: "at+jwt" })
      .setIssuer(provider.issuer)
      .setAudience(agentUrl)
      .setExpirationTime("5m")
      .sign(key);
    const asking = ask(subject, { headers: { authorization: `Bearer ${bearer}` } });
    expect((await refusal(asking)).says).toContain("not bound to a key");
  });

  it("requires its nonce in proofs, which changes every five minutes (RFC 9449 §9)", async () => {
    const subject = authenticator({ nonce: true });
    const { says } = await refusal(show(subject, await proof()));
    expect(says).toContain('DPoP error="use_dpop_nonce"');
    const nonce = /dpop_nonce="([^"]+)"/.exec(says)?.[1];
    expect((await show(subject, await proof({ claims: { nonce } }))).subject).toBe("bound");
    expect((await refusal(show(subject, await proof({ claims: { nonce: `${nonce}x` } })))).says).toContain(
      "use_dpop_nonce",
    );
    clock.advance(5 * 60_000);
    expect((await show(subject, await proof({ claims: { nonce } }))).subject).toBe("bound");
    clock.advance(5 * 60_000);
    expect((await refusal(show(subject, await proof({ claims: { nonce } })))).says).toContain("use_dpop_nonce");
  });

  it("accepts the nonces of other processes with the same secret, and of no others", async () => {
    const nonceOf = async (secret: string) =>
      /dpop_nonce="([^"]+)"/.exec((await refusal(show(authenticator({ nonce: secret }), await proof()))).says)?.[1];
    const nonce = await nonceOf("one");
    expect((await show(authenticator({ nonce: "one" }), await proof({ claims: { nonce } }))).subject).toBe("bound");
    expect(await nonceOf("two")).not.toBe(nonce);
  });
});

describe("a client with DPoP", () => {
  const agent = defineAgent({
    name: "Echo",
    description: "Says who called.",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => Promise.resolve(turn.reply(turn.principal.subject)),
  });

  it("calls a served agent, and repeats the call once with the nonce that the server requires", async () => {
    const options: ServeOptions = { port: 0, grpc: true, host: "127.0.0.1" };
    const { issuer } = provider;
    const server = await serve(agent, {
      ...options,
      store: memoryStore(),
      logger: false,
      authenticator: jwt({ issuer, dpop: { nonce: true } }),
    });
    onTestFinished(() => server.close());
    const bound = await boundToken(server.url);
    const handle = oauth.DPoP(client, keys);
    const headers = new Headers({ "content-type": "application/json", "a2a-version": "1.0" });
    const body = JSON.stringify({ message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "Hi" }] } });
    const url = new URL(`${server.url}/message:send`);
    const call = () => oauth.protectedResourceRequest(bound, "POST", url, headers, body, { DPoP: handle, ...insecure });
    const refused = await call().catch((thrown: unknown) => thrown);
    expect(oauth.isDPoPNonceError(refused)).toBe(true);
    const answer = await call();
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ message: { parts: [{ text: "bound" }] } });
  });

  it("gets the nonce as a trailer over gRPC", async () => {
    const { issuer } = provider;
    const authenticator = jwt({ issuer, dpop: { nonce: true } });
    const server = await serve(agent, {
      port: 0,
      grpc: true,
      host: "127.0.0.1",
      store: memoryStore(),
      logger: false,
      authenticator,
    });
    onTestFinished(() => server.close());
    const bound = await boundToken(server.url);
    const path = "/lf.a2a.v1.A2AService/SendMessage";
    const ath = createHash("sha256").update(bound).digest("base64url");
    const dpop = await proof({ claims: { ath, htu: `${server.url}${path}` } });
    const session = connect(server.url);
    onTestFinished(() => session.destroy());
    const call = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      "a2a-version": "1.0",
      authorization: `DPoP ${bound}`,
      dpop,
    });
    const told: Record<string, unknown> = {};
    call.on("response", (headers) => Object.assign(told, headers));
    call.on("trailers", (trailers) => Object.assign(told, trailers));
    call.end(Buffer.alloc(5));
    await new Promise((resolve, reject) => call.on("close", resolve).on("error", reject).resume());
    expect(told["grpc-status"]).toBe("16");
    expect(told["www-authenticate"]).toContain(`dpop_nonce="${String(told["dpop-nonce"])}"`);
  });

  it("has the key that the token names", async () => {
    const { cnf } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
      readonly cnf: object;
    };
    expect(cnf).toEqual({ jkt: await calculateJwkThumbprint(await exportJWK(keys.publicKey)) });
  });
});
