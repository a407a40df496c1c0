import { beforeAll, describe, expect, it, test } from "vitest";
import {
  cardKeySet,
  makeCardKey,
  signCard,
  verifyCard,
  type CardAlgorithm,
  type PrivateCardKey,
  type PublicCardKey,
} from "../../src/cards/index.ts";
import { verifiableForms } from "../../src/cards/canonical.ts";
import type { AgentCardSignature } from "../../src/model/index.ts";
import { copyOf, emptyCard, fullCard, keyCard } from "./given.ts";

const keys = new Map<CardAlgorithm, PrivateCardKey>();
beforeAll(async () => {
  for (const algorithm of ["ES256", "EdDSA", "RS256"] as const) keys.set(algorithm, await makeCardKey(algorithm));
});
const key = (algorithm: CardAlgorithm = "ES256"): PrivateCardKey => keys.get(algorithm) as PrivateCardKey;
const trustIn = async (...of: readonly PrivateCardKey[]) => ({ keys: [{ keySet: await cardKeySet(of) }] });
const headerOf = (signature: AgentCardSignature | undefined): unknown =>
  JSON.parse(Buffer.from(signature?.protected ?? "", "base64url").toString());

describe("the canonical form (A2A 1.0 §8.4.1)", () => {
  it("equals the example of the specification", () => {
    // The example lacks some required members, so the test adds them on both sides.
    const card = {
      name: "Example Agent",
      description: "",
      capabilities: { streaming: false, pushNotifications: false, extensions: [] },
      skills: [],
      supportedInterfaces: [],
    };
    const form = verifiableForms(card).find(({ reading }) => reading === "specification");
    expect(form?.text).toBe(
      '{"capabilities":{"pushNotifications":false,"streaming":false},"defaultInputModes":[],"defaultOutputModes":[],' +
        '"description":"","name":"Example Agent","skills":[],"supportedInterfaces":[],"version":""}',
    );
  });

  it("has all unknown members, no signatures, and no defaults of members with implicit presence", () => {
    const card = {
      ...copyOf(fullCard),
      signatures: [{ protected: "a", signature: "b" }],
      unknown: 1,
      securitySchemes: {
        mtls: { mtlsSecurityScheme: { description: "" } },
        later: { quantumSecurityScheme: { level: 1 } },
      },
      securityRequirements: [{ schemes: { mtls: { list: [] } } }],
    };
    const { text } = verifiableForms(card).find(({ reading }) => reading === "specification") ?? { text: "{}" };
    const form = JSON.parse(text) as Record<string, unknown>;
    expect(Object.keys(form)).not.toContain("signatures");
    expect(form["unknown"]).toBe(1);
    expect(form["securitySchemes"]).toEqual({
      mtls: { mtlsSecurityScheme: {} },
      later: { quantumSecurityScheme: { level: 1 } },
    });
    expect(form["securityRequirements"]).toEqual([{ schemes: { mtls: {} } }]);
  });
});

