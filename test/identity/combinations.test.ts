import { auditLog, defineAgent, memoryStore, serve, silentLogger, type Server } from "@parley/node";
import {
  allOf,
  anyOf,
  anyone,
  apiKey,
  basic,
  bearer,
  hashKey,
  hashPassword,
  jwt,
  type Authenticator,
} from "@parley/a2a/auth";
import type { AgentCard } from "@parley/a2a/model";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clientToken } from "./logins.ts";
import { startProvider, type TestProvider } from "./provider.ts";
import { bindings, send, versions, type Sent, type Told } from "./wire-call.ts";

/* Schemes combined by AND and OR, for agents and for skills, over every binding in both versions (A2A 1.0 §4.5, §4.4.5). */

const requirement = (schemes: Readonly<Record<string, readonly string[]>>) => ({
  schemes: Object.fromEntries(Object.entries(schemes).map(([name, list]) => [name, { list }])),
});

/** An agent with a skill that has a requirement, for those combinations that can satisfy it. */
function agentWith(needs?: ReturnType<typeof requirement>) {
  return defineAgent({
    name: "Mirror",
    description: "Says who calls",
    version: "1.0.0",
    skills: [
      { id: "special", name: "Special", description: "-", tags: [], ...(needs && { securityRequirements: [needs] }) },
    ],
    onMessage: (turn) => turn.reply(`You are ${turn.principal.subject}, special ${turn.allows("special")}`),
  });
}

let provider: TestProvider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.close());

const secrets = {
  key: "key-of-app-0123456789",
  weak: "key-of-guest-0123456789",
  token: "token-of-ada-0123456789",
  password: "password of eve",
};

async function schemes() {
  const { key, weak, token, password } = secrets;
  return {
    key: apiKey(
      { [await hashKey(key)]: { subject: "app", scopes: ["use"] }, [weak]: { subject: "guest" } },
      { scopes: ["use"] },
    ),
    token: bearer({ [await hashKey(token)]: { subject: "ada", scopes: ["write"] } }),
    ownKey: apiKey({ [key]: { subject: "ada" } }, { name: "own", header: "x-own-key" }),
    cookie: apiKey({ [key]: { subject: "page" } }, { name: "cookie", cookie: "session" }),
    password: basic({ eve: { password: await hashPassword(password, { iterations: 10 }) } }),
    jwt: jwt({ issuer: provider.issuer, scopes: ["chat"] }),
  };
}

type Schemes = Awaited<ReturnType<typeof schemes>>;

/** A caller's credentials, by name. */
const shown = {
  key: { "x-api-key": secrets.key },
  weakKey: { "x-api-key": secrets.weak },
  wrongKey: { "x-api-key": "wrong" },
  ownKey: { "x-own-key": secrets.key },
  wrongOwnKey: { "x-own-key": "wrong" },
  token: { authorization: `Bearer ${secrets.token}` },
  wrongToken: { authorization: "Bearer wrong" },
  cookie: { cookie: `session=${secrets.key}` },
  password: { authorization: `Basic ${btoa(`eve:${secrets.password}`)}` },
  wrongPassword: { authorization: `Basic ${btoa("eve:wrong")}` },
} satisfies Record<string, Readonly<Record<string, string>>>;

type Shown = keyof typeof shown | "jwt" | "weakJwt" | "special";

const keyChallenge = 'ApiKey in="header", name="x-api-key"';
const cookieChallenge = 'ApiKey in="cookie", name="session"';
const basicChallenge = 'Basic realm="agents", charset="UTF-8"';
const invalid = ', error="invalid_token"';
const wrongBearer = 'Bearer error="invalid_token"';

const is = (subject: string, special = true): Told => ({ text: `You are ${subject}, special ${special}` });
const who = (challenge: string): Told => ({ refused: "Unauthenticated", challenge });
const may = (challenge: string): Told => ({ refused: "PermissionDenied", challenge });

interface Combination {
  readonly authenticator: (schemes: Schemes) => Authenticator;
  /** The requirement of the skill. */
  readonly skill?: ReturnType<typeof requirement>;
  /** The requirements on the card. */
  readonly card: readonly Readonly<Record<string, readonly string[]>>[];
  /** Callers' credentials, and the results. */
  readonly callers: readonly (readonly [shows: readonly Shown[], told: Told])[];
}

