import { auditLog, defineAgent, memoryStore, serve, silentLogger, type Server } from "@parley/node";
import type { Clock } from "@parley/a2a/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { movedClock, schemeCases, type Providers, type SchemeCase } from "./scheme-cases.ts";
import { startProvider } from "./provider.ts";
import { bindings, read, send, versions, type Binding, type Version } from "./wire-call.ts";

/* Every scheme over every binding in both versions, with missing, wrong, expired, insufficient and right credentials. */

const agent = defineAgent({
  name: "Mirror",
  description: "Says who calls",
  version: "1.0.0",
  skills: [{ id: "who", name: "Who", description: "Says who calls", tags: [] }],
  onMessage: (turn) => turn.reply(`You are ${turn.principal.subject}`),
});

const everywhere = bindings.flatMap((binding) => versions.map((version) => [binding, version] as const));

let providers: Providers;
beforeAll(async () => {
  const [jwts, opaque] = await Promise.all([startProvider(), startProvider({ accessTokens: "opaque" })]);
  providers = { jwts, opaque };
});
afterAll(() => Promise.all([providers.jwts.close(), providers.opaque.close()]));

/** Serves during the tests of the current block. */
function serving(scheme: SchemeCase, clock: Clock): () => string {
  let server: Server | undefined;
  beforeAll(async () => {
    const options = {
      port: 0,
      grpc: true,
      signals: false,
      store: memoryStore(),
      logger: false as const,
      audit: auditLog(silentLogger),
      ...(await scheme.options?.()),
    };
    server = await serve(agent, { ...options, authenticator: await scheme.authenticator(clock, providers) });
  });
  afterAll(() => server?.close({ grace: 0 }));
  return () => server?.url ?? expect.fail("The server does not run yet");
}

describe.each(Object.entries(schemeCases))("%s", (_, scheme) => {
  const clock = movedClock();
  const url = serving(scheme, clock);
  const callers = () => scheme.callers(providers);
  const metadata = () =>
    scheme.hasMetadata ? [`resource_metadata="${url()}/.well-known/oauth-protected-resource"`] : [];
  const reaches = ([binding]: readonly [Binding, Version]): boolean => scheme.without?.includes(binding) !== true;

  /** Matches a challenge of the scheme that has these parts. */
  const challengeWith = (...parts: readonly string[]): unknown =>
    expect.toSatisfy(
      (challenge) =>
        typeof challenge === "string" &&
        challenge.startsWith(scheme.challenge) &&
        [...parts, ...metadata()].every((part) => challenge.includes(part)),
      `begins with ${scheme.challenge} and has ${parts.join(" and ")}`,
    );

  test("is on the card, in both versions (A2A 1.0 §4.5)", async () => {
    const cardOf = async (version: Version) =>
      (await read(`${url()}/.well-known/agent-card.json`, version)) as Record<string, Record<string, unknown>>;
    const [member, type] = scheme.onCards;
    const [v1, v03] = [await cardOf("1.0"), await cardOf("0.3")];
    expect(v1["securitySchemes"]?.[scheme.name]).toHaveProperty(member);
    expect(v1["securityRequirements"]).toEqual([{ schemes: { [scheme.name]: { list: ["chat"] } } }]);
    expect(v03["securitySchemes"]?.[scheme.name]).toHaveProperty("type", type);
    expect(v03["security"]).toEqual([{ [scheme.name]: ["chat"] }]);
  });

  test.each(everywhere)("over %s in %s: no credentials", async (binding, version) => {
    const told = await send(url(), binding, version);
    expect(told).toEqual({ refused: "Unauthenticated", challenge: challengeWith() });
    expect(told).not.toHaveProperty("challenge", expect.stringContaining("error="));
  });

  test.each(everywhere.filter(reaches))("over %s in %s: wrong credentials", async (binding, version) => {
    const told = await send(url(), binding, version, await callers().wrong(url()));
    expect(told).toEqual({ refused: "Unauthenticated", challenge: challengeWith('error="invalid_') });
  });

  test.each(everywhere.filter(reaches))("over %s in %s: expired credentials", async (binding, version) => {
    const sent = await callers().expired(url());
    expect(await send(url(), binding, version, sent)).toEqual({ text: `You are ${scheme.subject}` });
    clock.move(3600_000);
    try {
      const told = await send(url(), binding, version, sent);
      expect(told).toEqual({ refused: "Unauthenticated", challenge: challengeWith('error="invalid_') });
    } finally {
      clock.move(0);
    }
  });

  test.each(everywhere.filter(reaches))("over %s in %s: credentials without the scope", async (binding, version) => {
    const told = await send(url(), binding, version, await callers().insufficient(url()));
    const challenge = challengeWith('error="insufficient_scope"', 'scope="chat"');
    expect(told).toEqual({ refused: "PermissionDenied", challenge });
  });

  test.each(everywhere)("over %s in %s: right credentials, if they can be sent", async (binding, version) => {
    const told = await send(url(), binding, version, await callers().right(url()));
    const refused = { refused: "Unauthenticated", challenge: challengeWith() };
    expect(told).toEqual(reaches([binding, version]) ? { text: `You are ${scheme.subject}` } : refused);
  });
});
