import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  makePassportKey,
  memoryNonces,
  passportKeys,
  passportKeySet,
  signPassport,
  verifyPassport,
  type CallerContext,
  type PassportTrust,
  type PrivatePassportKey,
  type SignPassportOptions,
  type VerifyPassportOptions,
} from "../../src/secure-passport/index.ts";
import { A2AError } from "@parley/a2a/internal/model/index";
import { fakeClock } from "@parley/testing";

const clientId = "a2a://desk.example.com";
const context: CallerContext = { clientId, sessionId: "s-1", state: { tier: "Gold", trips: [1, { to: "Zürich" }] } };
const audience = "https://flights.example.com/a2a";
const key = await makePassportKey();
const start = Date.UTC(2026, 0, 31, 12);

async function trusting(...keys: readonly PrivatePassportKey[]): Promise<PassportTrust> {
  return passportKeys({ [clientId]: await passportKeySet(keys) });
}

const trust = await trusting(key);

async function signed(options: Partial<SignPassportOptions> = {}, by = key, what = context) {
  return signPassport(what, by, { audience, clock: fakeClock(start), ...options });
}

function verified(passport: CallerContext, options: Partial<VerifyPassportOptions> = {}) {
  return verifyPassport(passport, { trust, audience: [audience], clock: fakeClock(start), ...options });
}

