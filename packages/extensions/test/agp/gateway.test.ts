import { describe, expect, test } from "vitest";
import {
  agentGateway,
  agpErrors,
  type AgentGateway,
  type AgentGatewayOptions,
  type AnnounceRequest,
  type GatewayPeer,
} from "../../src/agp/index.ts";
import { hasCode } from "@parley/a2a/internal/model/index";
import { fakeClock } from "@parley/testing";

const squad = { subject: "Engineering" };
const other = { subject: "Vendor" };
/** Each caller may announce paths that begin with its name. */
const policy: AgentGatewayOptions["policy"] = {
  mayAnnounce: ({ subject }, { path }) => path.startsWith(`${subject}/`),
};

function announced(
  capability: string,
  path: string,
  more: Partial<AnnounceRequest> & { cost?: number } = {},
): AnnounceRequest {
  const { cost = 1, ...rest } = more;
  return { announcement: { capability, version: "1.0", cost, policy: {} }, path, ...rest };
}

const intent = (target_capability: string) => ({ target_capability, payload: {} });

async function outcomeOf(gateway: AgentGateway, capability: string, via: readonly string[] = []): Promise<string> {
  return gateway.route(intent(capability), via).then(
    ({ path }) => path,
    (thrown: unknown) => Object.entries(agpErrors).find(([, error]) => error.is(thrown))?.[0] ?? String(thrown),
  );
}

describe("permission to announce", () => {
  test("is given per caller and path, by default to nobody", async () => {
    const gateway = agentGateway({ name: "G", policy });
    expect(await gateway.announce(announced("vm", "Engineering/vm"), squad)).toMatchObject({ accepted: true });
    const denied = await gateway
      .announce(announced("vm", "Engineering/vm", { cost: 0 }), other)
      .catch((error: unknown) => error);
    expect(hasCode(denied, "PermissionDenied")).toBe(true);
    await expect(agentGateway({ name: "G" }).announce(announced("vm", "Engineering/vm"), squad)).rejects.toMatchObject({
      code: "PermissionDenied",
    });
    expect((await gateway.routes()).routes).toEqual({ vm: [{ path: "Engineering/vm", cost: 1, policy: {} }] });
  });

  test("also applies to withdrawals, and only to one's own routes", async () => {
    const gateway = agentGateway({ name: "G", policy: { mayAnnounce: () => true } });
    await gateway.announce(announced("vm", "shared"), squad);
    expect(await gateway.withdraw({ capability: "vm", path: "shared" }, other)).toBe(false);
    expect(await outcomeOf(gateway, "vm")).toBe("shared");
    expect(await gateway.withdraw({ capability: "vm", path: "shared" }, squad)).toBe(true);
    expect(await gateway.withdraw({ capability: "vm", path: "shared" }, squad)).toBe(false);
    expect(await outcomeOf(gateway, "vm")).toBe("routeNotFound");
    const strict = agentGateway({ name: "G", policy });
    await expect(strict.withdraw({ capability: "vm", path: "Engineering/vm" }, other)).rejects.toMatchObject({
      code: "PermissionDenied",
    });
  });

  test("distinguishes callers with the same name in two organizations", async () => {
    const gateway = agentGateway({ name: "G", policy: { mayAnnounce: () => true } });
    await gateway.announce(announced("vm", "p"), { subject: "a", organization: "one" });
    expect(await gateway.withdraw({ capability: "vm", path: "p" }, { subject: "a", organization: "two" })).toBe(false);
  });

  test("does not depend on permission to read the routes", async () => {
    const gateway = agentGateway({ name: "G", policy: { mayReadRoutes: ({ subject }) => subject === "auditor" } });
    await expect(gateway.routes(undefined, squad)).rejects.toMatchObject({ code: "PermissionDenied" });
    expect(await gateway.routes(undefined, { subject: "auditor" })).toEqual({ routes: {} });
  });
});

