import { silentLogger, systemClock, text, type AgentEvent, type AgentYield } from "@parley/server";
import type { JsonValue, Message, Turn } from "@parley/node";
import type { TurnBase } from "@parley/a2a/protocol";
import { describe, expect, it } from "vitest";
import { createDataAnalyst } from "../src/agent.ts";
import { csvPart, largeCsv } from "./support.ts";

/** A turn like one of the engine, so that a test can end and restart a run at each of its steps. */
function turnOf(message: Message, checkpoint?: JsonValue): TurnBase {
  let state: JsonValue | undefined;
  const context: Turn["context"] = {
    id: "context",
    history: () => Promise.resolve([]),
    state: <Value>() => state as Value | undefined,
    setState: (value) => {
      state = value as JsonValue | undefined;
    },
  };
  return {
    message,
    text: "",
    taskId: "task",
    contextId: "context",
    task: undefined,
    number: 1,
    attempt: checkpoint === undefined ? 1 : 2,
    checkpoint,
    count: () => 1,
    principal: { subject: "anonymous" },
    call: { version: "1.0", extensions: [] },
    headers: {},
    metadata: undefined,
    acceptedOutputModes: [],
    extensions: [],
    extension: () => undefined,
    extensionRows: () => ({
      read: () => Promise.resolve([]),
      store: () => Promise.resolve(),
      claim: () => Promise.resolve(true),
    }),
    resumable: true,
    signal: new AbortController().signal,
    context,
    logger: silentLogger,
    clock: systemClock,
    allows: () => true,
    requestAuthorization: () => Promise.reject(new Error("This agent asks for no authorization")),
    state: () => undefined,
    setState: () => {},
    delegations: () => Promise.reject(new Error("This agent delegates to no other")),
    memory: () => Promise.reject(new Error("This agent has no steps")),
    makeId: () => "id",
    audit: () => undefined,
    flush: () => Promise.resolve(),
  };
}

async function run(message: Message, checkpoint?: JsonValue): Promise<readonly (readonly AgentEvent[])[]> {
  const output = createDataAnalyst().execute(turnOf(message, checkpoint)) as AsyncGenerator<AgentYield, void, void>;
  const steps: (readonly AgentEvent[])[] = [];
  for await (const yielded of output) steps.push([yielded].flat());
  return steps;
}

function checkpointIn(step: readonly AgentEvent[]): JsonValue | undefined {
  return step.find((event) => event.kind === "checkpoint")?.value;
}

describe("a lost run", () => {
  it.each([
    ["a chart", [text("chart median level by month and station"), csvPart("levels.csv", largeCsv(25_000))]],
    ["a question back", [text("chart foo by month"), csvPart("weather.csv")]],
    ["points", [text("plot temp_max against wind"), csvPart("weather.csv")]],
  ])("continues from each of its checkpoints with the same events: %s", { timeout: 60_000 }, async (_, parts) => {
    const message: Message = { messageId: "message", role: "ROLE_USER", parts };
    const whole = await run(message);
    expect(whole.length).toBeGreaterThan(5);
    for (const [place, step] of whole.entries()) {
      const checkpoint = checkpointIn(step);
      if (place === whole.length - 1 && checkpoint === undefined) continue;
      expect(checkpoint).toMatchObject({ steps: place + 1 });
      expect(JSON.stringify(await run(message, checkpoint))).toBe(JSON.stringify(whole.slice(place + 1)));
    }
  });

  it("does not continue with a file that changed meanwhile", async () => {
    const message = (content: string): Message => ({
      messageId: "message",
      role: "ROLE_USER",
      parts: [csvPart("a.csv", content)],
    });
    const [first = []] = await run(message("a,b\n1,2\n"));
    const [next = []] = await run(message("a,b\n1,3\n"), checkpointIn(first));
    expect(next).toMatchObject([{ kind: "status", state: "TASK_STATE_FAILED" }]);
    expect(JSON.stringify(next)).toContain("changed while I was working");
  });
});
