import { expect, test } from "vitest";
import { makePassportKey, passportKeys, passportKeySet, securePassport } from "../../src/secure-passport/index.ts";
import { message, type AgentCard } from "@parley/a2a/internal/model/index";
import type { AcceptedCall, AcceptedInput, RequestingCall } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";

const key = await makePassportKey();
const clientId = "a2a://desk.example.com";
const trust = passportKeys({ [clientId]: await passportKeySet([key]) });
const clock = fakeClock();

/** The card of an agent behind a gRPC address that several agents have (A2A 1.0 §8.3.2). */
const cardOf = (tenant: string): Pick<AgentCard, "supportedInterfaces"> => ({
  supportedInterfaces: [{ url: "agents.example.com:443", protocolBinding: "GRPC", protocolVersion: "1.0", tenant }],
});

/** The passport that a tenant's agent gets from a message signed for another tenant's agent. */
async function verdictAt(tenant: string, signedFor: string): Promise<string> {
  const caller = { clientId, key, state: {} };
  const given = { operation: "SendMessage", card: cardOf(signedFor), clock, params: {} };
  const request = { message: message("Book a flight") };
  const signed = await securePassport({ caller }).onRequest?.(request, given as unknown as RequestingCall);
  const call = { card: cardOf(tenant), clock, principal: { subject: "desk" }, logger: {} } as unknown as AcceptedCall;
  const accepted = await securePassport({ trust }).onAccept?.(signed as unknown as AcceptedInput, call);
  return JSON.stringify(accepted?.message.metadata);
}

test("a passport is invalid for another tenant at the same address", async () => {
  expect(await verdictAt("flights", "flights")).toContain('"verified":true');
  expect(await verdictAt("hotels", "flights")).toContain('"problem":"audience"');
});
