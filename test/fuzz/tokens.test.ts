import { createHash } from "node:crypto";
import { jwt, mutualTls, type Authenticator } from "@parley/a2a/auth";
import { hasCode, type A2AError } from "@parley/a2a/model";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT, type JWTHeaderParameters } from "jose";
import { beforeAll, describe, expect, test } from "vitest";
import { times } from "../counts.ts";
import { agentUrl, ask, place } from "../identity/asked.ts";
import { seed } from "./fuzzed.ts";
import { randomFrom, randomText, randomValue, type Random } from "./random.ts";

/** Hostile tokens, proofs and certificates: the server never accepts one wrongly, and its only error is a rejection. */

const issuer = "https://login.example.com";

let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let other: typeof keys;
let subject: Authenticator;
beforeAll(async () => {
  keys = await generateKeyPair("ES256", { extractable: true });
  other = await generateKeyPair("ES256", { extractable: true });
  const known = { ...(await exportJWK(keys.publicKey)), kid: "k1", alg: "ES256" };
  subject = jwt({ issuer, keySet: { keys: [known] } });
});

function now(): number {
  return Math.floor(Date.now() / 1000);
}

function claimsNow(): Record<string, unknown> {
  return { iss: issuer, aud: agentUrl, sub: "ada", iat: now(), exp: now() + 600, scope: "chat" };
}

/** A token with the issuer's key and arbitrary content. */
function signed(claims: unknown, header: Record<string, unknown> = {}, by = keys): Promise<string> {
  const protectedHeader = { alg: "ES256", kid: "k1", typ: "at+jwt", ...header } as JWTHeaderParameters;
  return new SignJWT(claims as Record<string, unknown>).setProtectedHeader(protectedHeader).sign(by.privateKey);
}

/** Whether a token was accepted. Any error other than a rejection fails the test. */
async function isTaken(
  token: string,
  headers: Readonly<Record<string, string>> = {},
  scheme = "Bearer",
): Promise<boolean> {
  try {
    const { subject: name } = await ask(subject, { headers: { authorization: `${scheme} ${token}`, ...headers } });
    expect(typeof name).toBe("string");
    return true;
  } catch (thrown) {
    if (!hasCode(thrown, "Unauthenticated")) throw thrown;
    // The challenge is a header, which must not contain untrusted text.
    expect((thrown as A2AError).challenge).toMatch(/^[\x20-\x7e]+$/);
    return false;
  }
}

function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Changes a text at a random place. */
function damagedText(random: Random, text: string): string {
  const at = Math.floor(random() * text.length);
  const end = at + 1 + Math.floor(random() * 8);
  switch (Math.floor(random() * 5)) {
    case 0:
      return text.slice(0, at) + text.slice(end);
    case 1:
      return text.slice(0, at) + randomText(random) + text.slice(at);
    case 2:
      return text.slice(0, at) + pick(random, "AZaz09-_.=+/~ ,;\n\0é".split("")) + text.slice(at + 1);
    case 3:
      return text.slice(0, end) + text.slice(at);
    default:
      return text.slice(at) + text.slice(0, at);
  }
}

/** Whether a text is equivalent to a JWT: surrounding spaces belong to the header, and the last character has unused bits. */
function isSame(text: string, jwt: string): boolean {
  const [one, other] = [text.trim(), jwt].map((each) => each.split("."));
  const bytes = (parts: readonly string[] = []): string => Buffer.from(parts[2] ?? "", "base64url").toString("hex");
  const isSpelled = text.trim().length === jwt.length && /^[\w.-]+$/.test(text.trim());
  return isSpelled && one?.[0] === other?.[0] && one?.[1] === other?.[1] && bytes(one) === bytes(other);
}

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

/** Whether a token with these claims must be accepted according to the specifications, without the tested code. */
function isGood(claims: Readonly<Record<string, unknown>>): boolean {
  const { iss, aud, sub, client_id: client, exp, nbf, iat, cnf } = claims;
  const audience: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  const names = [sub, client].filter((name) => typeof name === "string" && name !== "");
  const isTime = (time: unknown, test: (seconds: number) => boolean): boolean =>
    time === undefined || (typeof time === "number" && test(time));
  return (
    iss === issuer &&
    audience.some((one) => typeof one === "string" && place.resources.includes(one.replace(/\/+$/, ""))) &&
    names.length > 0 &&
    exp !== undefined &&
    isTime(exp, (seconds) => seconds > now() - 30) &&
    isTime(nbf, (seconds) => seconds <= now() + 30) &&
    isTime(iat, (seconds) => seconds <= now() + 30) &&
    (cnf === undefined || cnf === null)
  );
}

