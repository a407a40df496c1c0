import type { AbstractAgent, RunAgentInput } from "@ag-ui/client";
import { expect, test } from "vitest";
import { A2AAgent } from "../../src/ag-ui/index.ts";

/* Tests of types: `tsc` checks that each line below `@ts-expect-error` does not compile. */

const url = "https://agents.example.com/travel";

test("an A2AAgent is an AG-UI agent", () => {
  const agent: AbstractAgent = new A2AAgent({ agent: url, threadId: "trip-7", onStop: "leave" });
  const clone: A2AAgent = new A2AAgent({ agent: url, connect: { retry: false }, maxFileBytes: 1 }).clone();
  expect([agent.threadId, clone.pendingInterrupts]).toEqual(["trip-7", []]);
});

test("wrong arguments do not compile", () => {
  const wrong = (): unknown[] => [
    // @ts-expect-error -- no agent
    new A2AAgent({ threadId: "trip-7" }),
    // @ts-expect-error -- a number is not a URL
    new A2AAgent({ agent: 7 }),
    // @ts-expect-error -- an unknown onStop
    new A2AAgent({ agent: url, onStop: "pause" }),
    // @ts-expect-error -- an input without messages
    new A2AAgent({ agent: url }).run({ threadId: "trip-7" } satisfies Partial<RunAgentInput>),
  ];
  expect(wrong).toBeTypeOf("function");
});
