import { describe, expect, test } from "vitest";
import { apiKey, bearer, hashKey, hashPassword, type ApiKeyOptions } from "../../src/auth/index.ts";
import { A2AError } from "../../src/model/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { card, request } from "../transport/support.ts";

const place = { resources: ["https://agents.example.com"], url: "https://agents.example.com/" };
const ada = { subject: "ada" };

async function asked(
  options: ApiKeyOptions,
  { url = "/tasks", headers = {} }: { readonly url?: string; readonly headers?: Readonly<Record<string, string>> },
): Promise<unknown> {
  try {
    return (await apiKey({ "k-1": ada }, options).authenticate(request("GET", url, { headers }), place)).subject;
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    return thrown.code === "Unauthenticated"
      ? thrown.challenge?.includes("invalid_token")
        ? "wrong"
        : "absent"
      : thrown.code;
  }
}

describe("apiKey() (A2A 1.0 §4.5.2)", () => {
  test.each<[unknown, ApiKeyOptions, Readonly<Record<string, string>>]>([
    ["ada", {}, { "x-api-key": "k-1" }],
    ["ada", { header: "Api-Token" }, { "api-token": "k-1" }],
    ["wrong", {}, { "x-api-key": "k-2" }],
    ["wrong", {}, { "x-api-key": "k-1, k-1" }],
    ["wrong", {}, { "x-api-key": "constructor" }],
    ["wrong", {}, { "x-api-key": "grün" }],
    ["absent", {}, {}],
    ["absent", {}, { "x-api-key": " " }],
    ["absent", { header: "other" }, { "x-api-key": "k-1" }],
  ])("finds %j in a header: %j %j", async (found, options, headers) => {
    expect(await asked(options, { headers })).toBe(found);
  });

  test.each([
    ["ada", "/tasks?api_key=k-1"],
    ["ada", "/tasks?historyLength=1&api_key=k%2D1"],
    ["wrong", "/tasks?api_key=k-1&api_key=k-1"],
    ["wrong", "/tasks?api_key=k-2"],
    ["wrong", "/tasks?api_key=%00"],
    ["absent", "/tasks?api_key="],
    ["absent", "/tasks?API_KEY=k-1"],
    ["absent", "/tasks"],
    ["absent", "/tasks?%"],
  ])("finds %j in a query: %j", async (found, url) => {
    expect(await asked({ query: "api_key" }, { url })).toBe(found);
  });

  test.each([
    ["ada", "session=k-1"],
    ["ada", 'a=b; session="k-1"; c=d'],
    ["ada", "a=b, session=k-1"],
    ["wrong", "session=k-1; session=k-1"],
    ["wrong", "session=k-2"],
    ["absent", "session="],
    ["absent", "mysession=k-1"],
    ["absent", "a=session=k-1"],
  ])("finds %j in a cookie: %j", async (found, cookie) => {
    expect(await asked({ cookie: "session" }, { headers: { cookie } })).toBe(found);
  });

  test("in a cookie does not authenticate pages of other origins, for which browsers send cookies", async () => {
    const options = { cookie: "session" };
    const cookie = "session=k-1";
    const sent = (headers: Readonly<Record<string, string>>) => asked(options, { headers: { cookie, ...headers } });
    expect(await sent({ "sec-fetch-site": "cross-site" })).toBe("PermissionDenied");
    expect(await sent({ "sec-fetch-site": "same-site" })).toBe("PermissionDenied");
    expect(await sent({ origin: "https://evil.example" })).toBe("PermissionDenied");
    expect(await sent({ origin: "null" })).toBe("PermissionDenied");
    expect(await sent({ "sec-fetch-site": "same-origin", origin: "https://agents.example.com" })).toBe("ada");
    expect(await sent({ origin: "https://agents.example.com" })).toBe("ada");
    expect(await sent({ origin: "http://localhost:4000", host: "localhost:4000" })).toBe("ada");
    expect(await sent({ "sec-fetch-site": "none" })).toBe("ada");
    expect(await asked({}, { headers: { "x-api-key": "k-1", origin: "https://evil.example" } })).toBe("ada");
  });

  test("declares its scheme for the card, with its scopes", () => {
    const { securitySchemes, securityRequirements } = apiKey(() => undefined, {
      name: "team",
      query: "key",
      description: "Ask us",
      scopes: ["use"],
    });
    expect(securitySchemes).toEqual({
      team: { apiKeySecurityScheme: { location: "query", name: "key", description: "Ask us" } },
    });
    expect(securityRequirements).toEqual([{ schemes: { team: { list: ["use"] } } }]);
    expect(() => codecV1.decodeCard(card({ securitySchemes, securityRequirements }))).not.toThrow();
  });

  test.each<[ApiKeyOptions, RegExp]>([
    [{ header: "a b" }, /header is not a valid name/],
    [{ header: "" }, /header is not a valid name/],
    [{ cookie: "a;b" }, /cookie is not a valid name/],
    [{ query: "" }, /query is not a valid name/],
    [{ header: "a", query: "b" }, /set only one of header, query and cookie/],
  ])("rejects a location that requests do not have: %j", (options, message) => {
    expect(() => apiKey({}, options)).toThrow(message);
  });
});