const decoded = (text = ""): Record<string, unknown> =>
  JSON.parse(Buffer.from(text, "base64url").toString()) as Record<string, unknown>;
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("the signature of a passport", () => {
  test.each(["ES256", "EdDSA", "RS256"] as const)("with %s is verified", async (algorithm) => {
    const own = await makePassportKey(algorithm);
    const passport = await signed({ jti: "p-1" }, own);
    expect(await verified(passport, { trust: await trusting(own) })).toEqual({
      verified: true,
      kid: own.kid,
      jti: "p-1",
      expires: start + 360_000,
    });
  });

  test("is a compact JWS with detached payload over the canonical form of clientId, sessionId and state", async () => {
    const { signature } = await signed({ jti: "p-1", lifetime: 60 });
    const [head, payload] = signature.split(".");
    expect(payload).toBe("");
    expect(decoded(head)).toEqual({
      alg: "ES256",
      typ: "passport+jws",
      kid: key.kid,
      aud: audience,
      iat: start / 1000,
      exp: start / 1000 + 60,
      jti: "p-1",
    });
    // Checked only with WebCrypto, and a canonical form that is written here by hand.
    const canonical = `{"clientId":"${clientId}","sessionId":"s-1","state":{"tier":"Gold","trips":[1,{"to":"Zürich"}]}}`;
    const { kty, crv, x, y } = key as unknown as Record<string, string>;
    const publicKey = await crypto.subtle.importKey(
      "jwk",
      { kty: kty ?? "", crv: crv ?? "", x: x ?? "", y: y ?? "" },
      { name: "ECDSA", namedCurve: "P-256" },
      false,
      ["verify"],
    );
    const bytes = new TextEncoder().encode(`${head}.${Buffer.from(canonical).toString("base64url")}`);
    const proof = Buffer.from(signature.split(".")[2] ?? "", "base64url");
    expect(await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, publicKey, proof, bytes)).toBe(true);
  });

  test("is valid for the same state in another order", async () => {
    const { signature } = await signed();
    const { tier, trips } = context.state as Record<string, never>;
    expect((await verified({ ...context, state: { trips, tier }, signature } as never)).verified).toBe(true);
  });

  test.each<[string, (passport: CallerContext) => CallerContext]>([
    ["another state", (passport) => ({ ...passport, state: { ...passport.state, tier: "Platinum" } })],
    ["another session", (passport) => ({ ...passport, sessionId: "s-2" })],
    ["no session", ({ sessionId: _, ...passport }) => passport],
    ["a state without a canonical form", (passport) => ({ ...passport, state: { half: "\ud800" } })],
  ])("is invalid for %s", async (_, change) => {
    expect(await verified(change(await signed()))).toEqual({ verified: false, problem: "invalid" });
  });

  test("is invalid for another client with other keys", async () => {
    const other = "a2a://other.example.com";
    const both = passportKeys({
      [clientId]: await passportKeySet([key]),
      [other]: await passportKeySet([await makePassportKey()]),
    });
    const stolen = { ...(await signed()), clientId: other };
    expect(await verified(stolen, { trust: both })).toEqual({ verified: false, problem: "untrusted" });
    expect(await verified({ ...stolen, clientId: "a2a://nobody" }, { trust: both })).toMatchObject({
      problem: "untrusted",
    });
  });

  test("is valid from issue to expiry, within clock skew", async () => {
    const passport = await signed({ lifetime: 300 });
    const at = async (seconds: number, options: Partial<VerifyPassportOptions> = {}) => {
      const verdict = await verified(passport, { clock: fakeClock(start + seconds * 1000), ...options });
      return verdict.verified ? "verified" : verdict.problem;
    };
    expect(await at(-60)).toBe("verified");
    expect(await at(-61)).toBe("expired");
    expect(await at(359)).toBe("verified");
    expect(await at(360)).toBe("expired");
    expect(await at(299, { clockSkew: 0 })).toBe("verified");
    expect(await at(300, { clockSkew: 0 })).toBe("expired");
    expect(await at(0, { maxLifetime: 299 })).toBe("expired");
  });

  test("is invalid if it never expires, or expires before its issue", async () => {
    expect(await verified(await signed({ lifetime: 10 ** 9 }))).toEqual({ verified: false, problem: "expired" });
    expect(await verified(await signed({ lifetime: -10 }))).toEqual({ verified: false, problem: "expired" });
  });

  test("is valid only for its audience", async () => {
    const passport = await signed({ audience: "https://hotels.example.com/a2a" });
    expect(await verified(passport)).toEqual({ verified: false, problem: "audience" });
    expect(await verified(passport, { audience: [] })).toEqual({ verified: false, problem: "audience" });
    const own = { audience: [audience, "https://hotels.example.com/a2a"] };
    expect((await verified(passport, own)).verified).toBe(true);
  });

  test("is invalid for an expired, revoked or encryption key", async () => {
    const [published] = (await passportKeySet([key])).keys;
    const by = (change: object): Partial<VerifyPassportOptions> => ({
      trust: { keyFor: () => ({ ...published, kty: "EC", ...change }) },
    });
    const passport = await signed();
    expect((await verified(passport, by({}))).verified).toBe(true);
    expect(await verified(passport, by({ exp: start / 1000 - 1 }))).toMatchObject({ problem: "outdated-key" });
    expect(await verified(passport, by({ revoked: true }))).toMatchObject({ problem: "outdated-key" });
    expect(await verified(passport, by({ use: "enc" }))).toMatchObject({ problem: "untrusted" });
    expect(await verified(passport, by({ kid: "another" }))).toMatchObject({ problem: "untrusted" });
  });
});

