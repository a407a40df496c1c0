import { describe, expect, test } from "vitest";
import {
  passportBytes,
  passportOf,
  securePassport,
  securePassportUri,
  withPassport,
} from "../../src/secure-passport/index.ts";
import type { JsonObject } from "@parley/a2a/internal/model/index";
import { collect } from "../../../../test/secrets.ts";

/* The values that the public sample writes and reads (a2a-samples, extensions/secure-passport), as its tests have them. */

const fixtures: Readonly<Record<string, JsonObject>> = {
  "with a signature that is none": {
    clientId: "a2a://orchestrator.com",
    signature: "mock-signature-xyz",
    sessionId: "session-123",
    state: { currency: "USD", tier: "silver" },
  },
  "for a conversion of currencies": {
    clientId: "a2a://travel-orchestrator.com",
    signature: "sig-currency-1",
    state: { user_preferred_currency: "GBP", user_id: "U001" },
  },
  "for a booking": {
    clientId: "a2a://travel-portal.com",
    signature: "sig-travel-2",
    sessionId: "travel-booking-session-999",
    state: { destination: "Bali, Indonesia", dates: "2025-12-01 to 2025-12-15", loyalty_tier: "Platinum" },
  },
  "without a signature": {
    clientId: "a2a://ecommerce-front.com",
    state: { product_sku: "Nikon-Z-50mm-f1.8", cart_status: "in_cart", user_intent: "seeking_reviews" },
  },
  "with lists and objects in its state": {
    clientId: "a2a://marketing-agent.com",
    signature: "sig-finance-4",
    state: {
      query_type: "quarterly_revenue",
      time_period: { start: "2025-07-01", end: "2025-09-30" },
      access_scope: ["read:finance_db", "user:Gulli"],
    },
  },
};

const carrying = (value: unknown) => ({ metadata: { [securePassportUri]: value } as JsonObject });

describe("a passport of the public sample (Secure Passport §3, §4)", () => {
  test.each(Object.entries(fixtures))("%s is read, and written the same", (_, value) => {
    const read = passportOf(carrying(value));
    expect(read).toEqual(value);
    const written = withPassport({ metadata: { other: 1 } }, read ?? { clientId: "", state: {} });
    expect(written.metadata).toEqual({ other: 1, [securePassportUri]: value });
  });

  test("may have the Python names, and null for absent members", () => {
    expect(passportOf(carrying({ client_id: "a2a://c", session_id: "s", signature: null, state: {} }))).toEqual({
      clientId: "a2a://c",
      sessionId: "s",
      state: {},
    });
  });

  test("is undefined if it is absent or null", () => {
    expect(passportOf({})).toBeUndefined();
    expect(passportOf({ metadata: {} })).toBeUndefined();
    expect(passportOf(carrying(null))).toBeUndefined();
  });

  const { clientId: _, ...nameless } = fixtures["for a booking"] ?? {};
  test.each([
    ["lacks its clientId", nameless, "clientId is required"],
    [
      "has a further member",
      { ...fixtures["for a booking"], extra_field: "unsupported" },
      "must not have other members",
    ],
    ["has a state that is not an object", { clientId: "a2a://c", state: ["a"] }, "state must be an object"],
    ["has a clientId that is not text", { clientId: 7, state: {} }, "clientId must be a string"],
    ["has an empty clientId", { clientId: "", state: {} }, "clientId must not be empty"],
    ["is not an object", "a passport", "it must be an object"],
    ["is a list", [], "it must be an object"],
    ["is too large", { clientId: "a2a://c", state: { a: "x".repeat(passportBytes) } }, "it is larger than 65536 bytes"],
  ])("that %s is ignored, with a log line that contains nothing of it", (_case, value, problem) => {
    const lines: string[] = [];
    const note = (...line: readonly unknown[]): void => {
      collect(...line);
      lines.push(JSON.stringify(line));
    };
    const logger = { debug: note, info: note, warn: note, error: note };
    expect(passportOf(carrying(value), logger)).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("Ignored a malformed Secure Passport");
    expect(lines[0]).toContain(problem);
    expect(lines[0]).not.toContain("Bali");
  });

  test("is a copy, independent of the message (Secure Passport §5)", () => {
    const state = { currency: "USD", nested: { list: [1] } };
    const message = withPassport({}, { clientId: "a2a://c", state });
    state.nested.list.push(2);
    const read = passportOf(message) as unknown as { state: Record<string, unknown> & { nested: { list: number[] } } };
    read.state["new_key"] = "changed_value";
    read.state.nested.list.push(3);
    expect(passportOf(message)?.state).toEqual({ currency: "USD", nested: { list: [1] } });
  });
});

describe("the declaration on a card (Secure Passport §2)", () => {
  test("lists the keys that the agent understands, or has empty params", () => {
    const keys = ["user_preferred_currency", "loyalty_tier"];
    expect(securePassport({ supportedStateKeys: keys })).toMatchObject({
      uri: securePassportUri,
      required: false,
      params: { supportedStateKeys: keys },
    });
    expect(securePassport().params).toEqual({});
  });
});