const combinations: Readonly<Record<string, Combination>> = {
  "a key or a token": {
    authenticator: ({ key, token }) => anyOf(key, token),
    card: [{ apiKey: ["use"] }, { bearer: [] }],
    callers: [
      [[], who(`${keyChallenge}, Bearer`)],
      [["key"], is("app")],
      [["token"], is("ada")],
      [["key", "token"], is("app")],
      [["wrongKey", "token"], is("ada")],
      [["weakKey", "token"], is("ada")],
      [["key", "wrongToken"], is("app")],
      [["wrongKey"], who(keyChallenge + invalid)],
      [["wrongToken"], who(wrongBearer)],
      [["wrongKey", "wrongToken"], who(`${keyChallenge}${invalid}, ${wrongBearer}`)],
      [["weakKey"], may(`${keyChallenge}, error="insufficient_scope", scope="use"`)],
      [["cookie"], who(`${keyChallenge}, Bearer`)],
    ],
  },
  "a key and a token": {
    authenticator: ({ key, token }) => allOf(token, key),
    card: [{ bearer: [], apiKey: ["use"] }],
    callers: [
      [[], who(`Bearer, ${keyChallenge}`)],
      [["key"], who("Bearer")],
      [["token"], who(keyChallenge)],
      [["key", "token"], is("ada")],
      [["wrongKey", "token"], who(keyChallenge + invalid)],
      [["key", "wrongToken"], who(wrongBearer)],
      [["wrongToken"], who(wrongBearer)],
      [["weakKey", "token"], may(`${keyChallenge}, error="insufficient_scope", scope="use"`)],
    ],
  },
  "a key with a token, or a cookie": {
    authenticator: ({ key, token, cookie }) => anyOf(allOf(token, key), cookie),
    card: [{ bearer: [], apiKey: ["use"] }, { cookie: [] }],
    callers: [
      [[], who(`Bearer, ${keyChallenge}, ${cookieChallenge}`)],
      [["cookie"], is("page")],
      [["key", "token"], is("ada")],
      [["key"], who("Bearer")],
      [["key", "cookie"], is("page")],
      [["wrongKey", "token", "cookie"], is("page")],
    ],
  },
  "a key or a cookie, with a token or a password": {
    authenticator: ({ key, token, cookie, password }) => allOf(anyOf(token, password), anyOf(key, cookie)),
    card: [
      { bearer: [], apiKey: ["use"] },
      { bearer: [], cookie: [] },
      { basic: [], apiKey: ["use"] },
      { basic: [], cookie: [] },
    ],
    callers: [
      [["password", "cookie"], is("eve")],
      [["token", "key"], is("ada")],
      [["password"], who(`${keyChallenge}, ${cookieChallenge}`)],
      [["cookie"], who(`Bearer, ${basicChallenge}`)],
      [["wrongPassword", "cookie"], who(basicChallenge + invalid)],
    ],
  },
  "a key with a JWT of a provider": {
    authenticator: ({ key, jwt: tokens }) => allOf(tokens, key),
    card: [{ jwt: ["chat"], apiKey: ["use"] }],
    callers: [
      [["jwt", "key"], is("service")],
      [["weakJwt", "key"], may('Bearer error="insufficient_scope", scope="chat", resource_metadata="METADATA"')],
      [["key"], who('Bearer resource_metadata="METADATA"')],
      [["jwt"], who(keyChallenge)],
      [
        ["wrongToken", "key"],
        who('Bearer error="invalid_token", error_description="The token is not a JWT", resource_metadata="METADATA"'),
      ],
    ],
  },
  "a key for the agent, and a token as well for a skill": {
    authenticator: ({ key, token }) => anyOf(allOf(token, key), key),
    skill: requirement({ apiKey: ["use"], bearer: ["write"] }),
    card: [{ bearer: [], apiKey: ["use"] }, { apiKey: ["use"] }],
    callers: [
      [["key"], is("app", false)],
      [["key", "special"], who("Bearer")],
      [["key", "token"], is("ada", true)],
      [["key", "token", "special"], is("ada", true)],
      [["token", "special"], who(keyChallenge)],
    ],
  },
  "a key or a token, and the token for a skill": {
    authenticator: ({ key, token, ownKey, password }) => anyOf(anyOf(ownKey, key), password, token),
    skill: requirement({ bearer: ["write"] }),
    card: [{ own: [] }, { apiKey: ["use"] }, { basic: [] }, { bearer: [] }],
    callers: [
      [["ownKey"], is("ada", false)],
      [["ownKey", "special"], who("Bearer")],
      [["ownKey", "token"], is("ada", true)],
      [["ownKey", "token", "special"], is("ada", true)],
      // Another caller's token gives this caller no scopes, and does not change its identity.
      [["key", "token"], is("app", false)],
      [["key", "token", "special"], who("Bearer")],
      [["ownKey", "wrongToken"], is("ada", false)],
      [["ownKey", "wrongToken", "special"], who("Bearer")],
      [["wrongOwnKey", "token", "special"], is("ada", true)],
      [["wrongOwnKey", "wrongToken"], who(`ApiKey in="header", name="x-own-key"${invalid}, ${wrongBearer}`)],
    ],
  },
  "anyone for the agent, and a scope for a skill": {
    authenticator: ({ token, key }) => anyOf(token, key, anyone()),
    skill: requirement({ apiKey: ["pay"] }),
    card: [{ bearer: [] }, { apiKey: ["use"] }, {}],
    callers: [
      [[], is("anonymous", false)],
      [["special"], who(keyChallenge)],
      [["key"], is("app", false)],
      [["key", "special"], may(`${keyChallenge}, error="insufficient_scope", scope="pay"`)],
      [["token", "special"], who(keyChallenge)],
      [["wrongToken"], who(wrongBearer)],
    ],
  },
};

