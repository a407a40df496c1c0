import { describe, expect, test } from "vitest";
import { allOf, anyOf, anyone, apiKey, bearer, defineScheme, type Authenticator } from "../../src/auth/index.ts";
import { A2AError } from "../../src/model/index.ts";
import { anonymous, type Principal, type UniversalRequest } from "../../src/protocol/index.ts";
import { request } from "../transport/support.ts";

const place = { resources: ["https://agents.example.com"], url: "https://agents.example.com/" };

const key = apiKey({ "key-of-app": { subject: "app", scopes: ["use"], claims: { plan: "free", tier: 1 } } });
const token = bearer(
  { "token-of-ada": { subject: "ada", organization: "acme", scopes: ["read"], claims: { plan: "paid" } } },
  { scopes: ["read"] },
);
const keyChallenge = 'ApiKey in="header", name="x-api-key"';

const asked = (headers: Readonly<Record<string, string>> = {}): UniversalRequest =>
  request("GET", "/tasks", { headers });
const withKey = (value = "key-of-app") => ({ "x-api-key": value });
const withToken = (value = "token-of-ada") => ({ authorization: `Bearer ${value}` });

async function answer(
  authenticator: Authenticator,
  headers: Readonly<Record<string, string>> = {},
): Promise<Principal | readonly [string, string | undefined]> {
  try {
    return await authenticator.authenticate(asked(headers), place);
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    return [thrown.code, thrown.challenge];
  }
}

/** Creates a third-party authenticator that reports only the required fields. */
function foreign(found: () => Principal): Authenticator {
  return {
    securitySchemes: { own: { httpAuthSecurityScheme: { scheme: "Own" } } },
    securityRequirements: [{ schemes: { own: { list: ["use"] } } }],
    authenticate: found,
  };
}

