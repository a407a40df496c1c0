import { describe, expect, it } from "vitest";
import { testFacilitator, x402, type X402Extension } from "../../../src/extensions/x402/index.ts";
import { defineAgent, type Agent } from "../../../src/index.ts";
import { extensionContract } from "../../../src/testing/index.ts";
import { option } from "./support.ts";

/** An agent that asks for a payment where it can, and else says so. */
function agentOf(payments: X402Extension): Agent {
  return defineAgent({
    name: "Painter",
    description: "Paints for money",
    version: "1",
    skills: [],
    resumable: true,
    extensions: [payments],
    async *onMessage(turn) {
      const active = turn.ext(payments);
      if (active === undefined) yield turn.completed("Pay by x402.");
      else yield* active.charge({ accepts: [option] });
    },
  });
}

describe.each(["0.1", "0.2"] as const)("x402 %s keeps the contract of extensions", (version) => {
  const payments = x402({ facilitator: testFacilitator(), version, required: false });
  extensionContract(
    { describe, it, expect },
    {
      extension: payments,
      agent: () => agentOf(payments),
      check({ answer, events, expect: that }) {
        that(answer.task?.status.state).toEqual("TASK_STATE_INPUT_REQUIRED");
        that(answer.task?.ext(payments)?.message.status).toEqual("payment-required");
        that(answer.task?.ext(payments)?.message.required?.accepts).toEqual([option]);
        that(events.flatMap((event) => event?.ext(payments)?.message.status ?? [])).toEqual(["payment-required"]);
      },
    },
  );
});
