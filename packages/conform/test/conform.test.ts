import { defineAgent, memoryStore, serve, type Server } from "@parley/node";
import { jsonRpcBinding, type ClientBinding } from "@parley/a2a";
import { codecV1 } from "@parley/a2a/protocol";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  conform,
  ConformError,
  type ConformOptions,
  describeVerdict,
  failuresOf,
  parseSuites,
  testsOf,
  textReport,
  type Progress,
  type TestReport,
} from "../src/index.ts";
import { startDamaged, type Json } from "./damage.ts";
import { startParley } from "./support.ts";

let server: Server;
beforeAll(async () => void (server = await startParley("plain")));
afterAll(() => server.close({ grace: 0 }));

const card = "steps: [{ id: card, operation: get_agent_card }]";
/** Tests from their members, each without id, name and level. */
function suitesOf(...tests: readonly string[]): ReturnType<typeof parseSuites> {
  const list = tests.map((members, at) => `{ id: API-${at + 1}, name: test ${at + 1}, level: must, ${members} }`);
  return parseSuites(
    `acts_version: "1.0"\nspec_version: "1.0"\nsuites: [{ id: api, name: API, tests: [${list.join(", ")}] }]`,
  );
}

describe("a report", () => {
  test("has the verdict, bindings, suites, tests, requirements, and the place where a test failed", async () => {
    const suites = suitesOf(
      `spec_ref: "§8.2", requirements: [5.2-declared], tags: [one], ${card}`,
      "steps: [{ id: card, operation: get_agent_card, expect: { body: { skills: { items: { id: other } } } } }]",
      "preconditions: { capabilities: { pushNotifications: true } }, steps: [{ id: a, operation: get_agent_card }]",
    );
    const report = await conform(server.url, { suites, bindings: ["JSONRPC", "GRPC"] });
    expect(report).toMatchObject({
      url: server.url,
      card: { name: "ACTS agent" },
      startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      duration: expect.any(Number),
      verdict: { result: "broken", asked: 4, held: 2, broken: 2, notAsked: 3 },
      bindings: [
        { binding: "JSONRPC", transport: "jsonrpc", version: "1.0", url: server.url },
        { binding: "GRPC", transport: "grpc", version: "1.0" },
      ],
      notRun: expect.arrayContaining([{ binding: "HTTP+JSON 1.0", reason: "not requested", musts: 3 }]),
    });
    const [first, second, third] = report.bindings[0]?.suites[0]?.tests ?? [];
    expect(first).toEqual({
      id: "API-1",
      name: "test 1",
      level: "must",
      section: "§8.2",
      requirements: ["5.2-declared"],
      tags: ["one"],
      behaviors: [],
      result: "pass",
      duration: expect.any(Number),
      steps: [{ id: "card", result: "pass", duration: expect.any(Number) }],
    });
    expect(second?.failure).toEqual({
      message: expect.stringContaining("skills[0].id"),
      stepId: "card",
      path: "skills[0].id",
      expected: '"other"',
      actual: '"acts"',
    });
    expect(third?.skipped).toEqual({
      reason: "only for agents with the capability pushNotifications: true",
      applies: false,
    });
    expect(failuresOf(report, "must").map(({ binding, id, path }) => `${binding} ${id} ${path}`)).toEqual([
      "JSONRPC API-2 skills[0].id",
      "GRPC API-2 skills[0].id",
    ]);
    // Plain data: it can be stored, and reported on later.
    expect(textReport(JSON.parse(JSON.stringify(report)))).toBe(textReport(report));
  });

  test("names the option that would let a test run", async () => {
    const suites = suitesOf(
      "steps: [{ id: a, operation: list_tasks, credentials: other }]",
      `runner_requirements: [auth_credentials], ${card}`,
      `requires_behaviors: [mine], ${card}`,
      `tags: [other], ${card}`,
    );
    const options = { suites, behaviors: [], bindings: ["JSONRPC"], filter: ["API-1", "api-2", "*-3"] };
    const { verdict } = await conform(server.url, options);
    expect(verdict.reasons.map(({ reason, option }) => [reason, option])).toEqual(
      expect.arrayContaining([
        ["needs a second caller", "otherHeaders"],
        ["needs credentials", "headers"],
        ["the agent does not offer the test behavior", "behaviors"],
        ["excluded by the test selection", "choice"],
      ]),
    );
    expect(describeVerdict(verdict)).toMatch(/^Untested: no test ran; \d+ MUST checks that may apply did not run\.$/);
  });
});

