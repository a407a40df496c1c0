import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { defineAgent, memoryStore, silentLogger, type AgentCard, type AgentMount } from "@parley/server";
import { anyOf, anyone, bearer } from "@parley/a2a/auth";
import { cardKeySet, makeCardKey, signCard, trustCards, type CardCheck, type PrivateCardKey } from "@parley/a2a/cards";
import { connect as connectAnywhere, type ClientBinding, type ConnectOptions } from "@parley/a2a";
import { apiKeyCredential, clientCredentials } from "@parley/a2a/credentials";
import { hasCode } from "@parley/a2a/model";
import { Payload } from "@parley/a2a/protocol";
import { connect, serve, type ServeOptions } from "@parley/node";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";

/*
 * Attacks on signed cards (A2A 1.0 §8.4) by someone between a client and a server, who changes cards in many ways and keeps the
 * signatures. The client requires signed cards, and has credentials that the attacker wants.
 */

const secrets = ["secret-of-ada-0123456789", "secret-key-of-ada-9876543210", "secret-token-of-ada-5555"] as const;
const [clientSecret, key, token] = secrets;

let signer: PrivateCardKey;
let trust: CardCheck;
beforeAll(async () => {
  signer = await makeCardKey();
  trust = trustCards({ policy: "require", keys: [{ keySet: await cardKeySet([signer]) }] });
});

interface Site {
  readonly url: string;
  /** Everything that the server received: methods, URLs, headers and bodies. */
  readonly received: string[];
}

type Answer = { readonly status?: number; readonly headers?: Record<string, string>; readonly text: string };

