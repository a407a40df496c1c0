import type { Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { conform, credentials, idsOf, startParley, wrong, type Configuration, type Outcome } from "./support.ts";

const configurations: readonly Configuration[] = ["plain", "silent", "guarded", "required"];
const servers: Server[] = [];
const outcomes = new Map<Configuration, Outcome>();

beforeAll(async () => {
  // All of them at once are a lot of work for two cores, so the agents work longer than elsewhere.
  await Promise.all(
    configurations.map(async (configuration) => {
      const server = await startParley(configuration, 8_000);
      servers.push(server);
      outcomes.set(
        configuration,
        await conform(server.url, { stepTimeout: 100_000, ...(configuration === "guarded" ? credentials : {}) }),
      );
    }),
  );
}, 180_000);
afterAll(() => Promise.all(servers.map((server) => server.close({ grace: 0 }))));

describe.each(configurations)("our own suite against our own server, %s", (configuration) => {
  test.each([
    ["jsonrpc", 50],
    ["rest", 50],
    ["grpc", 40],
    ["jsonrpc 0.3", 10],
    ["rest 0.3", 10],
    ["grpc 0.3", 9],
  ])("conforms over %s, at every level", (transport, least) => {
    const { bindings } = outcomes.get(configuration)!;
    expect(wrong(bindings[transport])).toEqual([]);
    expect(idsOf(bindings[transport], "pass").length).toBeGreaterThan(least);
  });

  test("breaks no MUST", () => {
    expect(outcomes.get(configuration)!.report.verdict).toMatchObject({ broken: 0 });
  });
});

test("every test of the suite runs against one of the servers, except tests of webhooks, which it does not send yet", () => {
  const all = [...outcomes.values()].flatMap(({ bindings }) => Object.values(bindings).flat());
  const passed = new Set(all.filter(({ result }) => result === "pass").map(({ id }) => id));
  const never = [...new Set(all.map(({ id }) => id))].filter((id) => !passed.has(id));
  expect(never.filter((id) => !/^PUSH-(?:CFG|DELIV)-/.test(id))).toEqual([]);
});

test("a card with an empty alternative accepts callers without credentials, and only the other tests apply (§4.4.1, §7.4)", async () => {
  const server = await startParley("open");
  onTestFinished(() => server.close({ grace: 0 }));
  const filter = ["SEC-*"];
  const { report, bindings } = await conform(server.url, { ...credentials, filter });
  expect(report.verdict).toMatchObject({ broken: 0 });
  for (const [transport, tests] of Object.entries(bindings)) {
    expect(wrong(tests), transport).toEqual([]);
    expect(idsOf(tests, "skip"), transport).toContain("SEC-AUTH-101");
    expect(idsOf(tests, "pass"), transport).toEqual(
      expect.arrayContaining(["SEC-AUTH-102", "SEC-AUTH-104", "SEC-OWN-101"]),
    );
  }
});
