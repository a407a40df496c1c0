import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, serve, type Agent } from "@parley/node";
import { connectWith, text } from "@parley/a2a";
import type { ClientKit } from "@parley/a2a/internal/client/index";
import { oid4vp, oid4vpUri } from "@parley/extensions/oid4vp";
import { createPayer, payWith, testFacilitator, testWallet, x402, type X402Extension } from "@parley/extensions/x402";
import type { AgentCard } from "@parley/a2a/model";
import { extensionContract, type Runner } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { everyBinding } from "./extension-bindings.ts";

/** Checks that x402 and OID4VP keep the contract of extensions over every binding, in 1.0 and 0.3 (A2A 1.0 §4.6). */

const runner: Runner = { describe, it: test, expect };
const price = {
  network: "base",
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bda02913",
  payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  maxAmountRequired: "48240000",
  resource: "https://painter.example/paint",
};

/** Creates an agent that charges if the extension is active, and otherwise replies how to pay. */
function painter(payments: X402Extension): Agent {
  return defineAgent({
    name: "Painter",
    description: "Paints for money",
    version: "1.0.0",
    skills: [],
    resumable: true,
    extensions: [payments],
    async *onMessage(turn) {
      const active = turn.ext(payments);
      if (active === undefined) {
        yield turn.completed("Pay by x402.");
        return;
      }
      yield* active.charge({
        accepts: [price],
        async *work() {
          yield turn.artifact({ name: "picture", parts: [text("A sailboat")] });
        },
      });
    },
  });
}

describe.each(["0.1", "0.2"] as const)("x402 %s", (version) => {
  const payments = x402({ facilitator: testFacilitator(), version, required: false });
  extensionContract(runner, {
    extension: payments,
    // The versions differ only in their URI.
    ...(version === "0.1" && { over: everyBinding() }),
    agent: () => painter(payments),
    check({ answer, events, expect: that }) {
      that(answer.task?.status.state).toEqual("TASK_STATE_INPUT_REQUIRED");
      that(answer.task?.ext(payments)?.message.status).toEqual("payment-required");
      that(answer.task?.ext(payments)?.message.required?.accepts[0]?.payTo).toEqual(price.payTo);
      that(events.flatMap((event) => event?.ext(payments)?.message.status ?? [])).toEqual(["payment-required"]);
    },
  });
});

describe("OID4VP", () => {
  const authorizationRequest = { client_id: "verifier", request_uri: "https://verifier.example/1" };
  extensionContract(runner, {
    extension: oid4vp,
    over: everyBinding(),
    agent: () =>
      defineAgent({
        name: "University",
        description: "Enrols students",
        version: "1.0.0",
        skills: [],
        extensions: [oid4vp],
        // The agent does not wait, because the rest happens between the wallet and the verifier.
        async *onMessage(turn) {
          const metadata = turn.ext(oid4vp) === undefined ? {} : { [oid4vpUri]: { authorizationRequest } };
          const message = { parts: [{ text: "Your diploma, please" }], metadata, extensions: Object.keys(metadata) };
          yield { kind: "status", state: "TASK_STATE_WORKING", message, keep: true };
          yield turn.completed("Enrolled");
        },
      }),
    check({ client, events, expect: that }) {
      const seen = events.flatMap((event) => event?.ext(oid4vp)?.message.authorization ?? []);
      that(seen).toEqual([{ authorizationRequest }]);
      that(client.ext(oid4vp).params).toEqual({ oid4vpVersions: ["1.0"] });
    },
  });
});

const versions = ["1.0", "0.3"] as const;
const ways = everyBinding().flatMap((binding) =>
  versions.map((version) => [binding.client.name, version, binding] as const),
);

test.each(ways)("a client pays over %s %s", async (name, version, { client: binding }) => {
  const folder = mkdtempSync(join(tmpdir(), "parley-x402-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = await sqliteStore({ path: join(folder, "tasks.db") });
  onTestFinished(() => store.close());
  const facilitator = testFacilitator();
  const server = await serve(painter(x402({ facilitator })), {
    port: 0,
    grpc: true,
    signals: false,
    logger: false,
    store,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  const kit: ClientKit = { bindings: [binding], decodeCard: (value) => value as AgentCard };
  const card = server.agents[0]?.card as AgentCard;
  const client = await connectWith(kit, card, { binding: name, version, extensions: [x402()] });
  const limits = [{ network: "base", asset: price.asset, maxAmount: 50_000_000n, payTo: [price.payTo] }];
  const payer = createPayer({ wallet: testWallet(), limits });
  const [one, two] = [await payWith(client, payer, "a boat"), await payWith(client, payer, "a tree")];
  expect(one.task?.status.state).toBe("TASK_STATE_COMPLETED");
  expect(one.task?.artifacts?.[0]?.parts).toEqual([{ text: "A sailboat" }]);
  expect([...(one.payment?.receipts ?? []), ...(two.payment?.receipts ?? [])]).toEqual(facilitator.settled);
  expect(facilitator.settled).toHaveLength(2);
});