describe("signCard and verifyCard (A2A 1.0 §8.4.2, §8.4.3)", () => {
  test.each(["ES256", "EdDSA", "RS256"] as const)("sign and verify with %s", async (algorithm) => {
    const signed = await signCard(fullCard, key(algorithm), { jku: "https://agents.example.com/keys.json" });
    expect(signed.signatures).toHaveLength(1);
    expect(headerOf(signed.signatures[0])).toEqual({
      alg: algorithm,
      typ: "JOSE",
      kid: key(algorithm).kid,
      jku: "https://agents.example.com/keys.json",
    });
    const { trusted, signatures } = await verifyCard(signed, await trustIn(key(algorithm)));
    expect(trusted).toBe(true);
    expect(signatures).toMatchObject([{ outcome: "valid", alg: algorithm, kid: key(algorithm).kid, reading: "exact" }]);
  });

  it("publish no private part of a key", async () => {
    const { keys: published } = await cardKeySet([key("RS256"), key("ES256"), key("EdDSA")]);
    expect(published.map((each) => Object.keys(each).toSorted())).toEqual([
      ["alg", "e", "kid", "kty", "n", "use"],
      ["alg", "crv", "kid", "kty", "use", "x", "y"],
      ["alg", "crv", "kid", "kty", "use", "x"],
    ]);
  });

  it("hold after another serializer has changed the order and dropped empty lists", async () => {
    const signed = await signCard({ ...fullCard, skills: [], defaultInputModes: [] }, key());
    const { skills: _, defaultInputModes: __, ...rest } = signed;
    const reordered = Object.fromEntries(Object.entries(rest).reverse());
    const { trusted, signatures } = await verifyCard(reordered, await trustIn(key()));
    expect(trusted).toBe(true);
    expect(signatures[0]).toMatchObject({ outcome: "valid", reading: "specification" });
  });

  const changes: readonly (readonly [string, (card: Record<string, unknown>) => void])[] = [
    ["the name", (card) => (card["name"] = "Other")],
    [
      "the address",
      (card) => (card["supportedInterfaces"] = [{ ...fullCard.supportedInterfaces[0], url: "https://evil.example" }]),
    ],
    [
      "a security scheme",
      (card) => (card["securitySchemes"] = { oauth: { httpAuthSecurityScheme: { scheme: "Basic" } } }),
    ],
    ["the requirements, which are removed", (card) => delete card["securityRequirements"]],
    [
      "the requirements, with one that needs nothing",
      (card) => (card["securityRequirements"] = [{}, ...(fullCard.securityRequirements ?? [])]),
    ],
    [
      "an optional flag, from false to absent",
      (card) => (card["capabilities"] = { streaming: true, extensions: fullCard.capabilities.extensions }),
    ],
    [
      "a skill",
      (card) => (card["skills"] = [...fullCard.skills, { id: "x", name: "x", description: "x", tags: ["x"] }]),
    ],
    [
      "a parameter of an extension",
      (card) =>
        (card["capabilities"] = {
          ...fullCard.capabilities,
          extensions: [{ uri: "urn:example:ext", required: true, params: {} }],
        }),
    ],
  ];
  test.each(changes)("fail after someone changed %s", async (what, change) => {
    const signed = copyOf(await signCard(fullCard, key()));
    change(signed);
    const { trusted, signatures } = await verifyCard(signed, await trustIn(key()));
    expect(trusted).toBe(false);
    // The outcome is "unsupported" because some SDKs omit an empty requirement from their signatures.
    expect(signatures[0]?.outcome).toBe(what.endsWith("needs nothing") ? "unsupported" : "invalid");
  });

  it("have a signature for each reading of empty required members; each one suffices", async () => {
    const signed = await signCard(emptyCard, key());
    expect(signed.signatures).toHaveLength(2);
    const trust = await trustIn(key());
    for (const one of signed.signatures)
      expect((await verifyCard({ ...signed, signatures: [one] }, trust)).trusted).toBe(true);
  });

  it("never accept a signature that lacks a security requirement for one of the card", async () => {
    const trust = await trustIn(key());
    const plain = await signCard(keyCard, key(), { reduced: false });
    expect(plain.signatures).toHaveLength(1);
    expect((await verifyCard(plain, trust)).trusted).toBe(true);

    const both = await signCard(keyCard, key());
    expect(both.signatures.map(headerOf)).toMatchObject([{ alg: "ES256" }, { alg: "ES256", reduced: true }]);
    expect((await verifyCard(both, trust)).trusted).toBe(true);
    // Simulates an attacker who removes the requirement. Current SDKs still accept such a card.
    const { securityRequirements: _, ...downgraded } = both;
    const verdict = await verifyCard(downgraded, trust);
    expect(verdict.trusted).toBe(false);
    expect(verdict.signatures.map(({ outcome }) => outcome)).toEqual(["invalid", "unsupported"]);
  });

  it("explain why an SDK's signature over only part of the card proves nothing", async () => {
    const { securityRequirements: _, ...lacking } = keyCard;
    const { signatures } = await signCard(lacking, key(), { reduced: false });
    const verdict = await verifyCard({ ...keyCard, signatures }, await trustIn(key()));
    expect(verdict).toMatchObject({ trusted: false, signatures: [{ outcome: "unsupported" }] });
    expect(verdict.signatures[0]?.reason).toContain("a security requirement without scopes");
  });

  it("keep signatures of other keys, and replace those of the same key", async () => {
    const once = await signCard(fullCard, key("ES256"));
    const twice = await signCard({ ...once, version: "2" }, key("RS256"));
    expect(twice.signatures).toHaveLength(2);
    const again = await signCard(twice, [key("ES256"), key("RS256")]);
    expect(again.signatures).toHaveLength(2);
    for (const each of ["ES256", "RS256"] as const) {
      expect((await verifyCard(again, await trustIn(key(each)))).trusted).toBe(true);
    }
    // The older signature covers the older version of the card.
    expect((await verifyCard(twice, await trustIn(key("ES256")))).signatures.map(({ outcome }) => outcome)).toEqual([
      "invalid",
      "unknown-key",
    ]);
  });

  test.each([
    ["no key", []],
    ["a public key", [{ kty: "EC", crv: "P-256", x: "a", y: "b" }]],
    ["a symmetric key", [{ kty: "oct", k: "c2VjcmV0", d: "x" }]],
    ["a key of another curve", [{ kty: "EC", crv: "P-521", x: "a", y: "b", d: "the-secret" }]],
    ["a key that is broken", [{ kty: "EC", crv: "P-256", x: "a", y: "b", d: "the-secret" }]],
    ["null", [null]],
  ])("reject %s, without showing it", async (_name, given) => {
    const error: unknown = await signCard(fullCard, given as never).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "InvalidParams" });
    expect(String(error)).not.toContain("the-secret");
  });

  it("reject anything that is not a card", async () => {
    await expect(signCard({ hello: "world" }, key())).rejects.toThrow(/Not an agent card/);
  });
});

