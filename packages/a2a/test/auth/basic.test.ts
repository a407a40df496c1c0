import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { basic, hashPassword, type BasicUser } from "../../src/auth/index.ts";
import { A2AError } from "../../src/model/index.ts";
import type { Principal } from "../../src/protocol/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { card, request } from "../transport/support.ts";

const place = { resources: ["https://agents.example.com"], url: "https://agents.example.com/" };
const challenge = 'Basic realm="agents", charset="UTF-8"';

/** Creates users with few iterations, for speed. */
const users = async (): Promise<Readonly<Record<string, BasicUser>>> => ({
  ada: { password: await hashPassword("a:b c", { iterations: 10 }), organization: "acme", scopes: ["read"] },
  jürgen: { password: await hashPassword("Straße", { iterations: 10 }), subject: "user-7" },
});

const encode = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
const withHeader = (authorization?: string, more = {}) =>
  request("GET", "/tasks", { headers: { ...(authorization !== undefined && { authorization }), ...more } });

async function answer(authorization?: string, authenticator = users().then((all) => basic(all))) {
  try {
    return await (await authenticator).authenticate(withHeader(authorization), place);
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    return [thrown.code, thrown.challenge];
  }
}

describe("basic() (RFC 7617)", () => {
  test("finds a user by name and password, which may contain colons and any letters", async () => {
    expect(await answer(encode("ada:a:b c"))).toEqual({
      subject: "ada",
      organization: "acme",
      scopes: ["read"],
      schemes: { basic: ["read"] },
    });
    expect(await answer(encode("jürgen:Straße"))).toMatchObject({ subject: "user-7" });
    expect(await answer(encode("jürgen:Straße").replace("Basic", "bASIC"))).toMatchObject({ subject: "user-7" });
  });

  test("accepts the same text in other code points (RFC 8265 §4.2)", async () => {
    const hash = await hashPassword("é", { iterations: 10 });
    expect(await answer(encode("a:e\u0301"), Promise.resolve(basic({ a: { password: hash } })))).toMatchObject({
      subject: "a",
    });
  });

  test.each([[undefined], [""], ["Basic"], ["Basic "], ["Bearer YTpi"]])("asks for credentials: %j", async (header) => {
    expect(await answer(header)).toEqual(["Unauthenticated", challenge]);
  });

  test.each([
    encode("ada:wrong"),
    encode("ada:"),
    encode("ada"),
    encode("Ada:a:b c"),
    encode("nobody:a:b c"),
    encode("ada:a:b c\n"),
    encode("__proto__:x"),
    encode("constructor:x"),
    "Basic !!!",
    `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString("base64")}`,
    `${encode("ada:a:b c")}, ${encode("ada:a:b c")}`,
  ])("rejects wrong credentials: %j", async (header) => {
    expect(await answer(header)).toEqual(["Unauthenticated", `${challenge}, error="invalid_token"`]);
  });

  test("derives a password once for concurrent requests, and never again after a success", async () => {
    const authenticator = Promise.resolve(basic(await users()));
    const derive = vi.spyOn(crypto.subtle, "deriveBits");
    onTestFinished(() => derive.mockRestore());
    await Promise.all(Array.from({ length: 20 }, () => answer(encode("ada:a:b c"), authenticator)));
    await answer(encode("ada:a:b c"), authenticator);
    expect(derive).toHaveBeenCalledTimes(1);
    await answer(encode("ada:wrong"), authenticator);
    await answer(encode("ada:wrong"), authenticator);
    expect(derive).toHaveBeenCalledTimes(3);
    expect(await answer(encode("ada:a:b c"), authenticator)).toMatchObject({ subject: "ada" });
    expect(derive).toHaveBeenCalledTimes(3);
  });

  test("derives a key for unknown users too, so timing does not reveal who exists", async () => {
    const authenticator = Promise.resolve(basic(await users()));
    const derive = vi.spyOn(crypto.subtle, "deriveBits");
    onTestFinished(() => derive.mockRestore());
    await answer(encode("nobody:x"), authenticator);
    expect(derive.mock.calls.map(([algorithm]) => (algorithm as { iterations: number }).iterations)).toEqual([10]);
  });

  test("rejects more than a hundred waiting guesses, and continues when they are done", async () => {
    const authenticator = Promise.resolve(basic(await users()));
    const guesses = Array.from({ length: 150 }, (_, n) => answer(encode(`ada:${n}`), authenticator));
    const codes = (await Promise.all(guesses)).map((found) => (found as readonly string[])[0]);
    expect(codes.filter((code) => code === "Unavailable")).toHaveLength(48);
    expect(codes.filter((code) => code === "Unauthenticated")).toHaveLength(102);
    expect(await answer(encode("ada:a:b c"), authenticator)).toMatchObject({ subject: "ada" });
  });

  test("does not authenticate pages of other origins, for which browsers send known passwords", async () => {
    const authenticator = basic(await users());
    const sent = withHeader(encode("ada:a:b c"), { origin: "https://evil.example" });
    await expect(authenticator.authenticate(sent, place)).rejects.toMatchObject({ code: "PermissionDenied" });
  });

  test("takes a function that looks up users", async () => {
    const found = (name: string, password: string): Principal | undefined =>
      password === `${name}!` ? { subject: name } : undefined;
    expect(await answer(encode("eve:eve!"), Promise.resolve(basic(found)))).toMatchObject({ subject: "eve" });
    expect(await answer(encode("eve:eve"), Promise.resolve(basic(found)))).toMatchObject(["Unauthenticated", {}]);
  });

  test("declares its scheme for the card (A2A 1.0 §4.5.3)", () => {
    const { securitySchemes, securityRequirements } = basic(() => undefined, { name: "team", description: "Ask us" });
    expect(securitySchemes).toEqual({ team: { httpAuthSecurityScheme: { scheme: "Basic", description: "Ask us" } } });
    expect(() => codecV1.decodeCard(card({ securitySchemes, securityRequirements }))).not.toThrow();
  });

  test.each([
    "",
    "secret",
    "pbkdf2-sha256$10$AAAA",
    "pbkdf2-sha256$0$x$y",
    "pbkdf2-sha256$99999999$AAAAAAAAAAAAAAAA$AAAA",
  ])("rejects an invalid hash, and does not show it: %j", (password) => {
    expect(() => basic({ ada: { password } })).toThrow(/users\["ada"\] must have the hash of a password/);
    expect(() => basic({ ada: { password } })).not.toThrow(password || "never");
  });

  test("rejects a password in place of a user (untyped JavaScript)", () => {
    expect(() => basic({ ada: "secret" as never })).toThrow(/users\["ada"\] must have the hash of a password/);
    expect(() => basic({ ada: {} as never })).toThrow(/users\["ada"\] must have the hash of a password/);
    expect(() => basic(undefined as never)).toThrow(/users must be an object/);
  });

  test("rejects a name that cannot be sent", async () => {
    const password = await hashPassword("x", { iterations: 10 });
    expect(() => basic({ "a:b": { password } })).toThrow(/is not a valid user name/);
  });
});