describe("a key that is stored as a hash", () => {
  const key = "k-2GZ0nJ4rX3mY8tQ5vB7wA1";

  test("is found by the key, for API keys and for bearer tokens", async () => {
    const hash = await hashKey(key);
    expect(hash).toMatch(/^sha256:[A-Za-z0-9+/]{43}=$/);
    const byKey = apiKey({ [hash]: ada, other: { subject: "bob" } });
    const asKey = (value: string) =>
      byKey.authenticate(request("GET", "/", { headers: { "x-api-key": value } }), place);
    expect(await asKey(key)).toMatchObject(ada);
    expect(await asKey("other")).toMatchObject({ subject: "bob" });
    await expect(asKey(hash)).rejects.toMatchObject({ code: "Unauthenticated" });
    const asToken = request("GET", "/", { headers: { authorization: `Bearer ${key}` } });
    expect(await bearer({ [hash]: ada }).authenticate(asToken, place)).toMatchObject(ada);
  });

  test("is SHA-256 in base64, as other tools compute it", async () => {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
    expect(await hashKey(key)).toBe(`sha256:${Buffer.from(digest).toString("base64")}`);
  });

  test.each(["sha256:", "sha256:AAAA", `sha256:${"A".repeat(44)}`, "sha256:!"])(
    "is rejected at startup if it is not a hash, and is not shown: %j",
    (bad) => {
      for (const make of [() => apiKey({ [bad]: ada }), () => bearer({ [bad]: ada })]) {
        expect(make).toThrow(/1 of the secrets cannot be used/);
        expect(make).not.toThrow(bad.slice(7) || "never");
      }
    },
  );
});

describe("a secret that was never set", () => {
  // If the variable is missing, `{ [process.env.KEY]: … }` has a member of this name, which anyone could guess.
  test.each(["undefined", "null"])("is rejected at startup: %j", (secret) => {
    for (const make of [apiKey, bearer]) {
      expect(() => make({ [secret]: ada })).toThrow(/secret is \w+\. Is an environment variable not set\?/);
    }
  });

  test.each([
    ["", "empty"],
    [undefined, "undefined"],
  ] as const)("cannot be hashed: %j", async (secret, said) => {
    await expect(hashKey(secret as string)).rejects.toThrow(`key is ${said}`);
    await expect(hashPassword(secret as string)).rejects.toThrow(`password is ${said}`);
  });
});

test.each([undefined, "ada", {}, { subject: "" }])("a secret without an owner is rejected at startup: %j", (owner) => {
  for (const make of [apiKey, bearer]) {
    expect(() => make({ "key-1": owner as typeof ada })).toThrow(/owner of a secret must have a subject/);
    expect(() => make(undefined as never)).toThrow(/secrets must be an object/);
  }
});
