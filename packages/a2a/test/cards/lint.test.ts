import { describe, expect, it, test } from "vitest";
import { lintCard, makeCardKey, signCard } from "../../src/cards/index.ts";
import { fullCard, keyCard } from "./given.ts";

/** A 0.3 card. */
const oldCard = {
  protocolVersion: "0.3.0",
  name: "Old",
  description: "Speaks 0.3",
  url: "https://agents.example.com/old",
  preferredTransport: "JSONRPC",
  additionalInterfaces: [{ url: "https://agents.example.com/old", transport: "JSONRPC" }],
  version: "1",
  capabilities: {},
  securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } },
  security: [{ key: [] }],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "a", name: "A", description: "A", tags: ["a"] }],
};

const said = (card: unknown): readonly string[] =>
  lintCard(card).map(({ level, field, message }) => `${level} ${field}: ${message}`);
const fieldsOf = (card: unknown): readonly string[] => lintCard(card).map(({ field }) => field);

/** Returns each member and element of a value, with its path and a function that replaces it. */
function membersOf(root: object): readonly { readonly path: string; put(value: unknown): object }[] {
  const paths: (string | number)[][] = [];
  const walk = (value: unknown, path: (string | number)[]): void => {
    if (path.length > 0) paths.push(path);
    if (typeof value !== "object" || value === null) return;
    for (const [name, member] of Object.entries(value))
      walk(member, [...path, Array.isArray(value) ? Number(name) : name]);
  };
  walk(root, []);
  return paths.map((path) => ({
    path: path.map((step) => (typeof step === "number" ? `[${step}]` : step)).join("."),
    put(value) {
      const copy = structuredClone(root);
      let at = copy as Record<string | number, unknown>;
      for (const step of path.slice(0, -1)) at = at[step] as Record<string | number, unknown>;
      const last = path.at(-1) ?? "";
      // If there is no value, removes the member.
      if (value === undefined) delete at[last];
      else at[last] = typeof value === "symbol" ? (typeof at[last] === "object" ? 7 : { no: "member" }) : value;
      return copy;
    },
  }));
}

const oneSkill = { id: "a", name: "A", description: "A", tags: ["a"] };
const signature = (header: object) => [
  { protected: Buffer.from(JSON.stringify(header)).toString("base64url"), signature: "AA" },
];

