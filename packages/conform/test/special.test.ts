import type { Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startDamaged, type Damage } from "./damage.ts";
import { missingUpdate } from "./mutants.ts";
import { startOfficialActs } from "./official.ts";
import { conform, parseSuites, testsOf, type ConformOptions, type TestReport } from "../src/index.ts";
import { credentials, startParley } from "./support.ts";

/**
 * Tests that leave the check to the runner (`runner-special`): their steps pass on everything, but the runner's own check does not. The
 * steps here check as little.
 */

const cardStep = "[{ id: step-1, operation: get_agent_card }]";
const send = (text: string): string =>
  `[{ id: send, operation: send_message, params: { message: { role: ROLE_USER, parts: [{ text: ${text} }] } } }]`;
const push = `[
  { id: create, operation: send_message, params: { message: { role: ROLE_USER, parts: [{ text: tck-long-running }] },
    configuration: { returnImmediately: true } }, capture: { taskId: task.id } },
  { id: set-config, operation: set_push_notification_config, params: { taskId: "{{create.taskId}}",
    pushNotificationConfig: { url: "{{webhookUrl}}", authentication: { scheme: Bearer, credentials: test-token } } } }]`;
const rpc = (method: string): string =>
  `[{ id: raw, raw: { method: POST, path: /, headers: { Content-Type: application/json, A2A-Version: "1.0" },
    body: { jsonrpc: "2.0", id: 1, method: ${method}, params: {} } }, expect: { status: 200 } }]`;
const restCard =
  '[{ id: raw, raw: { method: GET, path: /extendedAgentCard, headers: { A2A-Version: "1.0" } }, expect: { status: 200 } }]';

interface Case {
  readonly id: string;
  readonly steps: string;
  readonly transport?: string;
  readonly server?: "plain" | "guarded" | "official";
  readonly options?: ConformOptions;
  /** The mistake that the check must detect. */
  readonly damage: Damage;
}

const headers = (change: (headers: Record<string, string>) => void): Damage => ({
  answer: (answered) => change(answered.headers),
});
const signedIn: Damage = { ask: (asked) => void (asked.headers["authorization"] = "Bearer mine") };
/** Streams end at the first update. */
const short: Damage = { event: (event, at) => (at === 0 ? [event] : []) };

const cases: readonly Case[] = [
  {
    id: "CARD-CACHE-001",
    steps: cardStep,
    damage: headers((all) => {
      delete all["cache-control"];
      delete all["etag"];
    }),
  },
  { id: "CARD-SCHEMA-001", steps: cardStep, damage: { answer: ({ body }) => void delete body?.description } },
  {
    id: "DM-SERIAL-002",
    steps: send("tck-complete-task"),
    damage: { answer: ({ result }) => void delete result?.task?.status.state },
  },
  {
    id: "REST-CT-001",
    steps: send("tck-complete-task"),
    transport: "rest",
    damage: headers((all) => (all["content-type"] = "application/json")),
  },
  {
    id: "CORE-CTX-001",
    steps: send("tck-complete-task").replace(
      "role:",
      "contextId: client-generated-context-that-should-be-rejected, role:",
    ),
    damage: {
      answer({ result }) {
        if (result?.task !== undefined) result.task.contextId = "another";
      },
    },
  },
  {
    id: "STREAM-MULTI-001",
    steps: send("tck-stream-basic"),
    damage: missingUpdate(),
  },
  {
    id: "STREAM-MULTI-002",
    steps: send("tck-stream-basic"),
    damage: { closed: (_, streams) => streams.forEach((stream) => stream.end()) },
  },
  { id: "STREAM-RESUB-001", steps: send("tck-long-running"), damage: short },
  {
    id: "PUSH-DELIV-001",
    steps: push,
    server: "official",
    damage: { ask: (asked) => asked.remove("authentication") },
  },
  {
    id: "PUSH-DELIV-002",
    steps: push,
    server: "official",
    damage: {
      ask: (asked) => {
        if (asked.get("url") !== undefined) asked.set("url", "http://127.0.0.1:9/nobody");
      },
    },
  },
  {
    id: "CORE-ERR-009",
    steps: send("hello"),
    server: "guarded",
    options: credentials,
    damage: { ask: (asked) => void (asked.headers["authorization"] = "Bearer mine") },
  },
  {
    id: "SEC-AUTH-001",
    steps: rpc("SendMessage"),
    transport: "jsonrpc",
    server: "guarded",
    options: credentials,
    damage: signedIn,
  },
  {
    id: "SEC-AUTH-004",
    steps: rpc("GetTask"),
    transport: "jsonrpc",
    server: "guarded",
    options: credentials,
    damage: signedIn,
  },
  {
    id: "SEC-AUTH-006",
    steps: cardStep,
    transport: "rest",
    server: "guarded",
    options: credentials,
    damage: headers((all) => delete all["www-authenticate"]),
  },
  {
    id: "SEC-EXTCARD-001",
    steps: restCard,
    transport: "rest",
    server: "guarded",
    options: credentials,
    damage: signedIn,
  },
  {
    id: "SEC-EXTCARD-004",
    steps: restCard,
    transport: "rest",
    server: "guarded",
    options: credentials,
    damage: signedIn,
  },
];