describe("hashPassword()", () => {
  test("uses its own salt, and 600,000 iterations by default", async () => {
    const [one, other] = await Promise.all([
      hashPassword("x", { iterations: 10 }),
      hashPassword("x", { iterations: 10 }),
    ]);
    expect(one).not.toBe(other);
    expect(one).toMatch(/^pbkdf2-sha256\$10\$[A-Za-z0-9+/]{22}==\$[A-Za-z0-9+/]{43}=$/);
    const derive = vi.spyOn(crypto.subtle, "deriveBits").mockResolvedValue(new ArrayBuffer(32));
    onTestFinished(() => derive.mockRestore());
    expect(await hashPassword("x")).toContain("$600000$");
  });
});

describe("the work for a wrong password", () => {
  test("is the same for known and unknown users, whatever the iterations of their hashes", async () => {
    const derivations: number[] = [];
    const derive = crypto.subtle.deriveBits.bind(crypto.subtle);
    const spy = vi.spyOn(crypto.subtle, "deriveBits").mockImplementation((algorithm, key, length) => {
      derivations.push((algorithm as { readonly iterations: number }).iterations);
      return derive(algorithm, key, length);
    });
    onTestFinished(() => spy.mockRestore());
    /** Returns the number of derivations for one rejection, and their total number of iterations. */
    const workOf = async (authenticator: ReturnType<typeof basic>, name: string): Promise<readonly number[]> => {
      derivations.length = 0;
      expect(await answer(encode(`${name}:wrong`), Promise.resolve(authenticator))).toContain("Unauthenticated");
      return [derivations.length, derivations.reduce((sum, one) => sum + one, 0)];
    };
    const iterations = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 });
    const holds = fc.asyncProperty(iterations, async (all) => {
      const rows = all.map(async (count, at) => {
        return [`user-${at}`, { password: await hashPassword(`right-${at}`, { iterations: count }) }] as const;
      });
      const authenticator = basic(Object.fromEntries(await Promise.all(rows)));
      const nobody = await workOf(authenticator, "nobody");
      for (const at of all.keys()) expect(await workOf(authenticator, `user-${at}`)).toEqual(nobody);
      // The server still accepts the correct password.
      const right = await answer(encode("user-0:right-0"), Promise.resolve(authenticator));
      expect(right).toMatchObject({ subject: "user-0" });
    });
    await fc.assert(holds, { numRuns: 30 });
  });
});

test("rejects credentials in another spelling of the same bytes (RFC 7617 §2, RFC 4648 §3.5)", async () => {
  const all = basic({ eve: { password: await hashPassword("xyz", { iterations: 1 }) } });
  const right = encode("eve:xyz").slice("Basic ".length);
  expect(right).toMatch(/eg==$/);
  const spellings = [right.replace(/=+$/, ""), `${right}=`, right.slice(0, -1), right.replace(/eg==$/, "eh==")];
  for (const spelling of spellings) {
    const answered = await answer(`Basic ${spelling}`, Promise.resolve(all));
    expect([spelling, ...(answered as readonly unknown[])]).toEqual([spelling, "Unauthenticated", expect.any(String)]);
  }
});
