import { expect, test } from "vitest";
import { mayMovePayment, paymentMoves, paymentStatuses, x402, x402UriV01, x402UriV02 } from "../../src/x402/index.ts";

test("a payment changes state as specified (v0.1 §6.1, v0.2 §7.1)", () => {
  // The arrows of the diagrams, and the two moves that only the text has.
  const arrows = [
    "payment-required payment-rejected",
    "payment-required payment-submitted",
    "payment-submitted payment-verified",
    "payment-submitted payment-failed",
    "payment-verified payment-completed",
    "payment-verified payment-failed",
    "payment-failed payment-required",
  ];
  const moves = paymentStatuses.flatMap((from) =>
    paymentStatuses.filter((to) => mayMovePayment(from, to)).map((to) => `${from} ${to}`),
  );
  expect(moves.sort()).toEqual(arrows.sort());
  expect(Object.keys(paymentMoves)).toHaveLength(6);
});

test("the two versions have the URIs of their specifications (§2)", () => {
  expect(x402().uri).toBe("https://github.com/google-a2a/a2a-x402/v0.1");
  expect(x402({ version: "0.2" }).uri).toBe("https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2");
  expect([x402UriV01, x402UriV02]).toEqual([x402().uri, x402({ version: "0.2" }).uri]);
  expect(x402().required).toBe(true);
});
