import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startOfficialActs } from "./official.ts";
import { conform, idsOf, type Outcome } from "./support.ts";

/**
 * Our suite finds the known deviations of the official SDK 1.3.0 from A2A 1.0.1, and no others. An improved SDK, or a check that became too
 * strict, fails this test.
 */
const everywhere = [
  // A conditional request gets the whole card (§8.6.2).
  "CARD-CACHE-103",
  // It accepts invalid parts: an empty list, an empty part, a part with two contents, and text instead of a list (§3.3.2, §5.7).
  "CORE-VALID-101",
  "CORE-VALID-104",
  "CORE-VALID-105",
  "CORE-VALID-107",
  "ERR-INFO-103",
  "ERR-INFO-104",
  "STREAM-VALID-101",
  // It accepts an unknown role (§4.1.5) and a negative historyLength (§3.2.4).
  "CORE-VALID-103",
  "CORE-VALID-108",
  // It omits a task that changed exactly at the requested time. The proto includes it.
  "CORE-LIST-106",
  // A repeated message begins a second task, which is allowed (§3.3.1).
  "CORE-TASK-108",
  // It rejects 1.0.7, although it supports 1.0 (§3.6).
  "VER-NEG-102",
];
const overJsonRpc = [
  // It accepts a negative historyLength of GetTask, and an unknown state of ListTasks.
  "CORE-HIST-104",
  "CORE-LIST-110",
  // It reports invalid parameters for a request without a method.
  "JSONRPC-ERR-102",
];

let server: Awaited<ReturnType<typeof startOfficialActs>>;
let outcome: Outcome;
beforeAll(async () => {
  // The SDK's server logs its answers and deliveries to the console.
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
  // Values that protobuf cannot express need not be rejected.
  ["grpc", ["CORE-HIST-104", ...everywhere.filter((id) => !/^CORE-VALID-10[357]$/.test(id))]],
])("over %s, the official SDK fails only where it deviates from the specification", (transport, known) => {
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