describe("a route", () => {
  test("expires, and is new when announced again (AGP §5)", async () => {
    const clock = fakeClock();
    const gateway = agentGateway({ name: "G", clock, lifetime: 60 });
    const request = announced("vm", "p");
    expect(await gateway.announce(request)).toEqual({ accepted: true, expires_in: 60 });
    clock.advance(59_999);
    expect(await outcomeOf(gateway, "vm")).toBe("p");
    clock.advance(1);
    expect(await outcomeOf(gateway, "vm")).toBe("tableStale");
    expect((await gateway.routes()).routes).toEqual({});
    await gateway.announce(request);
    expect(await outcomeOf(gateway, "vm")).toBe("p");
  });

  test("lives as long as its announcer says, up to the gateway's limit", async () => {
    const clock = fakeClock();
    const gateway = agentGateway({ name: "G", clock, lifetime: 60 });
    expect(await gateway.announce(announced("a", "p", { expires_in: 5 }))).toMatchObject({ expires_in: 5 });
    expect(await gateway.announce(announced("b", "p", { expires_in: 10 ** 9 }))).toMatchObject({ expires_in: 60 });
    clock.advance(5000);
    expect([await outcomeOf(gateway, "a"), await outcomeOf(gateway, "b")]).toEqual(["tableStale", "p"]);
  });

  test("that expired hides neither a live route nor the error for an unknown capability", async () => {
    const clock = fakeClock();
    const gateway = agentGateway({ name: "G", clock, lifetime: 60 });
    await gateway.announce(announced("vm", "cheap", { cost: 0, expires_in: 1 }));
    await gateway.announce(announced("vm", "dear"));
    clock.advance(1000);
    expect(await outcomeOf(gateway, "vm")).toBe("dear");
    expect(await outcomeOf(gateway, "nothing")).toBe("routeNotFound");
  });

  test("of the gateway itself never expires", async () => {
    const clock = fakeClock();
    const own = { capability: "vm", version: "1", policy: {}, path: "own" };
    const gateway = agentGateway({ name: "G", clock, routes: [own] });
    clock.advance(10 ** 12);
    expect(await outcomeOf(gateway, "vm")).toBe("own");
  });
});

describe("a stale table (AGP_TABLE_STALE)", () => {
  test("is refreshed once for all waiting intents, which then find their route", async () => {
    const clock = fakeClock();
    let refreshed = 0;
    const gateway: AgentGateway = agentGateway({
      name: "G",
      clock,
      lifetime: 60,
      refresh: async ({ capability }) => {
        refreshed += 1;
        await gateway.announce(announced(capability, "fresh"));
      },
    });
    await gateway.announce(announced("vm", "old"));
    clock.advance(60_000);
    expect(await Promise.all([outcomeOf(gateway, "vm"), outcomeOf(gateway, "vm")])).toEqual(["fresh", "fresh"]);
    expect(refreshed).toBe(1);
  });

  test("that cannot be refreshed is an error, without an immediate retry", async () => {
    const clock = fakeClock();
    let refreshed = 0;
    const gateway = agentGateway({
      name: "G",
      clock,
      lifetime: 1,
      refresh: () => {
        refreshed += 1;
        return Promise.reject(new Error("down"));
      },
    });
    await gateway.announce(announced("vm", "old"));
    clock.advance(1000);
    for (let count = 0; count < 5; count += 1) expect(await outcomeOf(gateway, "vm")).toBe("tableStale");
    expect(refreshed).toBe(1);
    clock.advance(10_000);
    expect(await outcomeOf(gateway, "vm")).toBe("tableStale");
    expect(refreshed).toBe(2);
    const error = await gateway.route(intent("vm")).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ retryAfter: 10, metadata: { target_capability: "vm" } });
  });
});

describe("the table", () => {
  test("is limited in bytes: an announcer with a full share is rejected, without affecting others", async () => {
    const gateway = agentGateway({ name: "G", policy: { mayAnnounce: () => true }, tableBytes: 64 << 10 });
    let count = 0;
    const flood = async (): Promise<void> => {
      for (; count < 1000; count += 1) await gateway.announce(announced(`${count}-${"x".repeat(200)}`, "p"), other);
    };
    await expect(flood()).rejects.toMatchObject({ code: "TooManyRequests" });
    expect(count).toBeLessThan(64);
    expect(count).toBeGreaterThan(8);
    expect(await gateway.announce(announced("vm", "Engineering/vm"), squad)).toMatchObject({ accepted: true });
    // It may renew its announcements.
    expect(await gateway.announce(announced(`0-${"x".repeat(200)}`, "p"), other)).toMatchObject({ accepted: true });
    expect(await gateway.withdraw({ capability: `0-${"x".repeat(200)}`, path: "p" }, other)).toBe(true);
    expect(await gateway.announce(announced(`z-${"x".repeat(200)}`, "p"), other)).toMatchObject({ accepted: true });
  });

  test("reuses the space of expired routes", async () => {
    const clock = fakeClock();
    const gateway = agentGateway({
      name: "G",
      clock,
      tableBytes: 4096,
      policy: { mayAnnounce: () => true },
      lifetime: 1,
    });
    for (let count = 0; count < 100; count += 1) {
      await gateway.announce(announced(`c${count}`, "p"), squad);
      clock.advance(1000);
    }
    expect(await outcomeOf(gateway, "c99")).toBe("tableStale");
    expect(await outcomeOf(gateway, "c0")).toBe("routeNotFound");
  });

  test("accepts any capability name", async () => {
    const gateway = agentGateway({ name: "G" });
    for (const name of ["__proto__", "constructor", "toString"]) {
      expect(await outcomeOf(gateway, name)).toBe("routeNotFound");
      await gateway.announce(announced(name, `to ${name}`));
      expect(await outcomeOf(gateway, name)).toBe(`to ${name}`);
    }
    expect(Object.keys((await gateway.routes()).routes).sort()).toEqual(["__proto__", "constructor", "toString"]);
  });
});