describe(`hostile tokens (FUZZ_SEED=${seed})`, () => {
  const count = times(300, 3_000);

  test("that were changed anywhere are rejected", async () => {
    const random = randomFrom(seed);
    const token = await signed(claimsNow());
    expect(await isTaken(token)).toBe(true);
    for (let at = 0; at < count; at += 1) {
      const changed = damagedText(random, token);
      if (!isSame(changed, token)) expect(await isTaken(changed), changed).toBe(false);
    }
  });

  test("with any claims, by the right key, are accepted if the claims are valid and rejected otherwise", async () => {
    const random = randomFrom(seed + 1);
    const names = ["iss", "aud", "sub", "client_id", "exp", "nbf", "iat", "cnf", "scope", "scp", "act", "__proto__"];
    let taken = 0;
    for (let at = 0; at < count; at += 1) {
      const claims = claimsNow();
      const name = pick(random, names);
      const value = pick<unknown>(random, [
        randomValue(random),
        randomValue(random),
        [agentUrl, randomValue(random)],
        `${agentUrl}/`,
        now() + Math.floor(random() * 400) * 10 - 2005,
        undefined,
      ]);
      Object.defineProperty(claims, name, { value, enumerable: true, configurable: true });
      const text = JSON.parse(JSON.stringify(claims)) as Record<string, unknown>;
      // Not through the library that writes claims, because it checks some of them.
      const token = await raw(JSON.stringify(text));
      const isTakenNow = await isTaken(token);
      expect(isTakenNow, JSON.stringify(text)).toBe(isGood(text));
      taken += Number(isTakenNow);
    }
    expect(taken).toBeGreaterThan(count / 10);
    expect(taken).toBeLessThan(count);
  });

  test("with any header, by any key, are rejected unless it is the right one", async () => {
    const random = randomFrom(seed + 2);
    const names = ["alg", "typ", "kid", "jku", "jwk", "x5u", "x5c", "crit", "b64", "enc", "zip", "cty", "__proto__"];
    const ownKey = await exportJWK(other.publicKey);
    for (let at = 0; at < count; at += 1) {
      const header: Record<string, unknown> = { alg: "ES256", kid: "k1", typ: "at+jwt", jwk: ownKey };
      const name = pick(random, names);
      const value = pick<unknown>(random, [randomValue(random), "none", "HS256", "ES256", `${issuer}/jwks`, ["x"]]);
      Object.defineProperty(header, name, { value, enumerable: true });
      const payload = base64url(JSON.stringify(claimsNow()));
      const signature = (await signed(claimsNow(), {}, other)).split(".")[2] ?? "";
      const head = base64url(JSON.stringify(header));
      expect(await isTaken(`${head}.${payload}.${signature}`), JSON.stringify(header)).toBe(false);
      expect(await isTaken(`${head}.${payload}.`)).toBe(false);
    }
  });

  test("of any size and depth are rejected", async () => {
    const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    for (const payload of [deep(2_000), `[${"1,".repeat(3_000)}1]`, "null", "1", '""', "{", "\ud800", ""]) {
      expect(await isTaken(await raw(payload)), payload.slice(0, 40)).toBe(false);
    }
    for (const text of ["a".repeat(1 << 20), ".".repeat(20_000), "=".repeat(20_000), `${"a.".repeat(8_000)}a`]) {
      expect(await isTaken(text)).toBe(false);
    }
  });

  test("with proofs that were changed anywhere are rejected (RFC 9449)", async () => {
    const random = randomFrom(seed + 3);
    const jwk = await exportJWK(other.publicKey);
    const token = await signed({ ...claimsNow(), cnf: { jkt: await calculateJwkThumbprint(jwk) } });
    const ath = createHash("sha256").update(token).digest("base64url");
    const claims = { htm: "POST", htu: place.url, iat: now(), jti: "one", ath };
    const prove = (said: object): Promise<string> =>
      new SignJWT(JSON.parse(JSON.stringify(said)) as Record<string, unknown>)
        .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk })
        .sign(other.privateKey);
    const proof = await prove(claims);
    for (let at = 0; at < count; at += 1) {
      const damaged = damagedText(random, proof);
      if (!isSame(damaged, proof)) expect(await isTaken(token, { dpop: damaged }, "DPoP"), damaged).toBe(false);
      const member = pick(random, ["htm", "htu", "iat", "jti", "ath"]);
      const value = pick<unknown>(random, [
        randomValue(random),
        randomText(random),
        now() - 3600,
        place.url,
        undefined,
      ]);
      const changed = { ...claims, [member]: value, ...(member === "jti" && { ath: "x" }) };
      if (member === "htu" && value === place.url) continue;
      expect(await isTaken(token, { dpop: await prove(changed) }, "DPoP"), JSON.stringify(changed)).toBe(false);
    }
    expect(await isTaken(token, { dpop: proof }, "DPoP")).toBe(true);
  });
});

/** A token with arbitrary text as its payload, and the issuer's key. */
async function raw(payload: string): Promise<string> {
  const { CompactSign } = await import("jose");
  return new CompactSign(new TextEncoder().encode(payload))
    .setProtectedHeader({ alg: "ES256", kid: "k1", typ: "at+jwt" })
    .sign(keys.privateKey);
}

describe(`hostile certificates (FUZZ_SEED=${seed})`, () => {
  test("with any names are rejected, unless a name equals a known one", async () => {
    const random = randomFrom(seed + 4);
    const known = mutualTls({ names: { "URI:spiffe://example.com/planner": { subject: "planner" } } });
    for (let at = 0; at < times(2_000, 10_000); at += 1) {
      const names = Array.from({ length: Math.floor(random() * 4) }, () =>
        damagedText(
          random,
          pick(random, ["URI:spiffe://example.com/planner", "DNS:planner", `${randomText(random)}:a`]),
        ),
      );
      const fingerprint = "0".repeat(64);
      const asking = ask(known, { certificate: { authorized: true, fingerprint, subject: {}, names } });
      if (names.includes("URI:spiffe://example.com/planner")) expect((await asking).subject).toBe("planner");
      else await expect(asking).rejects.toMatchObject({ code: "Unauthenticated" });
    }
  });
});
