import { expect, test } from "vitest";
import { fromClaude, type ClaudeDefinition, type ClaudePrompt } from "../../src/claude/index.ts";
import { scriptedQuery } from "./scripted.ts";

/* Tests of types: `tsc` checks that each line below `@ts-expect-error` does not compile. test/interop/claude.test.ts repeats this with the SDK's types. */

const card = { name: "A", description: "A test", version: "1.0.0", skills: [] };
const query = scriptedQuery({ model: () => [] });
const options = { model: "claude-test", maxTurns: 3 };

test("accepts a query with its options, or with a function that makes them", () => {
  const definition: ClaudeDefinition<typeof query> = { ...card, options, reasoning: true };
  expect(fromClaude(query, definition)).toBeDefined();
  expect(
    fromClaude(query, { ...card, options: ({ contextId }) => ({ ...options, systemPrompt: contextId }) }),
  ).toBeDefined();
});

test("rejects other queries and unknown options", () => {
  const wrong = (): unknown[] => [
    // @ts-expect-error -- not a query
    fromClaude({ query }, card),
    // @ts-expect-error -- it does not accept a stream of messages
    fromClaude((_: { prompt: string }) => query({ prompt: "Hi" }), card),
    // @ts-expect-error -- it does not return messages
    fromClaude((_: { prompt: AsyncIterable<ClaudePrompt> }) => "Hi", card),
    // @ts-expect-error -- the description lacks a version
    fromClaude(query, { name: "A", description: "A test", skills: [] }),
    // @ts-expect-error -- the wrong type
    fromClaude(query, { ...card, options: { model: 7 } }),
    // @ts-expect-error -- no such option
    fromClaude(query, { ...card, options: { modell: "claude-test" } }),
    // @ts-expect-error -- the adapter resumes the session
    fromClaude(query, { ...card, options: { resume: "1" } }),
    // @ts-expect-error -- the adapter writes onMessage
    fromClaude(query, { ...card, onMessage: () => undefined }),
  ];
  expect(wrong).toBeTypeOf("function");
});