describe("circles and hops", () => {
  test("an announcement in a circle or from too far makes no route", async () => {
    const gateway = agentGateway({ name: "G", policy: { mayAnnounce: () => true }, maxHops: 3 });
    expect(await gateway.announce(announced("a", "p", { via: ["X", "G", "Y"] }), squad)).toEqual({ accepted: false });
    expect(await gateway.announce(announced("a", "p", { via: ["X", "Y", "Z"] }), squad)).toEqual({ accepted: false });
    expect(await gateway.announce(announced("a", "p", { via: ["X", "Y"] }), squad)).toMatchObject({ accepted: true });
    expect((await gateway.routes()).routes["a"]).toHaveLength(1);
  });

  test("an intent is not routed in a circle, back to its origin, or through too many gateways", async () => {
    const gateway = agentGateway({ name: "G", policy: { mayAnnounce: () => true }, maxHops: 3 });
    await gateway.announce(announced("a", "X/gateway", { via: ["X"] }), squad);
    expect(await outcomeOf(gateway, "a", ["Y"])).toBe("X/gateway");
    expect(await outcomeOf(gateway, "a", ["X"])).toBe("routeNotFound");
    expect(await outcomeOf(gateway, "a", ["G"])).toBe("routeNotFound");
    expect(await outcomeOf(gateway, "a", ["1", "2", "3"])).toBe("routeNotFound");
  });
});

/** Gateways in this process. `links`: which gateway announces to which. */
function network(links: Readonly<Record<string, readonly string[]>>, more: Partial<AgentGatewayOptions> = {}) {
  const gateways = new Map<string, AgentGateway>();
  const calls: string[] = [];
  const peer = (from: string, name: string): GatewayPeer => ({
    name,
    announce: async (request) => {
      calls.push(`${from} -> ${name}: ${request.announcement.capability} ${request.announcement.cost}`);
      return (gateways.get(name) as AgentGateway).announce(request, { subject: from });
    },
    withdraw: async (request) => {
      calls.push(`${from} -> ${name}: no ${request.capability}`);
      return (gateways.get(name) as AgentGateway).withdraw(request, { subject: from });
    },
  });
  for (const [name, others] of Object.entries(links)) {
    const peers = others.map((each) => peer(name, each));
    gateways.set(name, agentGateway({ name, peers, policy: { mayAnnounce: () => true }, ...more }));
  }
  return { calls, at: (name: string) => gateways.get(name) as AgentGateway };
}

