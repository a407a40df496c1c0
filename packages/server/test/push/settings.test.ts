import { describe, expect, test } from "vitest";
import { silentLogger } from "@parley/a2a/internal/base/index";
import type { PushOptions } from "../../src/push/index.ts";
import { pushSettingsOf } from "../../src/server/features.ts";
import { dialerTo, testKey } from "./config-support.ts";

const publicUrl = "https://agents.example.com/all";
const settings = (options: PushOptions) => pushSettingsOf({ keys: [testKey], ...options }, publicUrl, silentLogger);

describe("the option push", () => {
  test("is off if it is absent or false", () => {
    expect(pushSettingsOf(undefined, publicUrl, silentLogger)).toBeUndefined();
    expect(pushSettingsOf(false, publicUrl, silentLogger)).toBeUndefined();
  });

  test("has defaults: only a public address, 10 s, 64 KiB of an answer, retries over three days", () => {
    const { keys, retryAfter = [], ...rest } = settings({}) ?? {};
    expect(keys?.map(({ length }) => length)).toEqual([32]);
    const day = 24 * 60 * 60_000;
    const all = retryAfter.reduce((sum, wait) => sum + wait, 0);
    expect(Math.round(all / day)).toBe(3);
    expect(rest).toEqual({
      issuer: "https://agents.example.com/all",
      net: { allowLoopback: false, maxBytes: 64 << 10, timeout: 10_000 },
      dialer: undefined,
      mutualTls: undefined,
      challenge: false,
      events: "changes",
      bodyBytes: 256 << 10,
      configsPerTask: 10,
      timeout: 10_000,
      concurrency: 64,
      concurrencyPerOrigin: 8,
    });
  });

  test("never waits longer for an answer than a claim lasts, whatever net says", () => {
    expect(settings({ timeout: 20_000, net: { timeout: 3_600_000 } })).toMatchObject({
      timeout: 20_000,
      net: { timeout: 20_000 },
    });
  });

  test.each<readonly [string, unknown]>([
    ["push", "yes"],
    ["push", null],
    ["push.keys", { keys: [] }],
    ["push.keys", { keys: testKey }],
    ["push.keys[0]", { keys: [42] }],
    ["push.timeout", { timeout: 0 }],
    ["push.timeout", { timeout: 60_000 }],
    ["push.bodyBytes", { bodyBytes: NaN }],
    ["push.configsPerTask", { configsPerTask: "10" }],
    ["push.configsPerTask", { configsPerTask: 257 }],
    ["push.retryAfter", { retryAfter: [1, -1] }],
    ["push.retryAfter", { retryAfter: 5_000 }],
    ["push.events", { events: "some" }],
    ["push.mutualTls", { mutualTls: true }],
  ])("rejects an invalid %s at startup (%#)", (field, option) => {
    const given = typeof option === "object" && option !== null ? { keys: [testKey], ...option } : option;
    expect(() => pushSettingsOf(given as PushOptions, publicUrl, silentLogger)).toThrow(
      expect.objectContaining({ code: "InvalidParams", fields: [expect.objectContaining({ field })] }),
    );
  });

  test("keeps the dialer that holds a client certificate apart", () => {
    const [dialer, mutualTls] = [dialerTo("93.184.215.14"), dialerTo("93.184.215.14")];
    const kept = settings({ mutualTls, dialer });
    expect([kept?.dialer, kept?.mutualTls]).toEqual([dialer, mutualTls]);
  });
});
