import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  canonicalJson,
  cardKeySet,
  lintCard,
  makeCardKey,
  signCard,
  trustCards,
  verifyCard,
  type CardTrust,
  type PrivateCardKey,
} from "../../src/cards/index.ts";
import { connect } from "../../src/client/index.ts";
import { A2AError, type AgentCard } from "../../src/model/index.ts";
import { times } from "../../../../test/counts.ts";
import { copyOf, emptyCard, fullCard, keyCard } from "./given.ts";
import { cards, meaning, mutated, mutations, partsOf, respellings } from "./mutations.ts";

/** After any change to a signed card, a client either rejects the card, or reads the same content as before. */

let key: PrivateCardKey;
let trust: CardTrust;
beforeAll(async () => {
  key = await makeCardKey("EdDSA");
  trust = { keys: [{ keySet: await cardKeySet([key]) }] };
});

/** Returns the card as a client with this trust reads it, or `undefined` if the client rejects the card. */
async function usedOf(document: unknown): Promise<unknown> {
  try {
    return meaning((await connect(document as AgentCard, { trust: trustCards(trust) })).card);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(A2AError);
    return undefined;
  }
}

describe("a signed card after any one change is rejected, or the client acts the same (A2A 1.0 §8.4.3)", () => {
  it.each(["1.0", "0.3", "both"] as const)("a card of %s", async (version) => {
    let trusted = 0;
    await fc.assert(
      fc.asyncProperty(cards[version], fc.array(mutations, { minLength: 40, maxLength: 40 }), async (card, changes) => {
        const signed = await signCard(card, key, { reduced: false });
        const original = await usedOf(signed);
        expect(original).toBeDefined();
        const meant = [original];
        // A server with both versions also publishes a card for each version, with the same signatures.
        if (version === "both") meant.push(...(await Promise.all(partsOf(signed).map(usedOf))));
        for (const change of changes) {
          const text = mutated(signed, change);
          const used = await usedOf(JSON.parse(text));
          if (used === undefined) continue;
          trusted += 1;
          // Compares cards as text, so that a member that is `undefined` or named `__proto__` also counts as a difference.
          const allowed = meant.filter((one) => one !== undefined).map((one) => canonicalJson(one));
          expect(allowed, text).toContain(canonicalJson(used));
        }
      }),
      { numRuns: times(3, 100) },
    );
    // Some cards stay trusted after formal changes, such as an empty member, so the test is not trivial.
    expect(trusted).toBeGreaterThan(0);
  });

  it.each([
    ["with all members", fullCard],
    ["with a requirement without scopes", keyCard],
    ["with empty members", emptyCard],
  ])("a card %s, with the signatures that SDKs also accept", async (_name, card) => {
    const signed = await signCard(card, key);
    const original = canonicalJson(await usedOf(signed));
    await fc.assert(
      fc.asyncProperty(mutations, async (change) => {
        const text = mutated(signed, change);
        const used = await usedOf(JSON.parse(text));
        if (used !== undefined) expect(canonicalJson(used), text).toBe(original);
      }),
      { numRuns: times(60, 2_000) },
    );
  });

  it("every member that a reader knows, added in each spelling at every depth", async () => {
    const signed = await signCard(fullCard, key);
    const original = canonicalJson(await usedOf(signed));
    const names = [
      "securitySchemes",
      "securityRequirements",
      "oauth2MetadataUrl",
      "documentationUrl",
      "iconUrl",
    ].concat([
      "refreshUrl",
      "extendedAgentCard",
      "pkceRequired",
      "supportedInterfaces",
      "bearerFormat",
      "additionalInterfaces",
    ]);
    for (const name of names.flatMap((each) => [each, ...respellings(each)])) {
      for (let at = 0; at < 16; at++) {
        const put = { x: { apiKeySecurityScheme: { location: "header", name: "x-evil" } } };
        const text = mutated(signed, { kind: "add", at: [at, 0], name, value: put, first: false });
        const used = await usedOf(JSON.parse(text));
        if (used !== undefined) expect(canonicalJson(used), text).toBe(original);
      }
    }
  });
});