describe("anyOf() (A2A 1.0 §4.5: one of the requirements)", () => {
  test("accepts a caller that any of its members accepts, and names the scheme", async () => {
    const either = anyOf(key, token);
    expect(await answer(either, withKey())).toMatchObject({ subject: "app", schemes: { apiKey: ["use"] } });
    expect(await answer(either, withToken())).toMatchObject({ subject: "ada", schemes: { bearer: ["read"] } });
    expect(await answer(either, { ...withKey("wrong"), ...withToken() })).toMatchObject({ subject: "ada" });
  });

  test("checks further credentials only for required schemes, and only of the same caller", async () => {
    const checked: string[] = [];
    const scheme = (name: string, principal: Principal): Authenticator =>
      defineScheme({
        name,
        scheme: { httpAuthSecurityScheme: { scheme: name } },
        credentials: (request) => request.header(`x-${name}`),
        verify: (value) => (checked.push(name), value === "right" ? principal : undefined),
        challenge: () => name,
      });
    const urls = ["https://a.example.com", "https://b.example.com"];
    const either = anyOf(
      scheme("one", { subject: "ada", organization: "acme", scopes: ["read"], audience: urls }),
      scheme("same", { subject: "ada", organization: "acme", scopes: ["write"], audience: urls.slice(1) }),
      scheme("other", { subject: "ada", organization: "another" }),
      scheme("unshown", { subject: "ada", organization: "acme" }),
    );
    const shown = { "x-one": "right", "x-same": "right", "x-other": "right" };
    const found = (headers: Readonly<Record<string, string>>, demanded?: readonly string[]) =>
      either.authenticate(asked(headers), { ...place, ...(demanded && { demanded }) });
    const plain = {
      subject: "ada",
      organization: "acme",
      scopes: ["read"],
      audience: urls,
      schemes: { one: ["read"] },
    };
    expect(await found(shown)).toEqual(plain);
    expect(await found(shown, ["one"])).toEqual(plain);
    expect(checked.splice(0)).toEqual(["one", "one"]);
    const both = { ...plain, audience: urls.slice(1), schemes: { one: ["read"], same: ["write"] } };
    expect(await found(shown, ["same", "other", "unshown"])).toEqual(both);
    expect(checked.splice(0)).toEqual(["one", "same", "other"]);
    expect(await found({ ...shown, "x-same": "wrong" }, ["same"])).toEqual(plain);
    // The first valid credentials identify the caller, whatever the agent requires.
    expect(await found(shown, ["other"])).toEqual(plain);
    expect(await found({ ...shown, "x-one": "wrong" }, ["one"])).toMatchObject({ schemes: { same: ["write"] } });
  });

  test("lists all challenges if the request has no credentials (RFC 9110 §11.6.1)", async () => {
    expect(await answer(anyOf(key, token))).toEqual(["Unauthenticated", `${keyChallenge}, Bearer`]);
  });

  test("reports invalid credentials before missing ones", async () => {
    const either = anyOf(key, token);
    expect(await answer(either, withToken("x"))).toEqual(["Unauthenticated", 'Bearer error="invalid_token"']);
    expect(await answer(either, withKey("x"))).toEqual(["Unauthenticated", `${keyChallenge}, error="invalid_token"`]);
  });

  test("writes a challenge that two schemes share once", async () => {
    const others = bearer({ other: { subject: "bob" } }, { name: "other" });
    expect(await answer(anyOf(token, others))).toEqual(["Unauthenticated", "Bearer"]);
    expect(await answer(anyOf(token, others), withToken("other"))).toMatchObject({ subject: "bob" });
  });

  test("prefers credentials with the scopes that their scheme needs, and accepts others last", async () => {
    const weak = bearer({ weak: { subject: "eve" } }, { scopes: ["read"] });
    expect(await answer(anyOf(weak, key), { ...withToken("weak"), ...withKey() })).toMatchObject({ subject: "app" });
    expect(await answer(anyOf(weak, key), withToken("weak"))).toMatchObject({
      subject: "eve",
      schemes: { bearer: [] },
    });
  });

  test("reports a failed check of credentials before missing or wrong ones", async () => {
    const broken = bearer(() => Promise.reject(new A2AError("Unavailable", "The issuer does not answer")), {
      name: "b",
    });
    expect(await answer(anyOf(token, broken, key), { ...withToken("x"), ...withKey("x") })).toEqual([
      "Unavailable",
      undefined,
    ]);
  });

  test("reports a known caller's missing permission before wrong credentials", async () => {
    const closed = bearer(() => Promise.reject(new A2AError("PermissionDenied", "Not today")), { name: "closed" });
    expect(await answer(anyOf(token, closed), withToken("x"))).toEqual(["PermissionDenied", undefined]);
  });

  test("passes on an error that an authenticator throws by mistake", async () => {
    const failing = bearer(() => Promise.reject(new Error("a bug")));
    await expect(anyOf(failing, anyone()).authenticate(asked(withToken("x")), place)).rejects.toThrow("a bug");
  });

  test("accepts authenticators that do not report missing credentials", async () => {
    const own = foreign(() => {
      throw new A2AError("Unauthenticated", undefined, { challenge: "Own" });
    });
    expect(await answer(anyOf(own, token))).toEqual(["Unauthenticated", "Own, Bearer"]);
    expect(await answer(anyOf(own, token), withToken())).toMatchObject({ subject: "ada" });
    expect(
      await answer(
        anyOf(
          foreign(() => ({ subject: "own" })),
          token,
        ),
      ),
    ).toMatchObject({
      subject: "own",
      schemes: { own: ["use"] },
    });
    expect(await answer(anyOf(anyOf(own, key), anyone()))).toBe(anonymous);
  });

  test("lists the requirements of its members in order", () => {
    expect(anyOf(key, token, anyone())).toMatchObject({
      securitySchemes: { apiKey: key.securitySchemes["apiKey"], bearer: token.securitySchemes["bearer"] },
      securityRequirements: [
        { schemes: { apiKey: { list: [] } } },
        { schemes: { bearer: { list: ["read"] } } },
        { schemes: {} },
      ],
    });
  });
});

describe("anyone()", () => {
  test("accepts callers without credentials, and rejects callers with wrong ones", async () => {
    for (const open of [anyOf(token, key, anyone()), anyOf(anyone(), token, key), anyOf(anyOf(key, anyone()), token)]) {
      expect(await answer(open)).toBe(anonymous);
      expect(await answer(open, withToken("x"))).toEqual(["Unauthenticated", expect.stringContaining("invalid_token")]);
      expect(await answer(open, withToken())).toMatchObject({ subject: "ada" });
    }
  });
});

