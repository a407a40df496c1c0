import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateAgentCardSignature, verifyAgentCardSignature, type AgentCard } from "@a2a-js/sdk";
import { defineAgent, memoryStore, serve, silentLogger } from "@parley/node";
import { apiKey } from "@parley/a2a/auth";
import {
  cardKeySet,
  makeCardKey,
  signCard,
  verifyCard,
  type CardAlgorithm,
  type PrivateCardKey,
  type PublicCardKey,
} from "@parley/a2a/cards";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { describePeer, printed, type PeerProgram } from "./peer.ts";

/** The SDKs of other languages verify cards that we sign, and the reverse (A2A 1.0 §8.4). */

const full = {
  name: "Météo \u{1f326}",
  description: "Says whether it will rain.",
  supportedInterfaces: [
    { url: "https://agents.example.com/weather", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
  ],
  version: "1.2.3",
  capabilities: {
    streaming: false,
    extensions: [
      {
        uri: "urn:example:ext",
        description: "",
        required: false,
        params: { level: 0.000001, big: 1e30, "\u{1f600}": [1], "\ufb33": [{ b: 1, a: "ü" }] },
      },
    ],
  },
  securitySchemes: {
    oauth: {
      oauth2SecurityScheme: {
        flows: { clientCredentials: { tokenUrl: "https://id.example.com/token", scopes: { ask: "Ask" } } },
      },
    },
  },
  securityRequirements: [{ schemes: { oauth: { list: ["ask"] } } }],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "rain", name: "Rain", description: "Rain here", tags: ["weather"] }],
};
const cards: readonly (readonly [string, object])[] = [
  [
    "with all optional members",
    {
      ...full,
      capabilities: {
        streaming: true,
        extensions: [{ uri: "urn:example:ext", params: { level: 0.000001, text: "ü" } }],
      },
    },
  ],
  [
    "with empty values everywhere",
    { ...full, description: "", iconUrl: "", skills: [{ ...full.skills[0], tags: [], examples: [] }] },
  ],
  [
    "with a requirement without scopes",
    {
      ...full,
      securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "x-key" } } },
      securityRequirements: [{ schemes: { key: { list: [] } } }],
    },
  ],
];
const old = {
  protocolVersion: "0.3.0",
  name: "Älter",
  description: "",
  url: "https://agents.example.com/old",
  preferredTransport: "JSONRPC",
  additionalInterfaces: [{ url: "https://agents.example.com/rest", transport: "HTTP+JSON" }],
  version: "1",
  capabilities: {
    streaming: false,
    extensions: [{ uri: "urn:example:ext", required: false, params: { a: 1.5, b: "ü" } }],
  },
  securitySchemes: {
    oauth: {
      type: "oauth2",
      flows: { clientCredentials: { tokenUrl: "https://id.example.com/token", scopes: { ask: "Ask" } } },
    },
    web: { type: "http", scheme: "Bearer" },
  },
  security: [{ oauth: ["ask"] }],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "a", name: "A", description: "A", tags: [] }],
};

