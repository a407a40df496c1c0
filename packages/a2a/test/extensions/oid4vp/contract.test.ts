import { describe, expect, it } from "vitest";
import { oid4vp, oid4vpUri } from "../../../src/extensions/oid4vp/index.ts";
import { defineAgent, type Agent } from "../../../src/index.ts";
import { extensionContract } from "../../../src/testing/index.ts";

const authorizationRequest = { client_id: "verifier", request_uri: "https://verifier.example/1" };

/** An agent that shows a request, and does not wait: what a wallet does with it is between it and the verifier. */
function agentOf(): Agent {
  return defineAgent({
    name: "University",
    description: "Enrols",
    version: "1",
    skills: [],
    extensions: [oid4vp],
    async *onMessage(turn) {
      const metadata = turn.ext(oid4vp) === undefined ? {} : { [oid4vpUri]: { authorizationRequest } };
      const message = { parts: [{ text: "Your diploma, please" }], metadata, extensions: Object.keys(metadata) };
      yield { kind: "status", state: "TASK_STATE_WORKING", message, keep: true };
      yield turn.completed("Enrolled");
    },
  });
}

describe("OID4VP keeps the contract of extensions", () => {
  extensionContract(
    { describe, it, expect },
    {
      extension: oid4vp,
      agent: agentOf,
      check({ client, events, expect: that }) {
        const seen = events.flatMap((event) => event?.ext(oid4vp)?.message.authorization ?? []);
        that(seen).toEqual([{ authorizationRequest }]);
        that(client.ext(oid4vp).params).toEqual({ oid4vpVersions: ["1.0"] });
      },
    },
  );
});
