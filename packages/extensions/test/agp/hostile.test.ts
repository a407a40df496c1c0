import { expect, test } from "vitest";
import { agentGateway, agpErrors, type AnnounceRequest, type GatewayPeer } from "../../src/agp/index.ts";
import { RouteTable } from "../../src/agp/table.ts";
import { hasCode, type JsonObject } from "@parley/a2a/internal/model/index";
import { fakeClock } from "@parley/testing";

/* Callers, peers and options that try to exhaust a gateway's time or memory. */

const vendor = { subject: "Vendor" };
const anybody = { mayAnnounce: () => true };
const announced = (capability: string, path = "p", cost = 1): AnnounceRequest => ({
  announcement: { capability, version: "1", cost, policy: {} },
  path,
});

test("reads the constraints of an intent once, not per route", async () => {
  const routes = Array.from({ length: 100 }, (_, at) => ({
    capability: "c",
    version: "1",
    policy: {},
    path: `p${at}`,
  }));
  let listed = 0;
  const policy_constraints = new Proxy<JsonObject>(
    { security_level: 1 },
    {
      ownKeys(target) {
        listed += 1;
        return Reflect.ownKeys(target);
      },
    },
  );
  const gateway = agentGateway({ name: "G", routes });
  const error: unknown = await gateway
    .route({ target_capability: "c", payload: {}, policy_constraints })
    .catch((thrown: unknown) => thrown);
  expect(agpErrors.policyViolation.is(error)).toBe(true);
  expect(listed).toBe(1);
});

test("does not call unresponsive peers for each of a thousand announcements", async () => {
  let calls = 0;
  const never = (): Promise<never> => {
    calls += 1;
    return new Promise(() => {});
  };
  const peers: GatewayPeer[] = [{ name: "P", announce: never, withdraw: never }];
  const gateway = agentGateway({ name: "G", transit: true, policy: anybody, peers });
  for (let at = 0; at < 1000; at += 1) {
    await gateway.announce(announced(`c${at}`), vendor);
    await gateway.withdraw({ capability: `c${at}`, path: "p" }, vendor);
  }
  expect(calls).toBe(256);
});

test.each([[Infinity], [1e9]])("a lifetime of %d seconds does not tell peers without a pause", async (lifetime) => {
  const waits: number[] = [];
  const clock = fakeClock();
  const after = (ms: number, run: () => void) => (waits.push(ms), clock.after(ms, run));
  const stop = agentGateway({ name: "G", lifetime, clock: { ...clock, after } }).start();
  await expect.poll(() => waits.length).toBe(1);
  stop();
  expect(waits[0]).toBeGreaterThan(3_600_000);
  expect(waits[0]).toBeLessThan(2 ** 31);
});

test("announces the highest possible cost", async () => {
  const told: AnnounceRequest[] = [];
  const announce = async (request: AnnounceRequest) => (told.push(request), { accepted: true });
  const peers: GatewayPeer[] = [{ name: "P", announce, withdraw: () => Promise.resolve() }];
  const transitCost = Number.MAX_VALUE;
  const gateway = agentGateway({ name: "G", transit: true, transitCost, policy: anybody, peers });
  await gateway.announce(announced("c", "p", Number.MAX_VALUE), vendor);
  await expect.poll(() => told.length).toBe(1);
  expect((JSON.parse(JSON.stringify(told[0])) as AnnounceRequest).announcement.cost).toBe(Number.MAX_VALUE);
});

test("reports a capability named like a prototype member", async () => {
  const gateway = agentGateway({ name: "G" });
  const sub_intents = [{ target_capability: "__proto__", payload: {} }];
  const report = await gateway.routeAll({ meta_task: "m", origin_squad: "s", sub_intents });
  expect(Object.entries(report)).toEqual([["__proto__", "FAILED"]]);
});

test("a table stays within its limit if the renewed route had expired", () => {
  const clock = fakeClock();
  const table = new RouteTable({ bytes: 1000, bytesPerAnnouncer: 1000 }, clock);
  const add = (size: number): unknown =>
    table.add({
      announcement: { capability: "c", version: "1", policy: { text: "x".repeat(size) } },
      path: "p",
      by: "a",
      via: [],
      lifetime: 10,
    });
  add(700);
  clock.advance(20);
  let thrown: unknown;
  try {
    add(1400);
  } catch (error) {
    thrown = error;
  }
  expect(hasCode(thrown, "TooManyRequests")).toBe(true);
});