const algorithms: readonly CardAlgorithm[] = ["ES256", "RS256", "EdDSA"];
const keys = new Map<CardAlgorithm, readonly [PrivateCardKey, PublicCardKey]>();
const pair = (algorithm: CardAlgorithm) => keys.get(algorithm) as readonly [PrivateCardKey, PublicCardKey];
let folder: string;
let served: readonly object[];
beforeAll(async () => {
  for (const algorithm of algorithms) {
    const key = await makeCardKey(algorithm);
    const [published] = (await cardKeySet([key])).keys;
    keys.set(algorithm, [key, published as PublicCardKey]);
  }
  folder = await mkdtemp(join(tmpdir(), "parley-cards-"));
  const agent = defineAgent({
    name: "Ünsigned",
    description: "Signs",
    version: "1",
    skills: [],
    onMessage: (turn) => turn.reply("ok"),
  });
  const server = await serve(agent, {
    port: 0,
    logger: silentLogger,
    store: memoryStore(),
    authenticator: apiKey({ "a-key-of-a-test": { subject: "ada" } }, { header: "x-api-key" }),
    signCards: { keys: algorithms.map((each) => pair(each)[0]) },
  });
  const at = `${server.url}/.well-known/agent-card.json`;
  served = await Promise.all(
    [{}, { "a2a-version": "1.0" }].map(async (headers) => (await (await fetch(at, { headers })).json()) as object),
  );
  await server.close({ grace: 0 });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Signs and verifies cards with another SDK. */
interface Signer {
  sign(card: object, key: PrivateCardKey): Promise<object>;
  /** Whether it verifies a card. */
  accepts(card: object, key: PublicCardKey): Promise<boolean>;
}

const javaScript: Signer = {
  sign: (card, key) =>
    generateAgentCardSignature(key, { alg: key.alg ?? "", kid: key.kid ?? "", typ: "JOSE" })(card as AgentCard),
  accepts: (card, key) =>
    verifyAgentCardSignature(() => Promise.resolve(key as never))(card as AgentCard).then(
      () => true,
      () => false,
    ),
};

function python(program: PeerProgram): Signer {
  const run = async (what: string, card: object, key: PublicCardKey): Promise<unknown> => {
    const files = [join(folder, "card.json"), join(folder, "key.json")] as const;
    await writeFile(files[0], JSON.stringify(card));
    await writeFile(files[1], JSON.stringify(key));
    return JSON.parse(await printed(program, [what, ...files])) as unknown;
  };
  return {
    sign: async (card, key) => (await run("sign", card, key)) as object,
    accepts: async (card, key) => (await run("verify", card, key)) === "verified",
  };
}

const changed = (card: object): object => ({ ...card, name: "Changed" });

function exchange(signer: Signer, given: readonly (readonly [string, object])[]): void {
  describe.each(algorithms)("%s", (algorithm) => {
    test.each(given)("verifies our card %s", async (_name, card) => {
      const [key, published] = pair(algorithm);
      const signed = await signCard(card, key);
      expect(await signer.accepts(signed, published)).toBe(true);
      expect(await signer.accepts(changed(signed), published)).toBe(false);
    });
  });

  // The others have a requirement without scopes, which these SDKs omit when they sign.
  test.each(given.slice(0, 2))("signs a card %s, and we verify it", async (_name, card) => {
    const [key, published] = pair("ES256");
    const signed = await signer.sign(card, key);
    expect(await verifyCard(signed, { keys: [published] })).toMatchObject({ trusted: true });
    expect(await verifyCard(changed(signed), { keys: [published] })).toMatchObject({ trusted: false });
  });
}

function unsafe(signer: Signer, card: object | undefined): void {
  it("omits a requirement without scopes when it signs, so we do not trust its signature", async () => {
    const [key, published] = pair("ES256");
    const verdict = await verifyCard(await signer.sign(card ?? {}, key), { keys: [published] });
    expect(verdict).toMatchObject({ trusted: false, signatures: [{ outcome: "unsupported" }] });
  });
}

describe("the JavaScript SDK", () => {
  exchange(javaScript, cards);
  unsafe(javaScript, cards[2]?.[1]);

  test.each(algorithms)("verifies the card of a server that needs an API key, by %s", async (algorithm) => {
    for (const card of served) expect(await javaScript.accepts(card, pair(algorithm)[1])).toBe(true);
  });
});

const python1: PeerProgram = { name: "Python SDK 1.3.0", environment: "python1", program: "cards_v1.py" };
const python03: PeerProgram = { name: "Python SDK 0.3.26", environment: "python03", program: "cards_v03.py" };

describePeer(python1, () => {
  exchange(python(python1), cards);
  unsafe(python(python1), cards[2]?.[1]);

  test.each(algorithms)("verifies the card of a server that needs an API key, by %s", async (algorithm) => {
    for (const card of served) expect(await python(python1).accepts(card, pair(algorithm)[1])).toBe(true);
  });
});

describePeer(python03, () => {
  const key = { type: "apiKey", in: "header", name: "x-key" };
  const needsKey = { ...old, securitySchemes: { key }, security: [{ key: [] }] };
  exchange(python(python03), [
    ["of 0.3", old],
    [
      "of 0.3 with different values",
      { ...old, protocolVersion: "0.3.1", preferredTransport: "HTTP+JSON", description: "ß" },
    ],
    ["of 0.3 with a requirement without scopes", needsKey],
  ]);
  unsafe(python(python03), needsKey);

  test.each(algorithms)("verifies the card of a server that needs an API key, by %s", async (algorithm) => {
    for (const card of served.slice(0, 1)) expect(await python(python03).accepts(card, pair(algorithm)[1])).toBe(true);
  });
});