describe("members that the version of a card does not define", () => {
  it("make the card untrusted if they were added later, at any depth", async () => {
    const signed = await signCard(fullCard, key);
    const documents = [
      { ...signed, later: 1 },
      { ...signed, skills: [{ ...fullCard.skills[0], later: 1 }] },
      { ...signed, capabilities: { ...fullCard.capabilities, later: true } },
    ];
    for (const document of documents) {
      const { trusted, signatures } = await verifyCard(document, trust);
      expect(trusted).toBe(false);
      expect(signatures[0]).toMatchObject({ outcome: "invalid", reason: expect.stringContaining("later") as string });
    }
  });

  it("are accepted unchanged if they are signed, such as a later version's", async () => {
    const later = {
      ...copyOf(fullCard),
      laterMember: { level: 1 },
      capabilities: { streaming: true, laterFlag: true },
    };
    const signed = await signCard(later, key);
    expect((await verifyCard(signed, trust)).trusted).toBe(true);
    expect((await verifyCard({ ...signed, laterMember: { level: 2 } }, trust)).trusted).toBe(false);
    const { laterMember: _, ...without } = signed;
    expect((await verifyCard(without, trust)).trusted).toBe(false);
  });

  it("make the card untrusted in the proto spelling, even if the signature covers them", async () => {
    // A2A's JSON uses camelCase (§5.5). If a member occurs in two spellings, readers interpret the card differently.
    for (const extra of [{ security_schemes: {} }, { capabilities: { extended_agent_card: true } }]) {
      const signed = await signCard({ ...copyOf(fullCard), ...extra }, key);
      const { trusted, signatures } = await verifyCard(signed, trust);
      expect(trusted).toBe(false);
      expect(signatures[0]).toMatchObject({
        outcome: "invalid",
        reason: expect.stringContaining("some readers treat as") as string,
      });
    }
  });
});

describe("a card that is signed for a single version", () => {
  const evil = "https://evil.example/";

  it.each(["1.0", "0.3"] as const)(
    "is not trusted once it is also a card of the other version: %s",
    async (version) => {
      const newer = { ...copyOf(fullCard), url: undefined };
      const { name, description, skills } = newer;
      const older = {
        name,
        description,
        skills,
        version: "1",
        url: "https://agent.example/",
        protocolVersion: "0.3.0",
      };
      const signed = await signCard(version === "1.0" ? newer : older, [key]);
      expect((await verifyCard(signed, trust)).trusted).toBe(true);
      const added =
        version === "1.0"
          ? { url: evil, preferredTransport: "JSONRPC", protocolVersion: "0.3.0" }
          : { supportedInterfaces: [{ url: evil, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] };
      const verdict = await verifyCard({ ...signed, ...added }, trust);
      expect(verdict.trusted).toBe(false);
      expect(verdict.signatures.map(({ outcome }) => outcome)).not.toContain("valid");
    },
  );

  it("has no scheme that its signature does not cover, in an SDK's spelling", async () => {
    const own = { httpAuthSecurityScheme: { scheme: "Bearer" } };
    const signed = await signCard({ ...copyOf(fullCard), securitySchemes: { own } }, [key]);
    const tokenUrl = `${evil}token`;
    const value = { flows: { clientCredentials: { tokenUrl, scopes: {} } } };
    const changedCard = {
      ...signed,
      securitySchemes: { own: { ...own, scheme: { $case: "oauth2SecurityScheme", value } } },
    };
    expect((await verifyCard(changedCard, trust)).trusted).toBe(false);
    await expect(connect(changedCard, { trust: trustCards(trust) })).rejects.toMatchObject({ code: "InvalidResponse" });
  });
});

describe("any JSON", () => {
  it("can be verified and inspected without an error", async () => {
    const around = fc.record(
      {
        supportedInterfaces: fc.jsonValue(),
        url: fc.jsonValue(),
        securitySchemes: fc.jsonValue(),
        securityRequirements: fc.jsonValue(),
        security: fc.jsonValue(),
        skills: fc.jsonValue(),
        capabilities: fc.jsonValue(),
        signatures: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(fc.oneof(around, fc.jsonValue()), async (card) => {
        expect(lintCard(card).length).toBeGreaterThan(0);
        if (typeof card === "object" && card !== null) expect((await verifyCard(card, trust)).trusted).toBe(false);
      }),
      { numRuns: 100 },
    );
  });
});
