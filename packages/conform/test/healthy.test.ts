import { defineAgent, memoryStore, serve, type Agent, type ServeOptions } from "@parley/node";
import { anyone, anyOf, bearer } from "@parley/a2a/auth";
import { describe, expect, onTestFinished, test } from "vitest";
import { actsAgent } from "../../../kits/agents/acts.ts";
import { failuresOf, parseSuites, type ConformOptions } from "../src/index.ts";
import { conform, credentials, idsOf } from "./support.ts";

/* Healthy agents of every kind pass `conform(url)`, even if they were not made for tests. */

/** An agent that would fail every test of a behavior: it answers each message with the same question. */
function ordinary(more: Partial<Parameters<typeof defineAgent>[0]> = {}): Agent {
  return defineAgent({
    name: "Travel desk",
    description: "Books trips.",
    version: "1.0.0",
    skills: [
      { id: "book", name: "Book", description: "Books a trip.", tags: ["travel"], examples: ["A flight to Helsinki"] },
    ],
    async *onMessage(turn) {
      yield turn.inputRequired("Where do you want to go?");
    },
    ...more,
  });
}

async function started(agent: Parameters<typeof serve>[0], options: ServeOptions = {}): Promise<string> {
  const quiet = { port: 0, store: memoryStore(), signals: false, logger: false } as const;
  const server = await serve(agent, { ...quiet, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server.agents[0]?.cardUrl ?? server.url;
}

const known = bearer({ mine: { subject: "me" }, theirs: { subject: "them" } });
const extension = { uri: "https://example.com/required/v1", description: "Required of every request", required: true };

const kinds: Readonly<Record<string, () => Promise<string>>> = {
  "asks back": () => started(ordinary()),
  "answers with messages": () => started(ordinary({ onMessage: async (turn) => turn.reply("Hello.") })),
  "does not stream": () => started(ordinary({ capabilities: { streaming: false } })),
  "reads only images": () => started(ordinary({ defaultInputModes: ["image/png"] })),
  "requires an extension": () => started(ordinary({ capabilities: { extensions: [extension] } })),
  "sends push notifications": () => started(ordinary(), { push: true }),
  "wants a version in each request": () => started(ordinary(), { strictVersion: true }),
  "speaks 1.0 only": () => started(ordinary(), { versions: ["1.0"] }),
  "speaks 0.3 only": () => started(ordinary(), { versions: ["0.3"] }),
  "has a tenant": () => started([{ agent: ordinary(), tenant: "north" }]),
  "requires credentials": () => started(ordinary(), { authenticator: known }),
  "has an extended card": () =>
    started([{ agent: ordinary(), extendedCard: (card) => card }], { authenticator: anyOf(known, anyone()) }),
  "limits requests, with short pauses": () =>
    started(ordinary(), { limits: { rate: { address: { requests: 40, per: 1_000 } } } }),
  "limits requests, with long pauses": () =>
    started(ordinary(), { limits: { rate: { address: { requests: 20, per: 3_600_000 } } } }),
};

describe.each(Object.entries(kinds))("a healthy agent that %s", (_, start) => {
  test.each<[string, ConformOptions]>([
    ["without options", {}],
    ["with credentials", credentials],
  ])("fails no test, %s", async (_name, options) => {
    const { report } = await conform(await start(), options);
    expect(failuresOf(report)).toEqual([]);
    expect(report.verdict).toMatchObject({ result: "partial", broken: 0 });
    expect(report.verdict.asked).toBeGreaterThan(2);
  });
});

test("no message reaches an agent that offers no test behavior", async () => {
  const heard: string[] = [];
  const url = await started(
    ordinary({
      async *onMessage(turn) {
        heard.push(turn.text);
        yield turn.inputRequired("Where?");
      },
    }),
  );
  await conform(url);
  expect(heard).toEqual([]);
});

test("without credentials, an agent that requires them only gets requests for its card", async () => {
  const url = await started(ordinary(), { authenticator: known });
  const { report, bindings } = await conform(url, { versions: ["1.0"] });
  const asked = Object.values(bindings).flatMap((tests) => tests.filter(({ result }) => result !== "skip"));
  expect([...new Set(asked.map(({ id }) => id.split("-")[0]))]).toEqual(["CARD"]);
  expect(report.verdict.reasons).toContainEqual({
    reason: "the card requires credentials",
    option: "headers",
    checks: expect.any(Number),
  });
});

describe("the tested behaviors", () => {
  const wants = (behavior: string): string =>
    `{ id: ${behavior.toUpperCase()}, name: x, level: must, requires_behaviors: [${behavior}],
       steps: [{ id: a, operation: get_agent_card }] }`;
  const suites = parseSuites(
    `acts_version: "1.0"\nspec_version: "1.0"\nsuites: [{ id: s, name: S, tests: [${["tck-cancel", "tck-can"].map(wants).join(", ")}] }]`,
  );
  const skill = { name: "Test", description: "Tests.", tags: [] };
  const offering = [
    { ...skill, id: "tck-cancel" },
    { ...skill, id: "other", examples: ["tck-complete-task now", "hello tck-multi-turn"] },
  ];

  test("are the ids of a card's skills, and the first words of their examples", async () => {
    const { bindings } = await conform(await started(ordinary({ skills: offering })), { bindings: ["JSONRPC"] });
    const reasons = bindings["jsonrpc"]?.flatMap(({ skipped }) => (skipped === undefined ? [] : [skipped.reason]));
    expect(reasons).toContain("the agent does not offer the test behavior tck-multi-turn");
    expect(reasons).not.toContain("the agent does not offer the test behavior tck-cancel");
    expect(reasons).not.toContain("the agent does not offer the test behavior tck-complete-task");
  });

  test.each<[string, ConformOptions, readonly string[]]>([
    ["are by default all, if the caller chose the tests", { suites }, ["TCK-CANCEL", "TCK-CAN"]],
    ["are given by a list", { suites, behaviors: ["tck-can"] }, ["TCK-CAN"]],
    ["none", { suites, behaviors: [] }, []],
    ["all", { suites, behaviors: "all" }, ["TCK-CANCEL", "TCK-CAN"]],
  ])("%s", async (_, options, passed) => {
    const { bindings } = await conform(await started(ordinary()), { ...options, bindings: ["JSONRPC"] });
    expect(idsOf(bindings["jsonrpc"], "pass")).toEqual(passed);
  });

  test("the agent for ACTS offers every behavior that our own tests need", async () => {
    const { report } = await conform(await started(actsAgent({ work: 10 })), { filter: ["CARD-*"] });
    const { bindings } = await conform(await started(ordinary()), {});
    const needed = new Set(Object.values(bindings).flatMap((tests) => tests.flatMap(({ behaviors }) => behaviors)));
    const [offered] = report.card["skills"] as unknown as readonly { readonly examples: readonly string[] }[];
    expect(offered?.examples).toEqual(expect.arrayContaining([...needed]));
  });
});

test("a test that expects HTTP 429 gets it, and any other counts as not run", async () => {
  const url = await started(ordinary(), { limits: { rate: { address: { requests: 3, per: 3_600_000 } } } });
  const step = (id: string, status: number): string =>
    `{ id: ${id}, raw: { method: GET, path: /tasks, headers: { A2A-Version: "1.0" } }, expect: { status: ${status} } }`;
  const suites = parseSuites(
    `acts_version: "1.0"\nspec_version: "1.0"\nsuites: [{ id: s, name: S, tests: [
      { id: LIMIT-1, name: x, level: must, transport: [rest], steps: [${step("a", 200)}, ${step("b", 200)}, ${step("c", 200)}, ${step("d", 429)}] },
      { id: LIMIT-2, name: x, level: must, transport: [rest], steps: [${step("a", 200)}] }] }]`,
  );
  const { bindings } = await conform(url, { suites, bindings: ["HTTP+JSON"], concurrency: 1 });
  expect(bindings["rest"]).toMatchObject([
    { id: "LIMIT-1", result: "pass" },
    { id: "LIMIT-2", result: "skip", skipped: { reason: "the server limits the request rate", applies: true } },
  ]);
});