describe("an invalid signature", () => {
  const header = { alg: "ES256", typ: "passport+jws", kid: key.kid, aud: audience, iat: 1, exp: 2, jti: "j" };

  test.each([
    ["the public sample's", "mock-signature-xyz"],
    ["an empty text", ""],
    ["a JWS with its payload", `${encoded(header)}.e30.c2ln`],
    ["one without an algorithm", `${encoded({ ...header, alg: "none" })}..c2ln`],
    ["one with a secret that both sides know", `${encoded({ ...header, alg: "HS256" })}..c2ln`],
    ["one of another kind", `${encoded({ ...header, typ: "JWT" })}..c2ln`],
    ["one with a critical extension", `${encoded({ ...header, crit: ["b64"], b64: false })}..c2ln`],
    ["one without a name", `${encoded({ ...header, jti: undefined })}..c2ln`],
    ["one without an end", `${encoded({ ...header, exp: undefined })}..c2ln`],
    ["one whose name is too long", `${encoded({ ...header, jti: "j".repeat(1025) })}..c2ln`],
    ["one whose header is a list", `${encoded([])}..c2ln`],
    ["one whose header is not JSON", "bm90IGpzb24..c2ln"],
    ["one that is too long", `${"A".repeat(20_000)}..c2ln`],
  ])("such as %s is unreadable", async (_, signature) => {
    expect(await verified({ ...context, signature })).toEqual({ verified: false, problem: "unreadable" });
  });

  test("is missing", async () => {
    expect(await verified(context)).toEqual({ verified: false, problem: "unsigned" });
  });

  test("is noise under the header of a trusted key", async () => {
    const now = { ...header, iat: start / 1000, exp: start / 1000 + 60 };
    expect(await verified({ ...context, signature: `${encoded(now)}..c2ln` })).toEqual({
      verified: false,
      problem: "invalid",
    });
  });
});