describe("while it runs", () => {
  test("`onTest` is called after each test", async () => {
    const told: [TestReport, Progress][] = [];
    const suites = suitesOf(card, card);
    const report = await conform(server.url, { suites, onTest: (...one) => void told.push(one) });
    expect(told.map(([one]) => one)).toHaveLength(6);
    expect(new Set(told.map(([one]) => one))).toEqual(new Set(testsOf(report)));
    expect(told.map(([, { done, total }]) => `${done}/${total}`)).toEqual(["1/6", "2/6", "3/6", "4/6", "5/6", "6/6"]);
    expect(new Set(told.map(([, { binding }]) => binding.binding))).toEqual(new Set(["JSONRPC", "HTTP+JSON", "GRPC"]));
  });

  test("it can be aborted: it rejects with the signal's reason", async () => {
    const stopped = new Error("enough");
    const controller = new AbortController();
    const suites = suitesOf(card, "steps: [{ id: wait, delay_ms: 3600000, operation: get_agent_card }]");
    const run = conform(server.url, { suites, signal: controller.signal, onTest: () => controller.abort(stopped) });
    await expect(run).rejects.toBe(stopped);
    await expect(conform(server.url, { suites, signal: controller.signal })).rejects.toBe(stopped);
  });

  test("an error that `onTest` throws ends it", async () => {
    const suites = suitesOf(card, "steps: [{ id: wait, delay_ms: 3600000, operation: get_agent_card }]");
    const run = conform(server.url, {
      suites,
      onTest() {
        throw new Error("mine");
      },
    });
    await expect(run).rejects.toThrow("mine");
  });
});

describe("an agent with its own wording", () => {
  const agent = defineAgent({
    name: "Own words",
    description: "Knows none of the prefixes of ACTS.",
    version: "1.0.0",
    skills: [{ id: "say", name: "Say", description: "Says.", tags: ["say"] }],
    async *onMessage(turn) {
      if (turn.text.startsWith("please fail")) yield turn.failed("As you wish.");
      else yield turn.completed("Done.");
    },
  });

  test("gets the messages of tests in its wording, over calls and raw requests", async () => {
    const own = await serve(agent, { port: 0, grpc: true, store: memoryStore(), signals: false, logger: false });
    onTestFinished(() => own.close({ grace: 0 }));
    const send = "params: { message: { role: ROLE_USER, parts: [{ text: tck-task-failure now }] } }";
    const failed = "expect: { body: { task: { status: { state: TASK_STATE_FAILED } } } }";
    const suites = suitesOf(
      `requires_behaviors: [tck-task-failure], steps: [{ id: a, operation: send_message, ${send}, ${failed} }]`,
      `requires_behaviors: [tck-task-failure], transport: [rest], steps: [{ id: a, raw: { method: POST, path: "/message:send",
        headers: { content-type: application/json, a2a-version: "1.0" },
        body: { message: { role: ROLE_USER, parts: [{ text: tck-task-failure }] } } }, ${failed} }]`,
      `requires_behaviors: [tck-cancel], ${card}`,
    );
    const report = await conform(own.url, { suites, behaviors: { "tck-task-failure": "please fail" } });
    expect(failuresOf(report)).toEqual([]);
    expect(testsOf(report).filter(({ result }) => result === "pass")).toHaveLength(4);
    expect(report.verdict.reasons).toMatchObject([{ option: "behaviors", checks: 3 }]);
  });
});