const servers: Server[] = [];
const urls = new Map<string, string>();
let official: Awaited<ReturnType<typeof startOfficialActs>>;

beforeAll(async () => {
  for (const method of ["log", "warn", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
  for (const configuration of ["plain", "guarded"] as const) {
    const server = await startParley(configuration);
    servers.push(server);
    urls.set(configuration, server.url);
  }
  official = await startOfficialActs();
  urls.set("official", official.url);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await Promise.all(servers.map((server) => server.close({ grace: 0 })));
  await official.close();
});

async function runOne(
  id: string,
  steps: string,
  transport: string | undefined,
  url: string,
  options: ConformOptions,
): Promise<readonly TestReport[]> {
  const where = transport === undefined ? "" : `transport: [${transport}], `;
  const suites = parseSuites(`acts_version: "1.0"
spec_version: "1.0"
suites: [{ id: s, name: S, tests: [{ id: ${id}, name: N, level: must, ${where}tags: [runner-special], steps: ${steps} }] }]
`);
  return testsOf(await conform(url, { suites, concurrency: 16, ...options }));
}

describe("the runner makes the checks that tests leave to it", () => {
  test.concurrent.each(cases)(
    "$id",
    async ({ id, steps, transport, server = "plain", options = {}, damage }) => {
      const right = await runOne(id, steps, transport, urls.get(server)!, { stepTimeout: 60_000, ...options });
      expect(
        right.filter(({ result }) => result !== "skip").map(({ result, failure }) => failure ?? result),
      ).not.toEqual([]);
      expect(right.filter(({ result }) => result === "fail" || result === "error")).toEqual([]);
      const damaged = await startDamaged(urls.get(server)!, damage);
      try {
        const wrong = await runOne(id, steps, transport, damaged.url, { stepTimeout: 12_000, ...options });
        expect(wrong.map(({ result }) => result)).toContain("fail");
        expect(wrong.map(({ result }) => result)).not.toContain("pass");
      } finally {
        await damaged.close();
      }
    },
    180_000,
  );
});

test.each([
  ["CARD-LATER-001", /leaves its check to the runner/],
  ["SEC-PUSH-002", /tests clients, not servers/],
  ["SEC-AUTH-002", /needs a caller without permission/],
])("%s is skipped, with the reason", async (id, reason) => {
  const entries = await runOne(id, cardStep, undefined, urls.get("plain")!, {});
  expect(entries.map(({ result }) => result)).toEqual(entries.map(() => "skip"));
  expect(entries[0]?.skipped?.reason).toMatch(reason);
});
