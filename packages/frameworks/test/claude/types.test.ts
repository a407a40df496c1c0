import { expect, test } from "vitest";
import { fromClaude, type ClaudeDefinition, type ClaudePrompt } from "../../src/claude/index.ts";
import { scriptedQuery } from "./scripted.ts";

/* What compiles, and what does not: `tsc` checks the lines below each `@ts-expect-error`. test/interop/claude.test.ts does so with the SDK's own types. */

const card = { name: "A", description: "A test", version: "1.0.0", skills: [] };
const query = scriptedQuery({ model: () => [] });
const options = { model: "claude-test", maxTurns: 3 };

test("a query is taken, with its options, or a function that makes them", () => {
  const definition: ClaudeDefinition<typeof query> = { ...card, options, reasoning: true };
  expect(fromClaude(query, definition)).toBeDefined();
  expect(
    fromClaude(query, { ...card, options: ({ contextId }) => ({ ...options, systemPrompt: contextId }) }),
  ).toBeDefined();
});

test("what is no query, and what is no option, does not compile", () => {
  const wrong = (): unknown[] => [
    // @ts-expect-error -- not a query
    fromClaude({ query }, card),
    // @ts-expect-error -- it takes no stream of messages
    fromClaude((_: { prompt: string }) => query({ prompt: "Hi" }), card),
    // @ts-expect-error -- it returns no messages
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