describe("a custom binding (A2A 1.0 §5.8, §12)", () => {
  const name = "https://example.com/bindings/letters";
  /** The card with a custom interface, which really is JSON-RPC. */
  async function start(): Promise<string> {
    const damaged = await startDamaged(server.url, {
      answer({ body }: { body: Json }, { operation }) {
        if (operation !== "AgentCard" || typeof body !== "object") return;
        const [{ url }] = body.supportedInterfaces;
        body.supportedInterfaces.push({
          url: url.replace("http:", "letters:"),
          protocolBinding: name,
          protocolVersion: "1.0",
        });
      },
    });
    onTestFinished(() => damaged.close());
    return damaged.url;
  }
  const calls: string[] = [];
  const letters: ClientBinding = {
    name,
    versions: ["1.0"],
    open({ url, ...target }, version, host, agentCard) {
      calls.push(url);
      return jsonRpcBinding([codecV1]).open(
        { ...target, url: url.replace("letters:", "http:") },
        version,
        host,
        agentCard,
      );
    },
  };

  test("is tested with its author's client, by all tests that do not depend on a binding", async () => {
    const url = await start();
    const options = { bindings: [name], clientBindings: [letters], versions: ["1.0"], stepTimeout: 60_000 };
    const report = await conform(url, { ...options, concurrency: 16 });
    expect(calls).not.toEqual([]);
    expect(report.bindings.map(({ binding, transport }) => [binding, transport])).toEqual([[name, name]]);
    expect(failuresOf(report)).toEqual([]);
    const passed = testsOf(report).filter(({ result }) => result === "pass");
    expect(passed.length).toBeGreaterThan(40);
    const onlyFor = testsOf(report).find(({ id }) => id === "JSONRPC-ERR-101");
    expect(onlyFor?.skipped).toMatchObject({ reason: "only for jsonrpc", applies: false });
  });

  test("is reported as not run without a client", async () => {
    const url = await start();
    const report = await conform(url, { suites: suitesOf(card) });
    const custom = { binding: `${name} 1.0`, reason: "not supported by this runner", musts: 1 };
    expect(report.notRun).toContainEqual(custom);
    expect(report.verdict.result).toBe("partial");
  });
});

describe("an impossible run rejects with the reason", () => {
  test.each([
    ["an option out of bounds", { concurrency: 65 }, "InvalidOptions", /concurrency must be an integer from 1 to 64/],
    ["a limit of zero", { timeout: 0 }, "InvalidOptions", /timeout must be an integer/],
    ["half a byte", { maxBytes: 0.5 }, "InvalidOptions", /maxBytes/],
    ["an option with another spelling", { behaviours: [] }, "InvalidOptions", /unknown option behaviours/],
    ["a text in place of a list", { filter: "CARD-*" }, "InvalidOptions", /filter must be an array of strings/],
    ["an unknown level", { level: "can" }, "InvalidOptions", /level must be must, should or may/],
    ["an invalid header", { headers: { a: 1 } }, "InvalidOptions", /headers must be an object with string values/],
    ["a webhook with TLS", { webhook: "https://example.com" }, "InvalidOptions", /does not support TLS/],
    ["no selected test", { tags: ["none"] }, "InvalidOptions", /no tests selected/],
    [
      "no selected binding",
      { suites: suitesOf(card), bindings: ["X"] },
      "NothingToTest",
      /nothing on the card can be tested/,
    ],
  ])("%s", async (_, options, code, message) => {
    const error = await conform(server.url, options as ConformOptions).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ConformError);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test("an invalid URL", async () => {
    await expect(conform("localhost:4000")).rejects.toMatchObject({ code: "InvalidOptions" });
  });

  test("a text of tests with an unknown key, with its place", () => {
    expect(() => parseSuites('{ acts_version: "1.0", spec_version: "1.0", suits: [] }', "mine")).toThrow(
      expect.objectContaining({ code: "InvalidTests", message: expect.stringMatching(/^mine\.suites is missing/) }),
    );
    expect(() => suitesOf("expects: {}, " + card)).toThrow(
      /the tests\.suites\[0\]\.tests\[0\]\.expects is not a known key/,
    );
    expect(() => parseSuites("{")).toThrow(ConformError);
  });
});
