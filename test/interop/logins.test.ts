import { defineAgent, memoryStore, serve, type Server } from "@parley/node";
import { apiKey, bearer, jwt, oauth2, openIdConnect, type Authenticator } from "@parley/a2a/auth";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientToken } from "../identity/logins.ts";
import { startProvider, type TestProvider } from "../identity/provider.ts";
import { describePeer, runClient, type PeerProgram, type Said } from "./peer.ts";
import type { BindingName, Version } from "./steps.ts";

/** The SDKs of other languages find the schemes on our cards, and authenticate with them (A2A 1.0 §7.3). */

const agent = defineAgent({
  name: "Mirror",
  description: "Says who calls",
  version: "1.0.0",
  skills: [{ id: "who", name: "Who", description: "Says who calls", tags: ["who"] }],
  onMessage: (turn) => turn.reply(`You are ${turn.principal.subject}`),
});

const secret = "secret-of-ada-0123456789";
const ada = { [secret]: { subject: "ada" } };

/** The schemes that the SDKs support, by their names on the card. */
const schemes: Readonly<Record<string, (issuer: string) => Authenticator>> = {
  apiKey: () => apiKey(ada),
  bearer: () => bearer(ada),
  jwt: (issuer) => jwt({ issuer, scopes: ["chat"] }),
  oauth2: (issuer) =>
    oauth2({
      issuer,
      scopes: ["chat"],
      flows: { clientCredentials: { tokenUrl: `${issuer}/token`, scopes: { chat: "Talk" } } },
    }),
  openIdConnect: (issuer) => openIdConnect({ issuer, scopes: ["chat"] }),
};

interface LoginProgram extends PeerProgram {
  readonly speaks: Readonly<Partial<Record<Version, readonly BindingName[]>>>;
  /** Schemes for which it sends no credentials. */
  readonly lacks: readonly string[];
  /** Why it cannot read a 1.0 card with requirements. It then gets the 0.3 card. */
  readonly unreadable?: string;
}

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

const clients: readonly LoginProgram[] = [
  {
    name: "Python SDK 1.3.0",
    environment: "python1",
    program: "login_v1.py",
    speaks: { "1.0": all, "0.3": all },
    lacks: [],
  },
  {
    name: "Python SDK 0.3.26",
    environment: "python03",
    program: "login_v03.py",
    // Over REST and gRPC it does not call interceptors, so it sends no credentials.
    speaks: { "0.3": ["JSONRPC"] },
    lacks: [],
  },
  {
    name: "Go SDK 2.3.1",
    environment: "go",
    program: "login-v2",
    speaks: { "1.0": all, "0.3": ["JSONRPC", "GRPC"] },
    lacks: ["openIdConnect"],
    // It expects a list of scopes, but the proto has a message with a list.
    unreadable: "cannot unmarshal object into Go struct field agentCardCompat.securityRequirements.schemes",
  },
];

let provider: TestProvider;
const servers = new Map<string, Server>();
const credentials = new Map<string, string>();
beforeAll(async () => {
  provider = await startProvider();
  for (const [name, make] of Object.entries(schemes)) {
    const options = { port: 0, grpc: true, signals: false, logger: false, store: memoryStore() } as const;
    const server = await serve(agent, { ...options, authenticator: make(provider.issuer) });
    servers.set(name, server);
    const isOurs = name === "apiKey" || name === "bearer";
    credentials.set(name, isOurs ? secret : await clientToken(provider, { resource: server.url, scope: "chat" }));
  }
});
afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.close({ grace: 0 })));
  await provider.close();
});

for (const client of clients) {
  describePeer(client, () => {
    const wires = Object.entries(client.speaks).flatMap(([version, bindings]) =>
      bindings.map((binding) => [version as Version, binding] as const),
    );
    describe.each(wires)("by A2A %s, %s", (version, binding) => {
      let said: ReadonlyMap<string, Said>;
      beforeAll(async () => {
        const each = [...servers].flatMap(([name, { url }]) => [url, name, credentials.get(name) ?? ""]);
        said = await runClient(client, [binding, version, ...each]);
      });

      it("reads our cards, or fails as expected", () => {
        const unread = [...said].filter(([step]) => step.endsWith(" card")).map(([, { text }]) => text);
        const why = expect.stringContaining(client.unreadable ?? "") as unknown;
        expect(unread).toEqual(client.unreadable === undefined ? [] : Object.keys(schemes).map(() => why));
      });

      it.each(Object.keys(schemes))("is accepted only with the right credentials: %s", (name) => {
        const subject = name === "apiKey" || name === "bearer" ? "ada" : "service";
        for (const step of ["none", "wrong"]) {
          const refused = said.get(`${name} ${step}`);
          expect(refused, `${name} ${step}`).toMatchObject({ error: expect.stringMatching(/./) as unknown });
        }
        const right = said.get(`${name} right`);
        const lacks = client.lacks.includes(name);
        expect(right?.result, right?.text).toBe(lacks ? undefined : `You are ${subject}`);
      });
    });
  });
}
