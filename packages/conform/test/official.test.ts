import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startOfficialActs } from "./official.ts";
import { conform, idsOf, type Outcome } from "./support.ts";

/**
 * Our suite against the official SDK 1.3.0: what it is known to do otherwise than A2A 1.0.1, and nothing else. A new
 * version that does better, or a check that grew too strict, shows here.
 */
const everywhere = [
  // A conditional request gets the whole card (§8.6.2).
  "CARD-CACHE-103",
  // Parts are not looked at: none, an empty one, two contents in one, text in place of the list (§3.3.2, §5.7).
  "CORE-VALID-101",
  "CORE-VALID-104",
  "CORE-VALID-105",
  "CORE-VALID-107",
  "ERR-INFO-103",
  "ERR-INFO-104",
  "STREAM-VALID-101",
  // A role that there is not is taken (§4.1.5), and so is a negative historyLength (§3.2.4).
  "CORE-VALID-103",
  "CORE-VALID-108",
  // A task that changed at the very time that was asked for is left out, which the proto includes.
  "CORE-LIST-106",
  // A message that is sent again begins a second task, as it may (§3.3.1).
  "CORE-TASK-108",
  // 1.0.7 is refused where 1.0 is spoken (§3.6).
  "VER-NEG-102",
];
const overJsonRpc = [
  // A negative historyLength of GetTask, an unknown state of ListTasks are let through.
  "CORE-HIST-104",
  "CORE-LIST-110",
  // A request without a method has invalid parameters.
  "JSONRPC-ERR-102",
];

let server: Awaited<ReturnType<typeof startOfficialActs>>;
let outcome: Outcome;
beforeAll(async () => {
  // The SDK's server tells the console of what it answers and sends.
  for (const method of ["log", "warn", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
  server = await startOfficialActs();
  outcome = await conform(server.url, { stepTimeout: 100_000, behaviors: "all" });
}, 180_000);
afterAll(async () => {
  vi.restoreAllMocks();
  await server.close();
});

test.each([
  ["jsonrpc", [...everywhere, ...overJsonRpc]],
  ["rest", everywhere],
  // What protobuf cannot say need not be refused.
  ["grpc", ["CORE-HIST-104", ...everywhere.filter((id) => !/^CORE-VALID-10[357]$/.test(id))]],
])("over %s the official SDK fails where it departs from the specification, and nowhere else", (transport, known) => {
  const failed = idsOf(outcome.bindings[transport], "fail");
  expect([...failed].sort()).toEqual([...known].sort());
  expect(idsOf(outcome.bindings[transport], "error")).toEqual([]);
  expect(idsOf(outcome.bindings[transport], "pass").length).toBeGreaterThan(50);
  expect(outcome.report.verdict.result).toBe("broken");
});

test("webhooks are delivered to the runner's own receiver, with their credentials (§4.3.3)", () => {
  const ids = idsOf(outcome.bindings["jsonrpc"], "pass").filter((id) => id.startsWith("PUSH-"));
  expect(ids).toEqual([
    "PUSH-CFG-101",
    "PUSH-CFG-102",
    "PUSH-CFG-103",
    "PUSH-DELIV-101",
    "PUSH-DELIV-102",
    "PUSH-DELIV-103",
    "PUSH-DELIV-104",
  ]);
});