describe("peers", () => {
  test("learn the gateway's own routes through it, and their withdrawal", async () => {
    const { at } = network({ A: ["B"], B: ["C"], C: [] });
    await at("A").announce(announced("vm", "A/vm", { cost: 2 }));
    expect(await outcomeOf(at("B"), "vm")).toBe("A");
    expect((await at("B").routes()).routes["vm"]).toEqual([{ path: "A", cost: 2, policy: {} }]);
    // B does not pass on the announcements of others.
    expect(await outcomeOf(at("C"), "vm")).toBe("routeNotFound");
    await at("A").withdraw({ capability: "vm", path: "A/vm" });
    expect(await outcomeOf(at("B"), "vm")).toBe("routeNotFound");
  });

  test("also learn routes of others with transit, at an added cost", async () => {
    const { at, calls } = network({ A: ["B"], B: ["A", "C"], C: ["A", "B"] }, { transit: true, transitCost: 0.5 });
    await at("A").announce(announced("vm", "A/vm", { cost: 2 }));
    await expect.poll(() => outcomeOf(at("C"), "vm")).toBe("B");
    expect((await at("C").routes()).routes["vm"]).toEqual([{ path: "B", cost: 2.5, policy: {} }]);
    // C does not announce A's and B's routes back to them.
    expect(calls).toEqual(["A -> B: vm 2", "B -> C: vm 2.5"]);
    await at("A").withdraw({ capability: "vm", path: "A/vm" });
    await expect.poll(() => outcomeOf(at("C"), "vm")).toBe("routeNotFound");
  });

  test("in a ring converge, and each route leads to its announcer", async () => {
    const ring = { A: ["B", "D"], B: ["A", "C"], C: ["B", "D"], D: ["C", "A"] };
    const { at, calls } = network(ring, { transit: true, transitCost: 1 });
    const names = Object.keys(ring);
    for (const name of names) await at(name).announce(announced(`work of ${name}`, `${name}/work`));
    await Promise.all(names.map((name) => at(name).advertise()));
    for (const target of names) {
      for (const start of names) {
        await expect.poll(() => outcomeOf(at(start), `work of ${target}`)).not.toBe("routeNotFound");
        const visited: string[] = [];
        let here = start;
        while (here !== `${target}/work`) {
          visited.push(here);
          here = await outcomeOf(at(here), `work of ${target}`, visited.slice(0, -1));
          expect(visited.length).toBeLessThan(5);
        }
      }
    }
    expect(calls.length).toBeLessThan(200);
  });

  test("learn the cheapest of several routes, and the next one after its withdrawal", async () => {
    const { at } = network({ A: ["B"], B: [] });
    await at("A").announce(announced("vm", "A/cheap", { cost: 1 }));
    await at("A").announce(announced("vm", "A/dear", { cost: 9 }));
    const costs = async () => (await at("B").routes()).routes["vm"]?.map(({ cost }) => cost);
    expect(await costs()).toEqual([1]);
    await at("A").withdraw({ capability: "vm", path: "A/cheap" });
    expect(await costs()).toEqual([9]);
  });

  test("that cannot be reached are logged, and do not block the others", async () => {
    const lines: string[] = [];
    const note = (line: string): void => void lines.push(line);
    const heard: string[] = [];
    const down: GatewayPeer = {
      name: "down",
      announce: () => Promise.reject(new Error("down")),
      withdraw: () => Promise.reject(new Error("down")),
    };
    const up: GatewayPeer = {
      name: "up",
      announce: async ({ path }) => {
        heard.push(path);
        return { accepted: true };
      },
      withdraw: () => Promise.resolve(),
    };
    const logger = { debug: note, info: note, warn: note, error: note };
    const gateway = agentGateway({ name: "G", path: "Squad/gateway", peers: [down, up], logger });
    await gateway.announce(announced("vm", "here"));
    expect(heard).toEqual(["Squad/gateway"]);
    expect(lines).toEqual(["Failed to announce a route to a peer"]);
  });

  test("learn concurrent changes together", async () => {
    const told: unknown[] = [];
    let free = (): void => {};
    const slow: GatewayPeer = {
      name: "slow",
      announce: async ({ announcement }) => {
        told.push(announcement.cost);
        await new Promise<void>((resolve) => (free = resolve));
        return { accepted: true };
      },
      withdraw: () => Promise.resolve(),
    };
    const gateway = agentGateway({ name: "G", transit: true, peers: [slow], policy: { mayAnnounce: () => true } });
    for (let cost = 100; cost > 0; cost -= 1) await gateway.announce(announced("vm", "p", { cost }), other);
    expect(told).toEqual([100]);
    free();
    await expect.poll(() => told).toEqual([100, 1]);
    free();
  });

  test("are notified periodically, until the gateway stops", async () => {
    const clock = fakeClock();
    const heard: number[] = [];
    const peer: GatewayPeer = {
      name: "P",
      announce: async () => {
        heard.push(clock.elapsed());
        return { accepted: true };
      },
      withdraw: () => Promise.resolve(),
    };
    const own = { capability: "vm", version: "1", policy: {}, path: "own" };
    const gateway = agentGateway({ name: "G", clock, lifetime: 30, peers: [peer], routes: [own] });
    const stop = gateway.start();
    await expect.poll(() => heard.length).toBe(1);
    await expect
      .poll(() => {
        clock.advance(10_000);
        return heard.length;
      })
      .toBeGreaterThan(2);
    stop();
    const told = heard.length;
    for (let count = 0; count < 5; count += 1) {
      clock.advance(10_000);
      await Promise.resolve();
    }
    expect(heard.length).toBeLessThanOrEqual(told + 1);
  });
});