describe("a card of both versions", () => {
  it("has a signature for each version, valid only for the card of that version", async () => {
    const old = {
      protocolVersion: "0.3.0",
      url: "https://agents.example.com/weather",
      preferredTransport: "JSONRPC",
      security: [{ oauth: ["ask"] }],
    };
    const { supportedInterfaces, securityRequirements, securitySchemes, ...shared } = fullCard;
    const schemes = { oauth: { ...fullCard.securitySchemes?.["oauth"], type: "oauth2" } };
    const signed = await signCard({ ...fullCard, ...old, securitySchemes: schemes }, key(), { reduced: false });
    expect(signed.signatures).toHaveLength(2);
    const trust = await trustIn(key());
    const { signatures } = signed;
    const only1 = { ...shared, supportedInterfaces, securityRequirements, securitySchemes, signatures };
    const only03 = { ...shared, ...old, securitySchemes: { oauth: { type: "oauth2" } }, signatures };
    expect((await verifyCard(only1, trust)).signatures.map(({ outcome }) => outcome)).toEqual(["valid", "invalid"]);
    expect((await verifyCard(only03, trust)).signatures.map(({ outcome }) => outcome)).toEqual(["invalid", "valid"]);
    const { security: _, ...downgraded } = only03;
    expect((await verifyCard(downgraded, trust)).trusted).toBe(false);
    // Readers of 0.3 also interpret the schemes of 1.0, so a 0.3 signature does not cover a card that has these schemes.
    expect((await verifyCard({ ...only03, securitySchemes: schemes }, trust)).trusted).toBe(false);
  });
});