const everywhere = bindings.flatMap((binding) => versions.map((version) => [binding, version] as const));

describe.each(Object.entries(combinations))("%s", (_, { authenticator, skill, card, callers }) => {
  let server: Server;
  let tokens: Readonly<Record<"jwt" | "weakJwt", string>>;
  beforeAll(async () => {
    const given = {
      port: 0,
      grpc: true,
      signals: false,
      store: memoryStore(),
      logger: false as const,
      audit: auditLog(silentLogger),
    };
    server = await serve(agentWith(skill), { ...given, authenticator: authenticator(await schemes()) });
    const [right, weak] = ["chat", "admin"].map((scope) => clientToken(provider, { resource: server.url, scope }));
    tokens = { jwt: (await right) ?? "", weakJwt: (await weak) ?? "" };
  });
  afterAll(() => server.close({ grace: 0 }));

  const sentOf = (shows: readonly Shown[]): Sent => {
    const headers = shows.map((each): Readonly<Record<string, string>> => {
      if (each === "special") return {};
      return each === "jwt" || each === "weakJwt" ? { authorization: `Bearer ${tokens[each]}` } : shown[each];
    });
    return {
      headers: Object.assign({}, ...headers) as Readonly<Record<string, string>>,
      ...(shows.includes("special") && { message: { metadata: { skillId: "special" } } }),
    };
  };

  test.each(everywhere)("over %s in %s", async (binding, version) => {
    const metadata = `${server.url}/.well-known/oauth-protected-resource`;
    const told = await Promise.all(
      callers.map(async ([shows]) => {
        const answer = JSON.stringify(await send(server.url, binding, version, sentOf(shows)));
        return [shows, JSON.parse(answer.replaceAll(metadata, "METADATA")) as Told];
      }),
    );
    expect(told).toEqual(callers);
  });

  test("is on the card, in both versions", async () => {
    const read = async (version: string): Promise<unknown> => {
      const answer = await fetch(`${server.url}/.well-known/agent-card.json`, { headers: { "a2a-version": version } });
      return answer.json();
    };
    expect((await read("1.0")) as AgentCard).toHaveProperty("securityRequirements", card.map(requirement));
    expect(await read("0.3")).toHaveProperty("security", card);
  });
});
