import { describe, expect, it } from "vitest";
import { addressProblem, guardedFetch, type Dialer, type NetPolicy } from "../../src/net/index.ts";
import { fakeClock } from "@parley/testing";

function dialerTo(...found: readonly string[]): Dialer {
  return {
    resolve: () => Promise.resolve(found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))),
    fetch: () => Promise.resolve(new Response("reached")),
  };
}

describe("checking an address without a call", () => {
  it.each([
    ["https://example.com/", undefined],
    ["https://example.com:8443/a?b#c", undefined],
    ["nonsense", "it is not an absolute URL"],
    ["gopher://example.com/", "gopher: is not allowed"],
    ["http://10.0.0.1/", "10.0.0.1 is a private address"],
    ["http://router.local/", "router.local is a name of an internal network"],
  ])("reports for %s: %s", async (address, problem) => {
    expect(await addressProblem(address)).toBe(problem);
  });

  it("checks each address of the name", async () => {
    const refused = "example.com resolves to an address that is not public";
    expect(await addressProblem("https://example.com/", {}, dialerTo("8.8.8.8", "10.0.0.1"))).toBe(refused);
    expect(await addressProblem("https://example.com/", {}, dialerTo("8.8.8.8", "2606:4700::1111"))).toBeUndefined();
    expect(
      await addressProblem("https://example.com/", { allow: ["example.com"] }, dialerTo("10.0.0.1")),
    ).toBeUndefined();
  });

  it("accepts a name without an address, and one whose look-up times out", async () => {
    expect(await addressProblem("https://example.com/", {}, dialerTo())).toBeUndefined();
    const failing: Dialer = { ...dialerTo(), resolve: () => Promise.reject(new Error("ENOTFOUND")) };
    expect(await addressProblem("https://example.com/", {}, failing)).toBeUndefined();
    const clock = fakeClock();
    const silent: Dialer = { ...dialerTo(), resolve: () => new Promise(() => {}) };
    const checked = addressProblem("https://example.com/", { timeout: 500 }, silent, clock);
    clock.advance(500);
    expect(await checked).toBeUndefined();
  });
});

describe("a policy that allows loopback addresses", () => {
  const policy: NetPolicy = { allowLoopback: true };

  it.each([
    "http://127.0.0.1:8080/",
    "http://127.8.9.1:8080/",
    "http://[::1]:8080/",
    "http://localhost:8080/",
    "http://a.localhost:8080/",
  ])("allows %s, also for calls", async (address) => {
    expect(await addressProblem(address)).toBeTypeOf("string");
    expect(await addressProblem(address, policy, dialerTo("127.0.0.1"))).toBeUndefined();
    const answer = await guardedFetch(policy, dialerTo("127.0.0.1"))(address);
    expect(await answer.text()).toBe("reached");
  });

  it.each([
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://169.254.169.254/",
    "http://router.local/",
    "http://intranet/",
  ])("rejects %s as before", async (address) => {
    expect(await addressProblem(address, policy, dialerTo("127.0.0.1"))).toBeTypeOf("string");
  });

  it("rejects localhost if it resolves to another machine", async () => {
    const problem = await addressProblem("http://localhost:8080/", policy, dialerTo("10.0.0.1"));
    expect(problem).toBe("localhost resolves to an address that is not public");
  });
});
