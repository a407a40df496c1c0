import { defineAgent } from "@parley/server";
import { agentGateway, agp, intentPart } from "@parley/extensions/agp";
import {
  makePassportKey,
  passportKeys,
  passportKeySet,
  passportOf,
  securePassport,
} from "@parley/extensions/secure-passport";
import { extensionContract, type Runner } from "@parley/testing";
import { describe, expect, test } from "vitest";
import { everyBinding } from "./extension-bindings.ts";

/** Checks that Secure Passport and AGP keep the contract of extensions over every binding, in 1.0 and 0.3 (A2A 1.0 §4.6). */

const runner: Runner = { describe, it: test, expect };
const key = await makePassportKey();
const clientId = "a2a://desk.example.com";
const trust = passportKeys({ [clientId]: await passportKeySet([key]) });
const caller = { clientId, key, state: { tier: "Gold" } };
const described = { description: "Does its work", version: "1.0.0", skills: [], defaultInputModes: ["*/*"] };

describe.each([
  ["which adds data", securePassport({ trust, caller, supportedStateKeys: ["tier"] })],
  ["which is required", securePassport({ trust, caller, require: true })],
])("Secure Passport %s", (_, extension) => {
  extensionContract(runner, {
    extension,
    over: everyBinding(),
    agent: () =>
      defineAgent({
        ...described,
        name: "Flights",
        extensions: [extension],
        async *onMessage(turn) {
          yield turn.completed(`${turn.ext(extension)?.verified}`);
        },
      }),
    check({ answer, expect: that }) {
      that(answer.task?.status.message?.parts[0]?.text).toEqual("true");
      that(passportOf(answer.task?.history?.[0] ?? {})?.state).toEqual({ tier: "Gold" });
    },
  });
});

describe("AGP", () => {
  const gateway = agentGateway({
    name: "Corporate",
    routes: [{ capability: "ask", version: "1.0", policy: {}, path: "Squad/ask" }],
    policy: { mayAnnounce: () => true },
  });
  const extension = agp({ gateway });
  extensionContract(runner, {
    extension,
    over: everyBinding(),
    agent: () =>
      defineAgent({
        ...described,
        name: "Corporate",
        extensions: [extension],
        onMessage: (turn) => turn.reply(turn.ext(extension)?.paths.join() ?? "none"),
      }),
    message: (active) => ({
      parts: active ? [intentPart({ target_capability: "ask", payload: {} })] : [{ text: "Hello" }],
    }),
    requests: {
      "agp/announce": { announcement: { capability: "vm", version: "1.0", policy: {} }, path: "Squad/vm" },
      "agp/withdraw": { capability: "vm", path: "Squad/vm" },
      "agp/routes": { capability: "ask" },
    },
    check: ({ answer, expect: that }) => that(answer.message?.parts[0]?.text).toEqual("Squad/ask"),
  });
});