describe("the keys that a card names are only a hint (A2A 1.0 §8.4.3)", () => {
  it("a signature by an unknown key under a trusted name is invalid", async () => {
    const stranger = { ...(await makeCardKey()), kid: key().kid ?? "" };
    const { trusted, signatures } = await verifyCard(await signCard(fullCard, stranger), await trustIn(key()));
    expect(trusted).toBe(false);
    expect(signatures[0]?.outcome).toBe("invalid");
  });

  it("a key without a name is tried for every signature", async () => {
    const { kid: _, ...unnamed } = (await cardKeySet([key()])).keys[0] as PublicCardKey;
    expect((await verifyCard(await signCard(fullCard, key()), { keys: [unnamed] })).trusted).toBe(true);
    const others = await signCard(fullCard, await makeCardKey());
    expect((await verifyCard(others, { keys: [unnamed] })).signatures[0]?.outcome).toBe("unknown-key");
  });

  it("a key for another purpose or another algorithm proves nothing", async () => {
    const signed = await signCard(fullCard, key("RS256"));
    const [rsa] = (await cardKeySet([key("RS256")])).keys as readonly [PublicCardKey];
    for (const other of [{ use: "enc" }, { alg: "PS256" }, { kty: "oct", k: rsa["n"] }]) {
      expect((await verifyCard(signed, { keys: [{ ...rsa, ...other }] })).trusted).toBe(false);
    }
    expect((await verifyCard(signed, { keys: [rsa] })).trusted).toBe(true);
  });

  test.each([
    ["expired", { exp: 1 }, "expired"],
    ["not valid yet", { nbf: 9_999_999_999 }, "not valid yet"],
    ["revoked", { revoked: { revoked_at: 1 } }, "revoked"],
    ["given an expiry that is not a number", { exp: "never" }, "expired"],
  ])("a key that is %s proves nothing", async (_name, members, reason) => {
    const [own] = (await cardKeySet([key()])).keys as readonly [PublicCardKey];
    const verdict = await verifyCard(await signCard(fullCard, key()), {
      keys: [{ ...own, ...members } as PublicCardKey],
    });
    expect(verdict).toMatchObject({ trusted: false, signatures: [{ outcome: "outdated-key" }] });
    expect(verdict.signatures[0]?.reason).toContain(reason);
  });

  it("a key for one agent does not sign a card of another", async () => {
    const signed = await signCard(fullCard, key());
    const keySet = await cardKeySet([key()]);
    const trust = (origin: string) => ({ keys: [{ keySet, origins: [origin] }] });
    const at = (address: string) => ({ address });
    const own = "https://agents.example.com";
    expect((await verifyCard(signed, trust(own), at(`${own}/weather`))).trusted).toBe(true);
    expect((await verifyCard(signed, trust(own))).trusted).toBe(true);
    expect((await verifyCard(signed, trust(own), at("https://agents.example.com.evil.example"))).trusted).toBe(false);
    const elsewhere = await signCard(
      {
        ...fullCard,
        supportedInterfaces: [
          ...fullCard.supportedInterfaces,
          { url: "https://evil.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        ],
      },
      key(),
    );
    expect((await verifyCard(elsewhere, trust(own))).trusted).toBe(false);
  });
});

describe("signatures by an attacker", () => {
  const header = (value: unknown): string =>
    Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
  const hostile: readonly (readonly [string, unknown])[] = [
    ["no object", "signature"],
    ["null", null],
    ["no members", {}],
    ["a header that is not base64url", { protected: "a b", signature: "AA" }],
    ["a header that is not JSON", { protected: header("{"), signature: "AA" }],
    ["a header that is null", { protected: header("null"), signature: "AA" }],
    ["a header that is a list", { protected: header([]), signature: "AA" }],
    ["a header without an algorithm", { protected: header({ kid: "a" }), signature: "AA" }],
    [
      "an algorithm in the header that is not protected",
      { protected: header({ kid: "a" }), header: { alg: "ES256" }, signature: "AA" },
    ],
    ["the algorithm none", { protected: header({ alg: "none" }), signature: "" }],
    ["an HMAC", { protected: header({ alg: "HS256", kid: "a" }), signature: "AA" }],
    ["an algorithm named like a method", { protected: header({ alg: "constructor" }), signature: "AA" }],
    ["a critical extension", { protected: header({ alg: "ES256", crit: ["b64"], b64: false }), signature: "AA" }],
    ["bytes that are not UTF-8", { protected: Buffer.from([0x7b, 0xff, 0x7d]).toString("base64url"), signature: "AA" }],
    ["a header of a megabyte", { protected: header({ alg: "ES256", kid: "k".repeat(1 << 20) }), signature: "AA" }],
  ];
  test.each(hostile)("are unsupported if they have %s", async (_name, signature) => {
    const verdict = await verifyCard({ ...fullCard, signatures: [signature] }, await trustIn(key()));
    expect(verdict).toMatchObject({ trusted: false, signatures: [{ outcome: "unsupported" }] });
  });

  it("are checked up to 16", async () => {
    const signatures = Array.from({ length: 10_000 }, () => ({
      protected: header({ alg: "ES256", kid: "a" }),
      signature: "AA",
    }));
    expect((await verifyCard({ ...fullCard, signatures }, await trustIn(key()))).signatures).toHaveLength(16);
  });

  test.each([
    ["nests deeper than the stack", { params: JSON.parse(`${"[".repeat(40_000)}${"]".repeat(40_000)}`) as unknown }],
    ["has a text that is not a Unicode", { params: { text: "\ud800" } }],
    ["has a number that is not finite", { params: { count: Number.POSITIVE_INFINITY } }],
  ])("prove nothing for a card that %s", async (_name, extension) => {
    const signed = await signCard(fullCard, key());
    const card = { ...signed, capabilities: { extensions: [extension] } };
    const verdict = await verifyCard(card, await trustIn(key()));
    expect(verdict).toMatchObject({ trusted: false, signatures: [{ outcome: "unsupported" }] });
  });
});
