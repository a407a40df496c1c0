import type { AbstractAgent, RunAgentInput } from "@ag-ui/client";
import { expect, test } from "vitest";
import { A2AAgent } from "../../src/ag-ui/index.ts";

/* What compiles, and what does not: `tsc` checks the lines below each `@ts-expect-error`. */

const url = "https://agents.example.com/travel";

test("an agent is an agent of AG-UI", () => {
  const agent: AbstractAgent = new A2AAgent({ agent: url, threadId: "trip-7", onStop: "leave" });
  const clone: A2AAgent = new A2AAgent({ agent: url, connect: { retry: false }, maxFileBytes: 1 }).clone();
  expect([agent.threadId, clone.pendingInterrupts]).toEqual(["trip-7", []]);
});

test("what is wrong does not compile", () => {
  const wrong = (): unknown[] => [
    // @ts-expect-error -- no agent
    new A2AAgent({ threadId: "trip-7" }),
    // @ts-expect-error -- a number is no URL
    new A2AAgent({ agent: 7 }),
    // @ts-expect-error -- an unknown end
    new A2AAgent({ agent: url, onStop: "pause" }),
    // @ts-expect-error -- an input without messages
    new A2AAgent({ agent: url }).run({ threadId: "trip-7" } satisfies Partial<RunAgentInput>),
  ];
  expect(wrong).toBeTypeOf("function");
});
