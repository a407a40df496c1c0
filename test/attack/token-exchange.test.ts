import { randomUUID } from "node:crypto";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { text as bodyOf } from "node:stream/consumers";
import { connect, createHandler, defineAgent, memoryStore, nodeListener, serve, silentLogger } from "@parley/node";
import {
  allOf,
  anyOf,
  apiKey,
  basic,
  bearer,
  hashPassword,
  hostUser,
  introspection,
  jwt,
  mutualTls,
  type Authenticator,
} from "@parley/a2a/auth";
import { tokenExchange } from "@parley/a2a/credentials";
import type { AgentCard } from "@parley/a2a/model";
import type { Principal } from "@parley/a2a/protocol";
import fc from "fast-check";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { certificate, type TestCertificate } from "../identity/certificates.ts";
import { providerSecret } from "../identity/provider-clients.ts";
import { startProvider, type TestProvider } from "../identity/provider.ts";
import { userToken } from "../identity/logins.ts";
import { keepSecret } from "../secrets.ts";

/*
 * Callers who share a principal, through a gateway's certificate, a team's API key, or a static token. Each turn exchanges only the token
 * that the server verified for the turn's own call, if there was one (DESIGN D19, RFC 8693).
 */

const audience = "https://agents.example.com";
const users = ["alice", "bob", "carol", "mallory"] as const;
type User = (typeof users)[number];
const workloads = ["planner", "billing"] as const;

const jwts = new Map<User, string>();
const opaque = new Map<User, string>();
const staticToken = (user: User): string => `static-token-of-${user}-0123456789`;
const hostToken = (user: User): string => `host-token-of-${user}-0123456789`;
const teamKey = (member: number): string => `key-of-the-team-${member}-0123456789`;
const password = "password of a test 0123456789";

let signing: TestProvider;
let asking: TestProvider;
let authority: TestCertificate;
let own: TestCertificate;
let passwordHash: string;
const certificates = new Map<string, TestCertificate>();
let downstream: Downstream;

/** An authorization server whose tokens contain the token that was exchanged, and an agent that reports the exchanged token of its call. */
interface Downstream {
  readonly issuer: string;
  readonly card: AgentCard;
  close(): Promise<void>;
}