describe("keys at a URL", () => {
  /** A server with a changeable key set. */
  async function published(keySet: () => unknown) {
    let requests = 0;
    const server = createServer((_, response) => {
      requests += 1;
      const value = keySet();
      response.writeHead(value === undefined ? 503 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(value ?? {}));
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
    return { url, requests: () => requests };
  }

  test("are read once, and again for an unknown key", async () => {
    const later = await makePassportKey();
    let keys = [key];
    const { url, requests } = await published(() => ({ keys }));
    const clock = fakeClock(start);
    const remote = passportKeys({ [clientId]: url }, { clock });
    keys = await Promise.all([key].map(async (each) => (await passportKeySet([each])).keys[0] as PrivatePassportKey));
    for (let count = 0; count < 3; count += 1) {
      expect((await verified(await signed(), { trust: remote })).verified).toBe(true);
    }
    expect(requests()).toBe(1);
    keys = (await passportKeySet([key, later])).keys as PrivatePassportKey[];
    expect(await verified(await signed({}, later), { trust: remote })).toMatchObject({ problem: "untrusted" });
    clock.advance(31_000);
    expect((await verified(await signed({}, later), { trust: remote })).verified).toBe(true);
    expect(requests()).toBe(2);
  });

  test("that cannot be read verify nothing, and report it", async () => {
    const { url } = await published(() => undefined);
    const remote = passportKeys({ [clientId]: url });
    expect(await verified(await signed(), { trust: remote })).toEqual({ verified: false, problem: "unavailable" });
  });

  test("are read only over TLS, except on this machine", () => {
    for (const url of ["http://desk.example.com/jwks.json", "ftp://127.0.0.1/jwks", "jwks.json"]) {
      expect(() => passportKeys({ [clientId]: url })).toThrow(A2AError);
    }
    expect(() => passportKeys({ [clientId]: { keys: [7] } as never })).toThrow(/must be a key set/);
  });

  test("are found by clientId: nothing in a passport leads to a URL", async () => {
    const asked: unknown[] = [];
    const noting: PassportTrust = { keyFor: (...about) => void asked.push(about) };
    const { signature } = await signed();
    const [head, , proof] = signature.split(".");
    const luring = `${encoded({ ...decoded(head), jku: "http://169.254.169.254/", x5u: "http://127.0.0.1/" })}..${proof}`;
    expect(await verified({ ...context, signature: luring }, { trust: noting })).toMatchObject({
      problem: "untrusted",
    });
    expect(asked).toEqual([[clientId, key.kid]]);
  });
});

describe("a key that cannot sign", () => {
  test("is rejected, and not quoted in the error", async () => {
    const secret = "secret-of-the-desk-0123456789";
    const wrong = { kty: "oct", k: secret, d: secret } as unknown as PrivatePassportKey;
    await expect(signPassport(context, wrong, { audience })).rejects.toThrow(/key must be a private key/);
    await expect(passportKeySet([wrong])).rejects.not.toThrow(secret);
  });
});

describe("the memory of used passports", () => {
  const until = start + 60_000;

  test("accepts a passport once, and again for the same message", () => {
    const nonces = memoryNonces({ clock: fakeClock(start) });
    expect(nonces.use({ clientId, jti: "1", use: "a", until })).toBe("fresh");
    expect(nonces.use({ clientId, jti: "1", use: "a", until })).toBe("fresh");
    expect(nonces.use({ clientId, jti: "1", use: "b", until })).toBe("used");
    expect(nonces.use({ clientId: "a2a://other", jti: "1", use: "b", until })).toBe("fresh");
  });

  test("is limited in bytes, keeps unexpired passports, and reserves memory for other clients", () => {
    const clock = fakeClock(start);
    const nonces = memoryNonces({ clock, bytes: 100_000, bytesPerClient: 20_000 });
    const fill = (client: string): number => {
      for (let count = 0; ; count += 1) {
        if (nonces.use({ clientId: client, jti: `${count}`, use: "a", until }) === "full") return count;
        expect(count).toBeLessThan(1000);
      }
    };
    const first = fill("a2a://greedy");
    expect(first).toBeGreaterThan(10);
    expect(fill("a2a://second")).toBeGreaterThan(10);
    expect(nonces.use({ clientId: "a2a://greedy", jti: "0", use: "b", until })).toBe("used");
    clock.advance(60_000);
    expect(nonces.use({ clientId: "a2a://greedy", jti: "late", use: "a", until: until + 60_000 })).toBe("fresh");
    expect(nonces.use({ clientId: "a2a://greedy", jti: "0", use: "b", until: until + 60_000 })).toBe("fresh");
  });

  test("has room again after a wall clock jumped forward and back", () => {
    const clock = fakeClock(start);
    const nonces = memoryNonces({ clock, bytes: 20_000, bytesPerClient: 20_000 });
    let count = 0;
    const use = () => nonces.use({ clientId, jti: `${(count += 1)}`, use: "a", until: clock.now() + 60_000 });
    const fill = (): void => {
      while (use() !== "full") expect(count).toBeLessThan(1000);
    };
    fill();
    clock.advance(1000);
    clock.jump(86_400_000);
    expect(use()).toBe("fresh");
    clock.jump(-86_400_000);
    fill();
    clock.advance(120_000);
    expect(use()).toBe("fresh");
  });
});

describe("a client that floods the server with passports", () => {
  const start = Date.UTC(2026, 0, 31);
  const until = start + 300_000;
  const flood = (nonces: ReturnType<typeof memoryNonces>, clientId: string): number => {
    for (let count = 0; ; count += 1) {
      if (nonces.use({ clientId, jti: `${count}`, use: "u", until }) === "full") return count;
    }
  };

  test("cannot cause another client's passport to be rejected, not even together with seven more", () => {
    const nonces = memoryNonces({ clock: fakeClock(start) });
    const counts: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      expect(nonces.use({ clientId: `honest ${n}`, jti: "1", use: "u", until })).toBe("fresh");
      counts.push(flood(nonces, `greedy ${n}`));
    }
    expect(counts[0]).toBeGreaterThan(1000);
    for (let count = 0; count < 300; count += 1) {
      expect(nonces.use({ clientId: "ninth", jti: `${count}`, use: "u", until })).toBe("fresh");
    }
    // No used nonce is forgotten for it.
    expect(nonces.use({ clientId: "greedy 0", jti: "0", use: "another", until })).toBe("used");
    expect(nonces.use({ clientId: "honest 0", jti: "1", use: "another", until })).toBe("used");
  });

  test("has room again once its passports expire", async () => {
    const clock = fakeClock(start);
    const nonces = memoryNonces({ clock });
    const count = flood(nonces, "greedy");
    clock.advance(300_001);
    expect(nonces.use({ clientId: "greedy", jti: "new", use: "u", until: until + 600_000 })).toBe("fresh");
    expect(count).toBeLessThan(4000);
  });
});