describe("older announcements do not replace newer ones", () => {
  test("a late announcement, even after a withdrawal", async () => {
    const clock = fakeClock();
    const gateway = agentGateway({ name: "G", clock, lifetime: 60, policy: { mayAnnounce: () => true } });
    const costs = async () => (await gateway.routes()).routes["vm"]?.map(({ cost }) => cost);
    await gateway.announce(announced("vm", "p", { cost: 2, sequence: 2 }), squad);
    expect(await gateway.announce(announced("vm", "p", { cost: 1, sequence: 1 }), squad)).toEqual({ accepted: false });
    expect(await costs()).toEqual([2]);
    // The same one again, as after a lost answer.
    expect(await gateway.announce(announced("vm", "p", { cost: 2, sequence: 2 }), squad)).toMatchObject({
      accepted: true,
    });
    expect(await gateway.withdraw({ capability: "vm", path: "p", sequence: 1 }, squad)).toBe(false);
    expect(await costs()).toEqual([2]);
    expect(await gateway.withdraw({ capability: "vm", path: "p", sequence: 4 }, squad)).toBe(true);
    expect(await gateway.announce(announced("vm", "p", { cost: 3, sequence: 3 }), squad)).toEqual({ accepted: false });
    expect(await costs()).toBe(undefined);
    expect(await outcomeOf(gateway, "vm")).toBe("routeNotFound");
    // Other announcers, and those without numbers, are not affected.
    await gateway.announce(announced("vm", "p", { cost: 9, sequence: 1 }), other);
    await gateway.announce(announced("vm", "p", { cost: 5 }), squad);
    expect((await costs())?.toSorted()).toEqual([5, 9]);
  });

  test("only until it would have expired, even if the clock jumps back", async () => {
    const clock = fakeClock();
    const gateway = agentGateway({ name: "G", clock, lifetime: 60, policy: { mayAnnounce: () => true } });
    await gateway.announce(announced("vm", "p", { sequence: 1e15 }), squad);
    await gateway.withdraw({ capability: "vm", path: "p", sequence: 1e15 }, squad);
    clock.advance(60_000);
    expect(await gateway.announce(announced("vm", "p", { sequence: 1 }), squad)).toMatchObject({ accepted: true });
    expect(await outcomeOf(gateway, "vm")).toBe("p");
  });

  test("peers get changes and periodic announcements in sequence, with increasing numbers", async () => {
    const told: (readonly [number | undefined, number | undefined])[] = [];
    const waiting: (() => void)[] = [];
    const slow: GatewayPeer = {
      name: "slow",
      announce: async ({ announcement, sequence }) => {
        told.push([announcement.cost, sequence]);
        await new Promise<void>((resolve) => waiting.push(resolve));
        return { accepted: true };
      },
      withdraw: async ({ sequence }) => void told.push([undefined, sequence]),
    };
    const gateway = agentGateway({ name: "G", peers: [slow], clock: fakeClock() });
    const first = gateway.announce(announced("vm", "p", { cost: 1 }));
    await expect.poll(() => told.length).toBe(1);
    const again = gateway.advertise();
    const second = gateway.announce(announced("vm", "p", { cost: 2 }));
    await Promise.resolve();
    // Nothing new is announced before the peer has answered.
    expect(told).toHaveLength(1);
    waiting.shift()?.();
    await expect.poll(() => waiting.length).toBe(1);
    const gone = gateway.withdraw({ capability: "vm", path: "p" });
    waiting.shift()?.();
    await Promise.all([first, again, second, gone]);
    expect(told.map(([cost]) => cost)).toEqual([1, 2, undefined]);
    const sequences = told.map(([, sequence]) => sequence ?? -1);
    expect(sequences.every((sequence, at) => at === 0 || sequence > (sequences[at - 1] ?? 0))).toBe(true);
  });
});

test("invalid options are rejected", () => {
  expect(() => agentGateway({ name: "" })).toThrow(/name must be/);
  expect(() => agentGateway({ name: "G", lifetime: 0 })).toThrow(/lifetime must be/);
  expect(() => agentGateway({ name: "G", maxHops: 0 })).toThrow(/maxHops must be/);
  expect(() => agentGateway({ name: "G", tableBytes: 0 })).toThrow(/tableBytes must be/);
  expect(() => agentGateway({ name: "G", transitCost: NaN })).toThrow(/transitCost must be/);
  expect(() => agentGateway({ name: "G", transitCost: -1 })).toThrow(/transitCost must be/);
  expect(() => agentGateway({ name: "G", routes: [{ capability: "a" } as never] })).toThrow(
    /announcement.version is required/,
  );
});
