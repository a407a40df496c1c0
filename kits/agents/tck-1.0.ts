import { defineAgent, type Agent, type AgentEvent, type Part, type Turn } from "@parley/server";
import type { OwnCapabilities } from "@parley/a2a/internal/protocol/index";

/** Capabilities by configuration: all of them, none, or an extension that every request must name. */
export const configurations: Readonly<Record<string, OwnCapabilities>> = {
  all: { streaming: true },
  none: { streaming: false },
  extension: {
    streaming: true,
    extensions: [{ uri: "urn:a2a:tck:required-extension", description: "For the kit", required: true }],
  },
};

/** The agent under test for the kit `1.0-dev`: the `messageId` selects its behaviour. */
export function tck10(capabilities: OwnCapabilities): Agent {
  return defineAgent({
    name: "Agent under test",
    description: "Does what the kit for A2A 1.0 wants of the agent that it tests.",
    version: "1.0.0",
    skills: [{ id: "kit", name: "Kit", description: "Answers by the id of the message.", tags: ["conformance"] }],
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    capabilities,
    async *onMessage(turn) {
      const { messageId } = turn.message;
      const prefix = Object.keys(answers).find((name) => messageId.startsWith(name));
      yield* prefix === undefined ? [turn.completed("Done")] : (answers[prefix] as Answer)(turn);
    },
  });
}

type Answer = (turn: Turn) => readonly AgentEvent[];

/** Answers by prefix of the `messageId`. Longer prefixes come first, because the first match counts. */
const answers: Readonly<Record<string, Answer>> = {
  "tck-complete-task": (turn) => [turn.completed("Hello from TCK")],
  "tck-input-required": (turn) => [turn.inputRequired("What next?")],
  "tck-message-response": (turn) => [turn.reply("Direct message response")],
  "tck-reject-task": (turn) => [turn.rejected("rejected")],
  "tck-artifact-text": artifact({ text: "Generated text content" }),
  "tck-artifact-file-url": artifact({
    url: "https://example.com/output.txt",
    filename: "output.txt",
    mediaType: "text/plain",
  }),
  "tck-artifact-file": artifact({
    raw: btoa("Generated text content"),
    filename: "output.txt",
    mediaType: "text/plain",
  }),
  "tck-artifact-data": artifact({ data: { key: "value", count: 42 } }),
  "tck-stream-002": (turn) => [turn.completed("Done")],
  "tck-stream-artifact-chunked": (turn) => {
    const artifactId = turn.makeId();
    return [
      turn.working(),
      turn.artifact({ artifactId, parts: [{ text: "chunk-1 " }] }),
      turn.append(artifactId, [{ text: "chunk-2" }], { last: true }),
    ];
  },
  "tck-stream-": (turn) => [turn.working(), turn.artifact({ parts: [{ text: "Generated text content" }] })],
};

function artifact(part: Part): Answer {
  return (turn) => [turn.artifact({ parts: [part] })];
}
