import { defineAgent } from "@parley/server";
import { idempotentSends, resumableStreams } from "@parley/a2a/extensions";
import { specifiedTimestamp } from "@parley/extensions/timestamp";
import { traceability, traceStep } from "@parley/extensions/traceability";
import { extensionContract, type Runner } from "@parley/testing";
import { describe, expect, test } from "vitest";
import { everyBinding } from "./extension-bindings.ts";

/** Runs the contract of extensions for the packaged ones, over real sockets: JSON-RPC, REST and gRPC, in 1.0 and 0.3 (A2A 1.0 §4.6). */

const runner: Runner = { describe, it: test, expect };

describe("Traceability", () => {
  extensionContract(runner, {
    extension: traceability,
    over: everyBinding(),
    agent: () =>
      defineAgent({
        name: "Rates",
        description: "Knows rates",
        version: "1.0.0",
        skills: [],
        extensions: [traceability],
        async *onMessage(turn) {
          yield turn.completed(await traceStep(turn.ext(traceability), { name: "get_rate" }, () => "0.859"));
        },
      }),
    check: ({ answer, events, expect: that }) => {
      for (const trace of [answer.ext(traceability)?.trace, events.at(-1)?.ext(traceability)?.trace]) {
        that(trace?.steps.map(({ name }) => name)).toEqual(["get_rate"]);
      }
    },
  });
});

describe("Timestamp, as its specification spells it", () => {
  extensionContract(runner, {
    extension: specifiedTimestamp,
    over: everyBinding(),
    check: ({ answer, expect: that }) =>
      that(typeof answer.task?.ext(specifiedTimestamp)?.artifact.at).toEqual("string"),
  });
});

describe("resumable streams", () => {
  extensionContract(runner, { extension: resumableStreams, over: everyBinding() });
});

describe("idempotent sends", () => {
  extensionContract(runner, { extension: idempotentSends, over: everyBinding() });
});
