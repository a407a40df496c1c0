import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  cardKeySet,
  lintCard,
  makeCardKey,
  signCard,
  verifyCard,
  type CardTrust,
  type PrivateCardKey,
} from "../../src/cards/index.ts";
import { connect } from "../../src/client/index.ts";
import { isObject } from "../../src/model/schema.ts";
import { copyOf, emptyCard, fullCard, keyCard } from "./given.ts";

/** Whatever is changed in a signed card, its signature holds only where the card still means the same. */

let key: PrivateCardKey;
let trust: CardTrust;
beforeAll(async () => {
  key = await makeCardKey("EdDSA");
  trust = { keys: [{ keySet: await cardKeySet([key]) }] };
});

type Path = readonly (string | number)[];

/** Every member and element of a value. */
function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  const inner = Array.isArray(value)
    ? value.flatMap((item: unknown, at) => pathsOf(item, [...path, at]))
    : isObject(value)
      ? Object.entries(value).flatMap(([name, item]) => pathsOf(item, [...path, name]))
      : [];
  return path.length === 0 ? inner : [path, ...inner];
}

/** A copy with another value at a path. `undefined`: without it. */
function changed(card: object, path: Path, value: unknown): object {
  const copy: unknown = structuredClone(card);
  let at = copy as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) at = at[step] as Record<string | number, unknown>;
  const last = path.at(-1) ?? "";
  if (value !== undefined) at[last] = value;
  else if (Array.isArray(at)) at.splice(Number(last), 1);
  else delete at[last];
  return copy as object;
}

/** Members whose empty value is that of an absent one: for lists and texts that is every one of these. */
const sameWhenEmpty = new Set(
  (
    "name description version tags skills documentationUrl iconUrl examples inputModes " +
    "outputModes defaultInputModes defaultOutputModes supportedInterfaces extensions tenant uri url organization " +
    "id protocolBinding protocolVersion location refreshUrl tokenUrl oauth2MetadataUrl capabilities list " +
    "schemes securityRequirements securitySchemes scopes flows"
  ).split(" "),
);

/** Objects whose members have names that the agent chose. */
const maps = new Set(["securitySchemes", "schemes", "scopes"]);

/** What a card means: without members that nobody knows, or that mean as much as absent ones. Parameters stay as they are. */
function meaning(value: unknown, name = ""): unknown {
  if (name === "params") return value;
  if (Array.isArray(value)) return value.map((item: unknown) => meaning(item));
  if (!isObject(value)) return value;
  const members = Object.entries(value).flatMap(([member, item]) => {
    const own = meaning(item, member);
    if (maps.has(name)) return [[member, own] as const];
    if (!knownNames.has(member)) return [];
    const isList = Array.isArray(own) && own.length === 0;
    const isEmpty = own === "" || own === false || isList || (isObject(own) && Object.keys(own).length === 0);
    const means = own === null || (isEmpty && (sameWhenEmpty.has(member) || member === "required"));
    return means ? [] : [[member, own] as const];
  });
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

const knownNames = new Set(pathsOf(fullCard).flat().concat(pathsOf(keyCard).flat()).map(String));

describe("a signed card", () => {
  it.each([
    ["with all members", fullCard],
    ["with a requirement without scopes", keyCard],
    ["with empty members", emptyCard],
  ])("%s is trusted after no change but one of form (A2A 1.0 §8.4.3)", async (_name, card) => {
    const signed = await signCard(card, key);
    expect((await verifyCard(signed, trust)).trusted).toBe(true);
    const value = fc.oneof(
      fc.constantFrom<unknown>(
        undefined,
        null,
        "",
        [],
        {},
        false,
        true,
        0,
        "x",
        [""],
        [{}],
        { schemes: {} },
        { list: [] },
      ),
      fc.jsonValue(),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...pathsOf(card)), value, async (path, put) => {
        const other = changed(signed, path, put);
        const { trusted } = await verifyCard(other, trust);
        if (trusted) expect(JSON.stringify(meaning(other))).toBe(JSON.stringify(meaning(card)));
      }),
      { numRuns: 60 },
    );
  });

  it("is trusted with further members, which no reader of its version knows", async () => {
    const signed = await signCard(fullCard, key);
    const name = fc.string().filter((text) => !knownNames.has(text) && text !== "url" && text !== "signatures");
    await fc.assert(
      fc.asyncProperty(name, fc.jsonValue(), async (member, put) => {
        const other = Object.fromEntries([...Object.entries(signed), [member, put]]);
        expect((await verifyCard(other, trust)).trusted).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});

describe("a card that is signed as one of a single version", () => {
  const evil = "https://evil.example/";

  it.each(["1.0", "0.3"] as const)("is not trusted once it is also one of the other version: %s", async (version) => {
    const newer = { ...copyOf(fullCard), url: undefined };
    const { name, description, skills } = newer;
    const older = { name, description, skills, version: "1", url: "https://agent.example/", protocolVersion: "0.3.0" };
    const signed = await signCard(version === "1.0" ? newer : older, [key]);
    expect((await verifyCard(signed, trust)).trusted).toBe(true);
    const added =
      version === "1.0"
        ? { url: evil, preferredTransport: "JSONRPC", protocolVersion: "0.3.0" }
        : { supportedInterfaces: [{ url: evil, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] };
    const verdict = await verifyCard({ ...signed, ...added }, trust);
    expect(verdict.trusted).toBe(false);
    expect(verdict.signatures.map(({ outcome }) => outcome)).not.toContain("valid");
  });

  it("has no scheme that its signature does not cover, in the spelling of an SDK", async () => {
    const own = { httpAuthSecurityScheme: { scheme: "Bearer" } };
    const signed = await signCard({ ...copyOf(fullCard), securitySchemes: { own } }, [key]);
    const tokenUrl = `${evil}token`;
    const value = { flows: { clientCredentials: { tokenUrl, scopes: {} } } };
    const changedCard = {
      ...signed,
      securitySchemes: { own: { ...own, scheme: { $case: "oauth2SecurityScheme", value } } },
    };
    expect((await verifyCard(changedCard, trust)).trusted).toBe(true);
    const client = await connect(changedCard);
    expect(client.card.securitySchemes?.["own"]).toMatchObject(own);
    expect(client.card.securitySchemes?.["own"]).not.toHaveProperty("oauth2SecurityScheme");
  });
});

describe("any JSON", () => {
  it("can be verified and looked at without an error", async () => {
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
