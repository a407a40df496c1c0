import { describe, expect, test } from "vitest";
import { fakeClock } from "../../../testing/src/fake-clock.ts";
import { addressBlock, callerKey } from "../../src/limits/requests.ts";
import { memoryRateLimiter } from "../../src/limits/memory.ts";

describe("memoryRateLimiter()", () => {
  test("allows a burst of the whole limit, then single requests, evenly", () => {
    const clock = fakeClock();
    const limiter = memoryRateLimiter({ requests: 3, per: 900 }, clock);
    const taken = Array.from({ length: 4 }, () => limiter.take("ada", 1));
    expect(taken.map(({ ok }) => ok)).toEqual([true, true, true, false]);
    expect(taken[3]?.retryAfter).toBeCloseTo(300);
    clock.advance(299);
    expect(limiter.take("ada", 1).ok).toBe(false);
    clock.advance(1);
    expect(limiter.take("ada", 1).ok).toBe(true);
    expect(limiter.take("ada", 1).ok).toBe(false);
    clock.advance(900);
    expect(Array.from({ length: 4 }, () => limiter.take("ada", 1).ok)).toEqual([true, true, true, false]);
  });

  test("takes nothing if the budget is too small, and counts each caller separately", () => {
    const limiter = memoryRateLimiter({ requests: 3, per: 1000 }, fakeClock());
    expect(limiter.take("ada", 2).ok).toBe(true);
    expect(limiter.take("ada", 2).ok).toBe(false);
    expect(limiter.take("ada", 1).ok).toBe(true);
    expect(limiter.take("bob", 3).ok).toBe(true);
  });

  test("refunds nothing after a wall clock jump", () => {
    const clock = fakeClock();
    const limiter = memoryRateLimiter({ requests: 1, per: 60_000 }, clock);
    limiter.take("ada", 1);
    for (const jump of [86_400_000, -2 * 86_400_000]) {
      clock.jump(jump);
      expect(limiter.take("ada", 1)).toEqual({ ok: false, retryAfter: 60_000 });
    }
  });

  test("remembers a bounded number of callers: the newest of a million addresses", () => {
    const limiter = memoryRateLimiter({ requests: 1, per: 60_000 }, fakeClock(), 1 << 20);
    const count = 1_000_000;
    for (let at = 0; at < count; at++) limiter.take(`address ${at}`, 1);
    const known = (at: number): boolean => !limiter.take(`address ${at}`, 0.5).ok;
    expect(known(count - 1)).toBe(true);
    expect(known(count - 1_000)).toBe(true);
    // The limit is a megabyte, and each entry has more than 200 bytes.
    expect(known(count - 1 - (1 << 20) / 200)).toBe(false);
  });
});

describe("an address counts as", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:1:2::1", "2001:db8:1:2::/64"],
    ["2001:0db8:0001:0002:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:db8:1::", "2001:db8:1:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::", "0:0:0:0::/64"],
    ["::192.0.2.1", "0:0:0:0::/64"],
    ["::1:2:3:4:5", "0:0:0:1::/64"],
    ["not:an:address", "not:an:address"],
    ["", ""],
    [`${"x".repeat(100)}`, "x".repeat(64)],
    [`${"1:".repeat(100)}`, "1:".repeat(32)],
  ])("%s: %s", (address, block) => {
    expect(addressBlock(address)).toBe(block);
  });
});

test("a caller counts by organization and subject, and without a name by its address", () => {
  expect(callerKey({ subject: "ada", organization: "acme" }, "192.0.2.1")).toBe('principal ["acme","ada"]');
  expect(callerKey({ subject: "ada" }, "192.0.2.1")).toBe('principal [null,"ada"]');
  expect(callerKey({ subject: "anonymous" }, "2001:db8::1")).toBe("address 2001:db8:0:0::/64");
  expect(callerKey({ subject: "anonymous" }, undefined)).toBe('principal [null,"anonymous"]');
  // If an organization has a member with this name, that member is not an anonymous caller.
  expect(callerKey({ subject: "anonymous", organization: "acme" }, "192.0.2.1")).toBe('principal ["acme","anonymous"]');
});