async function startDownstream(): Promise<Downstream> {
  const server = createHttpServer((incoming, response) => {
    const json = (value: object): void => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    if (incoming.method === "GET") return json({ issuer, token_endpoint: `${issuer}/token` });
    void bodyOf(incoming).then((form) => {
      const subject = new URLSearchParams(form).get("subject_token") ?? "";
      const token = `exchanged.${Buffer.from(subject).toString("base64url")}`;
      json({ access_token: token, token_type: "Bearer", issued_token_type: "x", expires_in: 600 });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const mirror = defineAgent({
    name: "Mirror",
    description: "Says which token it was called with",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply(turn.principal.subject),
  });
  const authenticator = bearer((token) => {
    const [, subject = ""] = /^exchanged\.(.+)$/.exec(token) ?? [];
    return { subject: Buffer.from(subject, "base64url").toString() };
  });
  const store = memoryStore();
  const agent = await serve(mirror, { port: 0, signals: false, store, authenticator, logger: silentLogger });
  const { card } = await connect(agent.url);
  return {
    issuer,
    card,
    async close() {
      await agent.close({ grace: 0 });
      await store.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

beforeAll(async () => {
  [signing, asking] = [await startProvider(), await startProvider({ accessTokens: "opaque" })];
  for (const user of users) {
    const wanted = { resource: audience, scope: "chat", user };
    jwts.set(user, (await userToken(signing, wanted)).access_token);
    opaque.set(user, (await userToken(asking, wanted)).access_token);
    for (const token of [staticToken(user), hostToken(user)]) keepSecret(token);
  }
  authority = await certificate({ commonName: "Authority", isAuthority: true });
  own = await certificate({ commonName: "localhost", names: ["IP:127.0.0.1"], by: authority });
  for (const name of workloads) {
    certificates.set(name, await certificate({ commonName: name, names: [`DNS:${name}.example.com`], by: authority }));
  }
  passwordHash = await hashPassword(password, { iterations: 1 });
  downstream = await startDownstream();
});
afterAll(async () => {
  await Promise.all([signing.close(), asking.close(), downstream.close()]);
});

/** The credentials of a caller. */
interface Caller {
  readonly workload: (typeof workloads)[number] | undefined;
  readonly key: number | "wrong" | undefined;
  readonly shows: "static" | "jwt" | "opaque" | "host" | "basic" | "garbage" | undefined;
  readonly user: User;
}

function authorizationOf({ shows, user }: Caller): string | undefined {
  switch (shows) {
    case undefined:
      return undefined;
    case "static":
      return `Bearer ${staticToken(user)}`;
    case "jwt":
      return `Bearer ${jwts.get(user)}`;
    case "opaque":
      return `Bearer ${opaque.get(user)}`;
    case "host":
      return `Bearer ${hostToken(user)}`;
    case "basic":
      return `Basic ${btoa(`${user}:${password}`)}`;
    case "garbage":
      return `Bearer garbage-of-${user}`;
  }
}

const tokenOf = (caller: Caller): string | undefined => /^Bearer (.+)$/.exec(authorizationOf(caller) ?? "")?.[1];

/** An accepted caller, and the token that a scheme has verified for the caller. */
interface Known {
  readonly subject: string;
  readonly token?: string | undefined;
}

/** A scheme of the server, and a model of the callers that the scheme accepts. */
interface Scheme {
  make(): Authenticator;
  knows(caller: Caller): Known | undefined;
}

const shared = { team: { subject: "team" }, staff: { subject: "staff" } } satisfies Record<string, Principal>;
/** A function for the option `principal`, which does not distinguish the subjects of two issuers. */
const principal = (_claims: object, usual: Principal): Principal => usual;
const withToken = (kind: Caller["shows"], subject: (user: User) => string) => (caller: Caller) =>
  caller.shows === kind ? { subject: subject(caller.user), token: tokenOf(caller) } : undefined;

const schemes = {
  apiKey: {
    make: () => apiKey(Object.fromEntries([0, 1, 2].map((member) => [teamKey(member), shared.team]))),
    knows: ({ key }) => (typeof key === "number" ? { subject: "team" } : undefined),
  },
  foundKey: {
    make: () => apiKey((key) => (key === "wrong" ? undefined : shared.team), { name: "found" }),
    knows: ({ key }) => (typeof key === "number" ? { subject: "team" } : undefined),
  },
  bearer: {
    make: () => bearer(Object.fromEntries(users.map((user) => [staticToken(user), shared.staff]))),
    knows: withToken("static", () => "staff"),
  },
  basic: {
    make: () => basic(Object.fromEntries(users.map((user) => [user, { password: passwordHash, subject: "people" }]))),
    knows: ({ shows }) => (shows === "basic" ? { subject: "people" } : undefined),
  },
  mutualTls: {
    make: () =>
      mutualTls({ names: Object.fromEntries(workloads.map((name) => [`DNS:${name}.example.com`, { subject: name }])) }),
    knows: ({ workload }) => (workload === undefined ? undefined : { subject: workload }),
  },
  jwt: {
    make: () => jwt({ issuer: signing.issuer, audience, principal }),
    knows: withToken("jwt", (user) => user),
  },
  introspection: {
    make: () =>
      introspection({
        issuer: asking.issuer,
        audience,
        clientId: "service",
        clientSecret: providerSecret,
        principal,
      }),
    knows: withToken("opaque", (user) => user),
  },
  hostUser: {
    make: () => hostUser({ scheme: "bearer", name: "host" }),
    knows: withToken("host", (user) => user),
  },
} satisfies Record<string, Scheme>;

type SchemeName = keyof typeof schemes;

/** A combination of schemes. */
type Tree = SchemeName | { readonly kind: "allOf" | "anyOf"; readonly of: readonly Tree[] };

function makeTree(tree: Tree, made = new Map<SchemeName, Authenticator>()): Authenticator {
  if (typeof tree !== "string") {
    const members = tree.of.map((one) => makeTree(one, made));
    return tree.kind === "allOf" ? allOf(...members) : anyOf(...members);
  }
  // Each name belongs to one authenticator, which may occur several times in the tree.
  const known = made.get(tree) ?? schemes[tree].make();
  made.set(tree, known);
  return known;
}

/** Returns the caller that a combination accepts. In `allOf`, the first member names the caller, and the first verified token counts. */
function knownBy(tree: Tree, caller: Caller): Known | undefined {
  if (typeof tree === "string") return schemes[tree].knows(caller);
  const found = tree.of.map((one) => knownBy(one, caller));
  if (tree.kind === "anyOf") return found.find((one) => one !== undefined);
  if (found.includes(undefined)) return undefined;
  return { subject: found[0]?.subject ?? "", token: found.find((one) => one?.token !== undefined)?.token };
}

/** The caller, and the token that was exchanged for this caller. `undefined` if the caller was rejected. */
type Told = { readonly subject: string; readonly token: string | null } | undefined;

/** Serves an agent that exchanges its caller's token once every caller of the crowd has reached its turn or was rejected. */
async function servedTo(crowd: number, authenticator: Authenticator) {
  let [settled, open] = [0, () => {}];
  const everyone = new Promise<void>((resolve) => (open = resolve));
  const settle = (): void => {
    settled += 1;
    if (settled === crowd) open();
  };
  const planner = defineAgent({
    name: "Planner",
    description: "Exchanges the token of its caller",
    version: "1.0.0",
    skills: [],
    async onMessage(turn) {
      settle();
      await everyone;
      const subject = turn.principal;
      const client = { issuer: downstream.issuer, clientId: "planner", clientSecret: providerSecret };
      const weather = await connect(downstream.card, { credentials: [tokenExchange({ ...client, subject })] });
      const token = await weather.sendMessage("Who am I?").then(
        ({ message }) => message?.parts[0]?.text ?? "",
        () => null,
      );
      return turn.reply(JSON.stringify({ subject: subject.subject, token }));
    },
  });
  const server = createServer({ ...own, ca: [authority.cert], requestCert: true, rejectUnauthorized: false });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = memoryStore();
  const handler = createHandler(planner, { publicUrl: url, store, authenticator, logger: silentLogger });
  const byHostToken = new Map(users.map((user) => [`Bearer ${hostToken(user)}`, { subject: user }]));
  const principalOf = ({ headers }: IncomingMessage): Principal | undefined =>
    byHostToken.get(headers.authorization ?? "");
  server.on("request", nodeListener<IncomingMessage>(handler.handle, { principal: principalOf }));
  // Callers with the same certificate share connections, as they do behind a gateway.
  const agents = new Map<string | undefined, HttpsAgent>();
  const agentOf = (name: string | undefined): HttpsAgent => {
    const shown = name === undefined ? undefined : certificates.get(name);
    const known =
      agents.get(name) ??
      new HttpsAgent({
        keepAlive: true,
        ca: authority.cert,
        ...(shown !== undefined && { cert: shown.cert, key: shown.key }),
      });
    agents.set(name, known);
    return known;
  };
  return {
    async ask(caller: Caller): Promise<Told> {
      const authorization = authorizationOf(caller);
      const { key } = caller;
      const headers = {
        "content-type": "application/json",
        "a2a-version": "1.0",
        ...(authorization !== undefined && { authorization }),
        ...(key !== undefined && { "x-api-key": key === "wrong" ? key : teamKey(key) }),
      };
      const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "What will it be like?" }] };
      const answer = await new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
        const options = { method: "POST", headers, agent: agentOf(caller.workload) };
        const sending = request(`${url}/message:send`, options, (response) => {
          void bodyOf(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
        });
        sending.on("error", reject);
        sending.end(JSON.stringify({ message }));
      });
      if (answer.status === 401) {
        settle();
        return undefined;
      }
      expect(answer).toMatchObject({ status: 200 });
      const reply = JSON.parse(answer.body) as { readonly message: { readonly parts: [{ readonly text: string }] } };
      return JSON.parse(reply.message.parts[0].text) as Told;
    },
    async close() {
      for (const agent of agents.values()) agent.destroy();
      await handler.close({ grace: 0 });
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await store.close();
    },
  };
}

const names = Object.keys(schemes) as SchemeName[];
const { tree } = fc.letrec<{ tree: Tree; group: Tree }>((tie) => ({
  tree: fc.oneof({ depthSize: "small", maxDepth: 2 }, fc.constantFrom(...names), tie("group")),
  group: fc.record({
    kind: fc.constantFrom("allOf" as const, "anyOf" as const),
    of: fc.array(tie("tree"), { minLength: 2, maxLength: 3 }),
  }),
}));
const anyCaller: fc.Arbitrary<Caller> = fc.record({
  workload: fc.constantFrom(...workloads, undefined),
  key: fc.constantFrom(0, 1, 2, "wrong" as const, undefined),
  shows: fc.constantFrom("static", "jwt", "opaque", "host", "basic", "garbage", undefined),
  user: fc.constantFrom(...users),
});

describe("a token exchange", () => {
  it("names the token that was verified on its own call, or fails, in every combination of schemes", async () => {
    let exchanged = 0;
    const holds = fc.asyncProperty(
      tree,
      fc.array(anyCaller, { minLength: 12, maxLength: 24 }),
      async (combination, crowd) => {
        const served = await servedTo(crowd.length, makeTree(combination));
        try {
          const told = await Promise.all(crowd.map((caller) => served.ask(caller)));
          const expected = crowd.map((caller) => {
            const known = knownBy(combination, caller);
            return known && { subject: known.subject, token: known.token ?? null };
          });
          expect(told).toEqual(expected);
          exchanged += told.filter((one) => typeof one?.token === "string").length;
        } finally {
          await served.close();
        }
      },
    );
    await fc.assert(holds, {
      numRuns: 40,
      // Cases that failed earlier: a gateway, and a team's key, each with several users behind it.
      examples: [
        [{ kind: "allOf", of: ["mutualTls", "jwt"] }, crowdOf("jwt")],
        [{ kind: "allOf", of: ["mutualTls", "bearer"] }, crowdOf("static")],
        [{ kind: "allOf", of: ["apiKey", "introspection"] }, crowdOf("opaque")],
        [{ kind: "allOf", of: ["basic", "apiKey"] }, crowdOf("basic")],
        ["apiKey", [...crowdOf("jwt"), ...crowdOf(undefined)]],
        [{ kind: "anyOf", of: ["apiKey", "jwt"] }, [...crowdOf("jwt"), ...crowdOf(undefined)]],
        [{ kind: "allOf", of: ["mutualTls", "hostUser"] }, crowdOf("host")],
      ],
    });
    expect(exchanged).toBeGreaterThan(0);
  });

  it("names the user behind a gateway's certificate at a real OpenID provider, however many share it", async () => {
    const seen: Record<string, string[]> = {};
    const planner = defineAgent({
      name: "Planner",
      description: "Asks the provider for a token of its caller",
      version: "1.0.0",
      skills: [],
      async onMessage(turn) {
        const client = { issuer: signing.issuer, clientId: "exchanger", clientSecret: providerSecret };
        const exchange = tokenExchange({ ...client, scopes: ["chat"], subject: turn.principal });
        const weather = await connect(mirror.url, { credentials: [exchange] });
        const { message } = await weather.sendMessage("Who am I?");
        (seen[turn.text] ??= []).push(message?.parts[0]?.text ?? "");
        return turn.reply("Done");
      },
    });
    const options = { port: 0, signals: false, logger: silentLogger } as const;
    const mirror = await serve(
      defineAgent({
        name: "Mirror",
        description: "Says who calls",
        version: "1.0.0",
        skills: [],
        onMessage: (turn) => turn.reply(turn.principal.subject),
      }),
      { ...options, store: memoryStore(), authenticator: jwt({ issuer: signing.issuer }) },
    );
    onTestFinished(() => mirror.close({ grace: 0 }));
    const gateway = mutualTls({ names: { "DNS:planner.example.com": { subject: "gateway" } } });
    const authenticator = allOf(gateway, jwt({ issuer: signing.issuer, audience }));
    const tls = { ...own, ca: [authority.cert], requestCert: true, rejectUnauthorized: false };
    const server = await serve(planner, { ...options, store: memoryStore(), authenticator, tls });
    onTestFinished(() => server.close({ grace: 0 }));
    const shown = certificates.get("planner");
    const crowd = users.flatMap((user) => [user, user, user]);
    await Promise.all(
      crowd.map(async (user) => {
        const client = await connect(server.url, {
          headers: { authorization: `Bearer ${jwts.get(user)}` },
          tls: { ca: authority.cert, cert: shown?.cert ?? "", key: shown?.key ?? "" },
        });
        await client.sendMessage(user);
      }),
    );
    expect(seen).toEqual(Object.fromEntries(users.map((user) => [user, [user, user, user]])));
    // The provider identifies the users themselves, not just their tokens.
    expect(users.map((user) => decodeJwt(jwts.get(user) ?? "").sub)).toEqual([...users]);
  });
});

/** Returns callers with the same credentials except for the token. */
function crowdOf(shows: Caller["shows"]): Caller[] {
  return [...users, ...users, ...users].map((user, at) => ({ workload: "planner", key: at % 3, shows, user }));
}