describe("lintCard", () => {
  it("reports nothing for a valid card of 1.0, of 0.3, of both, and signed", async () => {
    expect(said(fullCard)).toEqual([]);
    expect(said(oldCard)).toEqual([]);
    const { flows } = fullCard.securitySchemes?.["oauth"]?.oauth2SecurityScheme ?? {};
    const oauth = { ...fullCard.securitySchemes?.["oauth"], type: "oauth2", flows };
    const both = { ...oldCard, ...fullCard, securitySchemes: { oauth }, security: [{ oauth: ["ask"] }] };
    expect(said(both)).toEqual([]);
    expect(said(await signCard(fullCard, await makeCardKey()))).toEqual([]);
  });

  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ["no object", "card", /^error : A card must be an object/],
    ["a list", [], /^error : A card must be an object/],
    ["no card", { name: "x" }, /^error : The card has neither/],
    ["no name", { ...fullCard, name: undefined }, /^error name: is required/],
    ["a name of another type", { ...fullCard, name: 1 }, /^error name: /],
    ["no interfaces", { ...fullCard, supportedInterfaces: [] }, /^error supportedInterfaces: /],
    ["no skills member in 0.3", { ...oldCard, skills: undefined }, /^error skills: is required/],
    ["an address that is not a URL", { ...oldCard, url: "agents" }, /^error url: "agents" is not an absolute URL/],
    [
      "a script as its documentation",
      { ...fullCard, documentationUrl: "javascript:alert(1)" },
      /^error documentationUrl: .* neither/,
    ],
    [
      "a password in an address",
      { ...fullCard, iconUrl: "https://user:secret@example.com/" },
      /^error iconUrl: The URL contains a user name/,
    ],
    ["an address without TLS", { ...oldCard, url: "http://agents.example.com/" }, /^warning url: The URL has no TLS/],
    ["a loopback address", { ...oldCard, url: "http://localhost:4000/" }, /^warning url: .* loopback/],
    [
      "a private address, spelled in another way",
      { ...oldCard, url: "https://0x0a000001/" },
      /^warning url: The URL is of a private address/,
    ],
    [
      "a token endpoint without TLS",
      {
        ...fullCard,
        securitySchemes: {
          oauth: {
            oauth2SecurityScheme: {
              flows: { clientCredentials: { tokenUrl: "http://id.example.com", scopes: { ask: "" } } },
            },
          },
        },
      },
      /^warning securitySchemes\.oauth\..*tokenUrl: The URL has no TLS/,
    ],
    [
      "a binding that is unknown",
      {
        ...fullCard,
        supportedInterfaces: [{ url: "https://a.example", protocolBinding: "SOAP", protocolVersion: "1.0" }],
      },
      /^warning .*not a core binding/,
    ],
    [
      "an invalid version",
      {
        ...fullCard,
        supportedInterfaces: [{ url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "v1" }],
      },
      /^error .*"v1" is not a version/,
    ],
    [
      "an interface twice",
      { ...fullCard, supportedInterfaces: [fullCard.supportedInterfaces[0], fullCard.supportedInterfaces[0]] },
      /^warning supportedInterfaces\[1\]: .*twice/,
    ],
    [
      "a requirement of an unknown scheme",
      { ...fullCard, securityRequirements: [{ schemes: { nothing: { list: [] } } }] },
      /^error securityRequirements\[0\]: The card declares no security scheme "nothing"/,
    ],
    [
      "a requirement of an unknown scheme at a skill of 0.3",
      { ...oldCard, skills: [{ ...oneSkill, security: [{ nothing: [] }] }] },
      /^error skills\[0\]\.security\[0\]: The card declares no security scheme/,
    ],
    [
      "a requirement of an unknown scope",
      { ...fullCard, securityRequirements: [{ schemes: { oauth: { list: ["rule"] } } }] },
      /^warning .* does not list the scope "rule"/,
    ],
    [
      "a requirement that accepts every caller",
      { ...fullCard, securityRequirements: [{}] },
      /^warning securityRequirements\[0\]: .*every caller/,
    ],
    [
      "a scheme that nothing needs",
      { ...fullCard, securityRequirements: [] },
      /^warning securitySchemes\.oauth: No requirement/,
    ],
    [
      "a deprecated flow",
      {
        ...oldCard,
        securitySchemes: {
          key: { type: "oauth2", flows: { password: { tokenUrl: "https://a.example", scopes: {} } } },
        },
      },
      /^warning .*flow password of OAuth is deprecated/,
    ],
    [
      "an extended card without a scheme",
      { ...oldCard, securitySchemes: undefined, security: undefined, supportsAuthenticatedExtendedCard: true },
      /^warning capabilities\.extendedAgentCard: /,
    ],
    [
      "two skills with one id",
      { ...fullCard, skills: [oneSkill, oneSkill] },
      /^error skills\[1\]\.id: two skills have the id "a"/,
    ],
    [
      "an invalid media type",
      { ...fullCard, defaultInputModes: ["text"] },
      /^warning defaultInputModes\[0\]: "text" is not a media type/,
    ],
    [
      "an extension without a URI",
      { ...fullCard, capabilities: { extensions: [{ uri: "ext" }] } },
      /^warning .*named by a URI/,
    ],
    [
      "text that reverses the text after it",
      { ...fullCard, name: "safe\u202etxt.exe" },
      /^warning name: .*hide or reorder/,
    ],
    [
      "an escape sequence",
      { ...fullCard, skills: [{ ...oneSkill, tags: ["\u001b[2J"] }] },
      /^warning skills\[0\]\.tags\[0\]: .*control/,
    ],
    ["a misspelled member", { ...fullCard, skils: [] }, /^warning skils: The version of this card does not define/],
    ["a requirement that the SDKs do not verify", keyCard, /^warning : The SDKs of JavaScript and Python/],
    [
      "a signature that cannot be read",
      { ...fullCard, signatures: [{ protected: "!", signature: "AA" }] },
      /^error signatures\[0\]: .*cannot be read/,
    ],
    [
      "a signature by nobody",
      { ...fullCard, signatures: signature({ alg: "none", typ: "JOSE", kid: "a" }) },
      /^error signatures\[0\]: A signature by none/,
    ],
    [
      "a signature without the name of its key",
      { ...fullCard, signatures: signature({ alg: "ES256", typ: "JOSE" }) },
      /^error signatures\[0\]: .*no kid/,
    ],
    [
      "a signature of another type",
      { ...fullCard, signatures: signature({ alg: "ES256", typ: "JWT", kid: "a" }) },
      /^warning signatures\[0\]: .*typ/,
    ],
    [
      "keys without TLS",
      { ...fullCard, signatures: signature({ alg: "ES256", typ: "JOSE", kid: "a", jku: "http://a.example/k" }) },
      /^warning signatures\[0\]\.protected\.jku: .*no TLS/,
    ],
    ["half of a surrogate pair", { ...fullCard, version: "\ud800" }, /^error : There is no canonical form/],
  ];
  test.each(wrong)("finds %s", (_name, card, finding) => {
    expect(said(card)).toContainEqual(expect.stringMatching(finding));
  });

  test.each([
    ["10,000 interfaces", { ...fullCard, supportedInterfaces: Array.from({ length: 10_000 }, () => ({ url: "x" })) }],
    [
      "10,000 unknown members",
      { ...fullCard, ...Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`m${at}`, 1])) },
    ],
    [
      "10,000 schemes",
      { ...oldCard, securitySchemes: Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`s${at}`, {}])) },
    ],
    [
      "more levels than the stack holds",
      {
        ...fullCard,
        capabilities: {
          extensions: [{ params: JSON.parse(`${'{"a":'.repeat(9_000)}1${"}".repeat(9_000)}`) as unknown }],
        },
      },
    ],
    [
      "the prototype as a name",
      {
        ...oldCard,
        securitySchemes: JSON.parse('{"__proto__":{"flows":{"implicit":1}}}') as unknown,
        security: JSON.parse('[{"__proto__":[]}]') as unknown,
      },
    ],
    [
      "every member of a wrong type",
      Object.fromEntries(
        Object.keys({ ...fullCard, ...oldCard, signatures: 1 }).map((name) => [name, name === "url" ? "x" : 7]),
      ),
    ],
  ])("reports at most 100 problems of a card with %s", (_name, card) => {
    const findings = lintCard(card);
    expect(findings.length).toBeGreaterThan(0);
    expect(findings.length).toBeLessThanOrEqual(100);
  });

  it("checks a card of 0.3 strictly: every member of a wrong type, and every missing one (0.3 §5.5)", () => {
    const flow = { authorizationUrl: "https://a.example/a", tokenUrl: "https://a.example/t", scopes: { s: "S" } };
    const { authorizationUrl: _, ...atToken } = flow;
    const whole = {
      ...oldCard,
      iconUrl: "https://a.example/icon",
      documentationUrl: "https://a.example/docs",
      provider: { organization: "A", url: "https://a.example" },
      capabilities: {
        streaming: true,
        pushNotifications: true,
        stateTransitionHistory: false,
        extensions: [{ uri: "urn:a", description: "A", required: false, params: {} }],
      },
      securitySchemes: {
        key: { type: "apiKey", in: "header", name: "x-key" },
        http: { type: "http", scheme: "Bearer", bearerFormat: "JWT" },
        oauth: {
          type: "oauth2",
          flows: { authorizationCode: flow, clientCredentials: atToken },
          oauth2MetadataUrl: "https://a.example/m",
        },
        openId: { type: "openIdConnect", openIdConnectUrl: "https://a.example/o" },
        mtls: { type: "mutualTLS", description: "A certificate" },
      },
      security: [{ key: [] }, { http: [] }, { oauth: ["s"] }, { openId: [] }, { mtls: [] }],
      skills: [
        {
          ...oneSkill,
          examples: ["a"],
          inputModes: ["text/plain"],
          outputModes: ["text/plain"],
          security: [{ key: [] }],
        },
      ],
      supportsAuthenticatedExtendedCard: true,
    };
    expect(said(whole)).toEqual([]);
    const required = new Set(
      (
        "name description url version capabilities defaultInputModes defaultOutputModes skills provider.organization " +
        "provider.url additionalInterfaces[0].url additionalInterfaces[0].transport capabilities.extensions[0].uri " +
        "securitySchemes.key.type securitySchemes.key.in securitySchemes.key.name securitySchemes.http.type " +
        "securitySchemes.http.scheme securitySchemes.oauth.type securitySchemes.oauth.flows " +
        "securitySchemes.oauth.flows.authorizationCode.authorizationUrl securitySchemes.oauth.flows.authorizationCode.tokenUrl " +
        "securitySchemes.oauth.flows.authorizationCode.scopes securitySchemes.oauth.flows.clientCredentials.tokenUrl " +
        "securitySchemes.oauth.flows.clientCredentials.scopes securitySchemes.openId.type " +
        "securitySchemes.openId.openIdConnectUrl securitySchemes.mtls.type skills[0].id skills[0].name skills[0].description " +
        "skills[0].tags"
      ).split(" "),
    );
    for (const { path, put } of membersOf(whole)) {
      const field = path.replace(/\.(?=\[)/g, "");
      if (/params|signatures/.test(field)) continue;
      const wrong = put(Symbol.for("wrong"));
      expect(said(wrong), field).toContainEqual(expect.stringMatching(/^error /));
      expect(
        fieldsOf(wrong).some((one) => field.startsWith(one) || one.startsWith(field)),
        field,
      ).toBe(true);
      if (field.endsWith("]")) continue;
      const absent = said(put(undefined));
      if (required.has(field)) expect(absent.join("\n"), field).toContain(`error ${field}: `);
      else
        expect(
          absent.filter((each) => each.startsWith("error") && each.includes(`${field}:`)),
          field,
        ).toEqual([]);
    }
  });

  it("lists every problem of a card, not only the first ones, and says where it stops", () => {
    const skills = Array.from({ length: 60 }, () => ({ id: 1 }));
    expect(fieldsOf({ ...oldCard, skills }).filter((field) => field.endsWith(".id")).length).toBeGreaterThan(20);
    const some = said({ ...oldCard, name: 1, skills: skills.slice(0, 12), defaultInputModes: 1, version: 1 });
    expect(some.filter((each) => each.startsWith("error"))).toHaveLength(3 + 12 * 4);
    expect(said({ ...oldCard, skills }).at(-1)).toMatch(/Only the first 99 findings/);
  });

  it("checks a card of both versions against both, and names members in the proto spelling", () => {
    const both = {
      ...oldCard,
      ...fullCard,
      securitySchemes: { key: { type: "apiKey", in: "header" } },
      security: [{ key: 1 }],
    };
    expect(fieldsOf(both)).toEqual(expect.arrayContaining(["securitySchemes.key.name", "security[0].key"]));
    expect(said({ ...fullCard, security_schemes: {} })).toContainEqual(
      expect.stringMatching(/^error security_schemes: Some readers treat this member as securitySchemes/),
    );
    expect(said({ ...oldCard, protocolVersion: undefined })).toContainEqual(
      expect.stringMatching(/^warning protocolVersion: .*0\.2\.5/),
    );
  });

  it("lists errors first", () => {
    const levels = lintCard({ ...fullCard, name: "\u0007", skills: [oneSkill, oneSkill] }).map(({ level }) => level);
    expect(levels).toEqual(["error", "warning"]);
  });
});