describe("allOf() (A2A 1.0 §4.5: schemes of one requirement go together)", () => {
  test("requires all of them; the first names the caller, and the others add to it", async () => {
    expect(await answer(allOf(token, key), { ...withKey(), ...withToken() })).toEqual({
      subject: "ada",
      organization: "acme",
      scopes: ["read", "use"],
      claims: { plan: "paid", tier: 1 },
      schemes: { bearer: ["read"], apiKey: ["use"] },
    });
  });

  test("names the missing credentials", async () => {
    expect(await answer(allOf(token, key))).toEqual(["Unauthenticated", `Bearer, ${keyChallenge}`]);
    expect(await answer(allOf(token, key), withToken())).toEqual(["Unauthenticated", keyChallenge]);
    expect(await answer(allOf(token, key), withKey())).toEqual(["Unauthenticated", "Bearer"]);
  });

  test("reports invalid credentials before missing ones", async () => {
    const wrong = ["Unauthenticated", 'Bearer error="invalid_token"'];
    expect(await answer(allOf(key, token), withToken("x"))).toEqual(wrong);
    expect(await answer(allOf(key, token), { ...withKey(), ...withToken("x") })).toEqual(wrong);
  });

  test("covers the resources that all of its tokens cover", async () => {
    const named = (name: string, ...audience: readonly string[]) =>
      defineScheme({
        name,
        scheme: { mtlsSecurityScheme: {} },
        credentials: () => "always",
        verify: () => ({ subject: name, audience }),
        challenge: () => "None",
      });
    expect(await answer(allOf(named("a", "u", "v"), named("b", "v", "w")))).toMatchObject({ audience: ["v"] });
    expect(await answer(allOf(named("a", "u"), named("b", "w")))).toMatchObject({ audience: [] });
    expect(await answer(allOf(named("a", "u"), key), withKey())).toMatchObject({ audience: ["u"] });
    expect(await answer(allOf(key, named("a", "u")), withKey())).toMatchObject({ subject: "app", audience: ["u"] });
  });

  test("combines each requirement with each of the others", () => {
    const both = allOf(anyOf(key, token), bearer({}, { name: "third", scopes: ["x"] }));
    expect(both.securityRequirements).toEqual([
      { schemes: { apiKey: { list: [] }, third: { list: ["x"] } } },
      { schemes: { bearer: { list: ["read"] }, third: { list: ["x"] } } },
    ]);
  });

  test("is an alternative of anyOf(), in which an authenticator may occur twice", async () => {
    const either = anyOf(allOf(key, token), key);
    expect(await answer(either, { ...withKey(), ...withToken() })).toMatchObject({
      schemes: { apiKey: ["use"], bearer: ["read"] },
    });
    expect(await answer(either, withKey())).toMatchObject({ subject: "app", schemes: { apiKey: ["use"] } });
    expect(await answer(either, withToken())).toEqual(["Unauthenticated", keyChallenge]);
  });
});

describe("a combination", () => {
  test.each([
    ["anyOf", anyOf],
    ["allOf", allOf],
  ])("of no members, or of two schemes with one name, is rejected: %s()", (_, combine) => {
    expect(() => combine()).toThrow(/at least one authenticator/);
    expect(() => combine(token, bearer({ x: { subject: "x" } }))).toThrow(/two schemes with the name "bearer"/);
    expect(() => combine(token, token)).not.toThrow();
  });

  test("merges what its members declare about tokens (RFC 9728 §2)", () => {
    const of = (name: string, resource: Authenticator["resource"]): Authenticator => ({
      ...bearer({}, { name }),
      ...(resource !== undefined && { resource }),
    });
    const one = of("a", { authorizationServers: ["https://a.example"], scopes: ["x"] });
    const other = of("b", {
      authorizationServers: ["https://a.example", "https://b.example"],
      scopes: ["x", "y"],
      dpopAlgorithms: ["ES256"],
      certificateBound: true,
    });
    expect(anyOf(one, key, other).resource).toEqual({
      authorizationServers: ["https://a.example", "https://b.example"],
      scopes: ["x", "y"],
      dpopAlgorithms: ["ES256"],
      certificateBound: true,
    });
    expect(anyOf(key, token).resource).toBeUndefined();
  });
});
