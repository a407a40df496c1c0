import { describe, expect, test } from "vitest";
import { matchPayment, nonceNames, type Matched } from "../../src/x402/match.ts";
import type { PaymentPayload, PaymentRequirements } from "../../src/x402/index.ts";
import { now, option, paymentOf } from "./support.ts";

const offered = { now, offeredAt: now - 1000 };
type Options = readonly PaymentRequirements[];

async function codeOf(payment: PaymentPayload, accepts: Options = [option], times = offered): Promise<unknown> {
  const matched = await matchPayment(payment, accepts, times);
  return "code" in matched ? matched.code : undefined;
}

async function optionsOf(payment: PaymentPayload, accepts: Options): Promise<unknown> {
  const matched: Matched = await matchPayment(payment, accepts, offered);
  return "options" in matched ? matched.options : matched.code;
}

describe("a payment is compared with its task's offer (v0.2 §5.1, §9.1)", () => {
  test("and matches the option with its network, scheme, payee and amount", async () => {
    const cheap = { ...option, maxAmountRequired: "1" };
    const other = { ...option, network: "base-sepolia" };
    expect(await optionsOf(paymentOf(), [other, cheap, option])).toEqual([option]);
    // Addresses are hexadecimal digits in either case.
    const payee = { ...option, payTo: "0xABCDEF" };
    expect(await optionsOf(paymentOf({ to: "0xabcdef" }), [payee])).toEqual([payee]);
    // The facilitator must derive what a payment omits: the signature covers the asset.
    const token = { ...option, asset: "0x1" };
    expect(await optionsOf(paymentOf(), [option, token])).toEqual([option, token]);
  });

  const half = { authorization: { from: "a", to: "b", value: "1", nonce: "c" } };
  const wrong: readonly (readonly [name: string, code: string, payment: PaymentPayload])[] = [
    ["another network", "NETWORK_MISMATCH", { ...paymentOf(), network: "base-sepolia" }],
    ["another version of x402", "INVALID_SIGNATURE", { ...paymentOf(), x402Version: 2 }],
    ["another scheme", "INVALID_SIGNATURE", { ...paymentOf(), scheme: "upto" }],
    ["another payee", "INVALID_SIGNATURE", paymentOf({ to: "0xMallory" })],
    ["less", "INVALID_AMOUNT", paymentOf({ value: "48239999" })],
    ["more", "INVALID_AMOUNT", paymentOf({ value: "48240001" })],
    ["a negative amount", "INVALID_SIGNATURE", paymentOf({ value: "-48240000" })],
    ["an amount with an exponent", "INVALID_SIGNATURE", paymentOf({ value: "4824e4" })],
    ["an authorization that has expired", "EXPIRED_PAYMENT", paymentOf({ validBefore: String(now / 1000) })],
    ["one that is not valid yet", "INVALID_SIGNATURE", paymentOf({ validAfter: String(now / 1000 + 1) })],
    ["no nonce", "INVALID_SIGNATURE", paymentOf({ nonce: "" })],
    ["no authorization", "INVALID_SIGNATURE", { ...paymentOf(), payload: { authorization: "me" } }],
    ["no expiry", "INVALID_SIGNATURE", { ...paymentOf(), payload: half }],
    ["another asset", "INVALID_SIGNATURE", { ...paymentOf(), accepted: { ...option, asset: "0x1" } }],
    ["another resource", "INVALID_SIGNATURE", { ...paymentOf(), accepted: { ...option, resource: "/cheap" } }],
    ["another timeout", "INVALID_SIGNATURE", { ...paymentOf(), accepted: { ...option, maxTimeoutSeconds: 9999 } }],
    ["another price", "INVALID_AMOUNT", { ...paymentOf(), accepted: { ...option, maxAmountRequired: "1" } }],
  ];
  test.each(wrong)("and is rejected for %s", async (_, code, payment) => {
    expect(await codeOf(payment)).toBe(code);
  });

  test("and is rejected once the offer has expired", async () => {
    const times = (ms: number) => ({ now, offeredAt: now - ms });
    expect(await codeOf(paymentOf(), [option], times(600_000))).toBe(undefined);
    expect(await codeOf(paymentOf(), [option], times(600_001))).toBe("EXPIRED_PAYMENT");
    const { maxTimeoutSeconds: _, ...endless } = option;
    expect(await codeOf(paymentOf(), [endless], times(1e12))).toBe(undefined);
  });

  test("and reports why the closest option does not match", async () => {
    const accepts = [{ ...option, payTo: "0x1" }, option, { ...option, payTo: "0x2" }];
    expect(await codeOf(paymentOf({ value: "1" }), accepts)).toBe("INVALID_AMOUNT");
  });

  test("and may repeat its option, without members that the wallet does not need", async () => {
    const { scheme, network, asset, payTo, maxAmountRequired, resource } = option;
    const accepted = { scheme, network, asset, payTo, maxAmountRequired, resource };
    expect(await codeOf({ ...paymentOf(), accepted })).toBe(undefined);
  });
});

describe("a payment has a unique name, so it is used once (v0.2 §10)", () => {
  async function nameOf(payment: PaymentPayload): Promise<string> {
    const matched = await matchPayment(payment, [option], offered);
    if ("code" in matched) throw new Error(matched.code);
    return (await nonceNames(payment, matched.facts)).join();
  }

  test("which ignores the spelling of nonce and payer", async () => {
    const name = await nameOf(paymentOf({ from: "0xAB", nonce: "0xDEF" }));
    for (const nonce of ["0x000def", "def", "DEF", "0XDEF", " 0xdef", "d ef"]) {
      expect(await nameOf(paymentOf({ from: "0xab", nonce }))).toBe(name);
    }
    const { authorization = null } = paymentOf({ from: "0xAB", nonce: "0xDEF" }).payload;
    expect(await nameOf({ ...paymentOf(), payload: { authorization, signature: "0xother" } })).toBe(name);
  });

  test("which differs for another nonce or payer", async () => {
    const others = [paymentOf(), paymentOf({ nonce: "0xdee" }), paymentOf({ from: "0x1" })];
    expect(new Set(await Promise.all(others.map(nameOf))).size).toBe(3);
  });

  test("which is the transaction's, if the scheme signs one", async () => {
    const signed = (payload: PaymentPayload["payload"]): PaymentPayload => ({ ...paymentOf(), payload });
    const name = await nameOf(signed({ transaction: "AQID" }));
    expect(await nameOf(signed({ transaction: "AQID", note: "again" }))).toBe(name);
    expect(await nameOf(signed({ transaction: "AQID\n" }))).toBe(name);
    expect(await nameOf(signed({ transaction: "AQIE" }))).not.toBe(name);
  });

  test("which is otherwise the signature's: unsigned members change nothing", async () => {
    const signed = (payload: PaymentPayload["payload"]): PaymentPayload => ({ ...paymentOf(), payload });
    const name = await nameOf(signed({ signature: "0xAB", permit: { amount: "1" } }));
    expect(await nameOf(signed({ permit: { amount: "1" }, signature: "0xab", note: "again" }))).toBe(name);
    expect(await nameOf(signed({ signature: "0xac", permit: { amount: "1" } }))).not.toBe(name);
  });
});