async function site(answer: (request: IncomingMessage, body: string) => Answer | Promise<Answer>): Promise<Site> {
  const received: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      received.push([request.method, request.url, JSON.stringify(request.headers), body].join(" "));
      void Promise.resolve(answer(request, body)).then(({ status = 200, headers = {}, text }) => {
        response.writeHead(status, { "content-type": "application/json", ...headers });
        response.end(text);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

/** Starts the attacker's own server, which answers each request with a token, so that the client may send another request. */
const attacker = () =>
  site(() => ({ text: JSON.stringify({ access_token: "t", token_type: "Bearer", expires_in: 60 }) }));

/** The attacker's change to the text of a card. */
type Change = (text: string) => string;

interface Between extends Site {
  /** The change that is applied to every answer from now on. */
  change: Change;
}

/** Starts a real server with signed cards, behind a proxy that forwards everything. */
async function between(options: Partial<ServeOptions> = {}, mount: Partial<AgentMount> = {}): Promise<Between> {
  let origin = "";
  const state = { change: (text: string) => text };
  const middle = await site(async ({ method = "GET", url = "", headers }, body) => {
    const { host: _, connection: __, "content-length": ___, "transfer-encoding": ____, ...rest } = headers;
    const init = { method, headers: rest as Record<string, string>, ...(body !== "" && { body }) };
    const answer = await fetch(origin + url, init);
    const type = answer.headers.get("content-type") ?? "";
    return { status: answer.status, headers: { "content-type": type }, text: state.change(await answer.text()) };
  });
  const agent = defineAgent({
    name: "Signed",
    description: "Has a signed card",
    version: "1.0.0",
    skills: [{ id: "a", name: "A", description: "Answers", tags: ["a"] }],
    onMessage: (turn) => turn.reply("ok"),
  });
  const server = await serve([{ agent, ...mount }], {
    port: 0,
    signals: false,
    logger: silentLogger,
    store: memoryStore(),
    publicUrl: middle.url,
    signCards: { keys: [signer] },
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  origin = server.url;
  return Object.assign(state, middle);
}

const credentials = () => [clientCredentials({ clientId: "ada", clientSecret }), apiKeyCredential(key)];

/** Connects, and sends a message like a user. Returns the error code, or `undefined` on success. */
async function used(url: string, options: ConnectOptions): Promise<string | undefined> {
  try {
    const client = await connect(url, { retry: false, trust, credentials: credentials(), ...options });
    await client.sendMessage("hello");
    return undefined;
  } catch (thrown) {
    if (hasCode(thrown, "InvalidResponse")) return thrown.code;
    throw thrown;
  }
}

function expectNoSecret(...sites: readonly Site[]): void {
  for (const { received } of sites) for (const secret of secrets) expect(received.join("\n")).not.toContain(secret);
}

const encoded = (secret: string): string => Buffer.from(`ada:${secret}`).toString("base64");

/** Returns security that sends a client's credentials elsewhere, with member names as in ProtoJSON and as in proto fields. */
const toTokens = (evil: string) => ({
  oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: `${evil}/token`, scopes: {} } } },
});
const toTokensInSnakeCase = (evil: string) => ({
  oauth2_security_scheme: {
    flows: { client_credentials: { token_url: `${evil}/token`, scopes: {} } },
    oauth2_metadata_url: `${evil}/.well-known/oauth-authorization-server`,
  },
});
const toHeader = { api_key_security_scheme: { location: "header", name: "x-evil" } };

/** Adds text after the first brace, for example to duplicate members. The next function adds text before the last brace. */
const first =
  (members: string): Change =>
  (text) =>
    text.replace("{", `{${members},`);
const last =
  (members: string): Change =>
  (text) =>
    `${text.trimEnd().slice(0, -1)},${members}}`;
const parsed =
  (change: (card: Record<string, unknown>) => object): Change =>
  (text) =>
    JSON.stringify(change(JSON.parse(text) as Record<string, unknown>));
const requirement = '[{"schemes":{"x":{"list":[]}}}]';

const additions: readonly (readonly [string, (evil: string) => Change])[] = [
  [
    "schemes in snake_case",
    (evil) =>
      last(
        `"security_schemes":${JSON.stringify({ x: toTokensInSnakeCase(evil) })},"security_requirements":${requirement}`,
      ),
  ],
  [
    "schemes in snake_case with members in camelCase",
    (evil) =>
      last(`"security_schemes":${JSON.stringify({ x: toTokens(evil) })},"security_requirements":${requirement}`),
  ],
  [
    "an API key in a header of his choice",
    () => last(`"security_schemes":${JSON.stringify({ x: toHeader })},"security_requirements":${requirement}`),
  ],
  [
    "schemes in camelCase",
    (evil) => last(`"securitySchemes":${JSON.stringify({ x: toTokens(evil) })},"securityRequirements":${requirement}`),
  ],
  [
    "schemes twice, in both spellings",
    (evil) => (text) =>
      first(`"securitySchemes":{},"securityRequirements":[]`)(
        last(
          `"security_schemes":${JSON.stringify({ x: toTokensInSnakeCase(evil) })},"security_requirements":${requirement}`,
        )(text),
      ),
  ],
  ["interfaces twice, the last one his", (evil) => last(`"supportedInterfaces":[${JSON.stringify(at(evil))}]`)],
  ["interfaces in snake_case", (evil) => last(`"supported_interfaces":[${JSON.stringify(at(evil))}]`)],
  ["the address of 0.3", (evil) => last(`"url":${JSON.stringify(evil)}`)],
  ["a further address of 0.3", (evil) => last(`"additional_interfaces":[{"url":"${evil}","transport":"JSONRPC"}]`)],
  [
    "a scheme as the SDK for JavaScript has it in memory",
    (evil) =>
      parsed((card) => ({
        ...card,
        securitySchemes: {
          x: {
            scheme: { $case: "oauth2SecurityScheme", value: toTokens(evil).oauth2SecurityScheme },
          },
        },
        securityRequirements: [{ schemes: { x: { list: [] } } }],
      })),
  ],
  [
    "__proto__ with schemes",
    (evil) =>
      first(
        `"__proto__":${JSON.stringify({ securitySchemes: { x: toTokens(evil) }, securityRequirements: [{ schemes: { x: {} } }] })}`,
      ),
  ],
  ["a member of nobody", () => last('"x-anything":1')],
  [
    "a member with a hidden character",
    (evil) => last(`"security\u200bSchemes":{"x":${JSON.stringify(toTokens(evil))}}`),
  ],
];

function at(url: string) {
  return { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" };
}

describe("a client that requires signed cards", () => {
  it("uses an unchanged card", async () => {
    const server = await between();
    expect(await used(server.url, {})).toBeUndefined();
  });

  describe.each(["1.0", "0.3", undefined])("with the card that version %s gets", (version) => {
    it.each(additions)("rejects it with %s, and sends no credentials anywhere", async (_what, change) => {
      const [server, evil] = [await between(), await attacker()];
      server.change = change(evil.url);
      expect(await used(server.url, version === undefined ? {} : { version })).toBe("InvalidResponse");
      expect(evil.received).toEqual([]);
      expectNoSecret(server);
      expect(server.received.join("\n")).not.toContain(encoded(clientSecret));
    });
  });

  it.each([
    "oauth2_metadata_url",
    "refresh_url",
    "documentation_url",
    "icon_url",
    "capabilities.extended_agent_card",
    "pkce_required",
  ])("rejects a card with %s, which the signer left out", async (path) => {
    const evil = await attacker();
    const flow = { authorizationUrl: "https://id.example.com/a", tokenUrl: "https://id.example.com/t", scopes: {} };
    const oauth2SecurityScheme = { flows: { authorizationCode: flow } };
    const card: AgentCard = {
      name: "Signed",
      description: "Has a signed card",
      version: "1.0.0",
      supportedInterfaces: [at("https://agents.example.com")],
      capabilities: { streaming: true },
      securitySchemes: { id: { oauth2SecurityScheme } },
      securityRequirements: [{ schemes: { id: { list: [] } } }],
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    };
    const signed = structuredClone(await signCard(card, signer)) as unknown as Record<string, Record<string, unknown>>;
    await connect(signed as unknown as AgentCard, { trust });
    const name = path.split(".").at(-1) ?? "";
    const { id } = signed["securitySchemes"] as { id: { oauth2SecurityScheme: typeof oauth2SecurityScheme } };
    const { oauth2SecurityScheme: scheme } = id;
    const holders: Record<string, object | undefined> = {
      oauth2_metadata_url: scheme,
      refresh_url: scheme.flows.authorizationCode,
      pkce_required: scheme.flows.authorizationCode,
      extended_agent_card: signed["capabilities"],
    };
    Object.assign(holders[name] ?? signed, { [name]: /card|pkce/.test(name) ? true : evil.url });
    await expect(connect(signed as unknown as AgentCard, { trust })).rejects.toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining(name) as string,
    });
  });
});

describe("a redirect of the card", () => {
  const redirecting = (target: () => string) =>
    site(() => ({ status: 302, headers: { location: target() }, text: "" }));

  it("leads to a card that is checked like any other: a changed one is rejected", async () => {
    const [server, evil] = [await between(), await attacker()];
    const front = await redirecting(() => `${server.url}/.well-known/agent-card.json`);
    // A client without credentials follows a redirect.
    const client = await connect(front.url, { retry: false, trust });
    expect(client.card.name).toBe("Signed");
    for (const [, change] of additions) {
      server.change = change(evil.url);
      await expect(connect(front.url, { retry: false, trust })).rejects.toMatchObject({ code: "InvalidResponse" });
    }
    expect(evil.received).toEqual([]);
  });

  it("is not followed by a client with credentials", async () => {
    const server = await between();
    const front = await redirecting(() => `${server.url}/.well-known/agent-card.json`);
    expect(await used(front.url, {})).toBe("InvalidResponse");
    expect(server.received).toEqual([]);
    expectNoSecret(front);
  });

  it("does not let the key of one origin sign the card of another", async () => {
    const server = await between();
    const front = await redirecting(() => `${server.url}/.well-known/agent-card.json`);
    const keySet = await cardKeySet([signer]);
    const only = trustCards({ keys: [{ keySet, origins: [server.url] }] });
    await connect(server.url, { retry: false, trust: only });
    // The client trusts the key for the target of the redirect, but the user named another origin.
    await expect(connect(front.url, { retry: false, trust: only })).rejects.toMatchObject({ code: "InvalidResponse" });
  });
});

describe("an extended card", () => {
  const people = anyOf(bearer({ [token]: { subject: "ada" } }), anyone());
  const bindings = (["JSONRPC", "HTTP+JSON"] as const).flatMap((binding) =>
    ["1.0", "0.3"].map((version) => ({ binding, version })),
  );

  it.each(bindings)("that was changed replaces nothing, over $binding $version", async ({ binding, version }) => {
    const evil = await attacker();
    const extendedCard = (card: AgentCard): AgentCard => ({ ...card, description: "For Ada" });
    const server = await between({ authenticator: people }, { extendedCard });
    const options = { retry: false, trust, binding, version, credentials: credentials() } as const;
    const headers = { authorization: `Bearer ${token}` };
    for (const [, change] of additions) {
      server.change = (text) => text;
      const client = await connect(server.url, { ...options, headers });
      const inner = change(evil.url);
      server.change = (text) => {
        const { jsonrpc, id, result } = JSON.parse(text) as Record<string, unknown>;
        if (jsonrpc === undefined) return inner(text);
        return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${inner(JSON.stringify(result))}}`;
      };
      const before = client.card;
      const card = await client.getExtendedAgentCard().catch((thrown: unknown) => {
        expect(hasCode(thrown, "InvalidResponse")).toBe(true);
        return undefined;
      });
      // Cards of 0.3 REST have a different form, so the client uses only the part that is signed.
      if (binding === "HTTP+JSON" && version === "0.3" && card !== undefined) {
        expect(JSON.stringify(card)).not.toContain(evil.url);
        expect(JSON.stringify(card)).not.toContain("x-evil");
      } else {
        expect(card).toBeUndefined();
        expect(client.card).toBe(before);
      }
      server.change = (text) => text;
      await client.sendMessage("hello");
    }
    expect(evil.received).toEqual([]);
    expectNoSecret(evil);
  });

  it("from a binding without JSON is used as far as its signature covers it", async () => {
    // A binding such as gRPC returns a 0.3 card in the shape of 1.0, with interfaces and flows that a 0.3 card cannot have.
    const old = {
      protocolVersion: "0.3.0",
      name: "Old",
      description: "Speaks 0.3",
      url: "urn:old",
      preferredTransport: "urn:binding",
      version: "1",
      capabilities: {},
      defaultInputModes: [],
      defaultOutputModes: [],
      skills: [],
      supportsAuthenticatedExtendedCard: true,
    };
    const signed = await signCard(old, signer);
    const given: { card?: AgentCard } = {};
    const binding: ClientBinding = {
      name: "urn:binding",
      versions: ["0.3"],
      unusable: () => undefined,
      origin: () => undefined,
      open: () => ({
        call: async () => ({ payload: new Payload(given.card as never) }),
        stream: () => Promise.reject(new Error("has no streams")),
      }),
    };
    const client = await connectAnywhere(signed, { trust, bindings: [binding], retry: false });
    const { supportedInterfaces } = client.card;
    given.card = { ...client.card, supportedInterfaces: [...supportedInterfaces, at("https://evil.example")] };
    const card = await client.getExtendedAgentCard();
    expect(card.supportedInterfaces).toEqual(supportedInterfaces);
    expect(client.card.supportedInterfaces).toEqual(supportedInterfaces);
  });
});
