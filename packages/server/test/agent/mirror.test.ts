import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent, type AgentDefinition } from "../../src/agent/index.ts";
import { file, text, type Task } from "@parley/a2a/internal/model/index";
import type { HistoryEntry, Turn } from "@parley/a2a/internal/protocol/index";
import { testAgent, type TestAgent } from "@parley/testing";

type Definition = Partial<AgentDefinition> & Pick<AgentDefinition, "onMessage">;

async function given(definition: Definition): Promise<TestAgent> {
  const card = { name: "Test", description: "Is tested.", version: "1.0.0", skills: [] };
  const agent = await testAgent(defineAgent({ ...card, mirrorArtifactText: true, ...definition }));
  onTestFinished(() => agent.close());
  return agent;
}

async function* tokens(...words: readonly string[]): AsyncGenerator<string> {
  yield* words;
}

/** Returns the text that a front end without artifacts shows. */
async function shown(definition: Definition): Promise<unknown> {
  const { client } = await given(definition);
  const { task } = await client.sendMessage("Go");
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  return task?.status.message?.parts;
}

describe("mirrorArtifactText", () => {
  it("repeats a streamed artifact in the message of the final status, also in the last event of a stream (A2A 1.0 §4.1.2)", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        yield* turn.stream(tokens("It is ", "certain", "."), { name: "answer" });
      },
    });
    const events = [];
    for await (const event of client.sendStreamingMessage("Go")) events.push(event);
    expect(events.at(-1)?.statusUpdate?.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { role: "ROLE_AGENT", parts: [{ text: "It is certain." }] },
    });
    const { task } = await client.sendMessage("Go");
    expect(task?.status.message?.parts).toEqual([{ text: "It is certain." }]);
    expect(task?.artifacts).toHaveLength(1);
  });

  it.each<readonly [how: string, onMessage: (turn: Turn) => ReturnType<AgentDefinition["onMessage"]>, parts: unknown]>([
    [
      "if the agent ends it without a message",
      async function* (turn) {
        yield turn.artifact({ parts: [text("A")] });
        yield turn.completed();
      },
      [{ text: "A" }],
    ],
    [
      "if the artifact and the end are the first events, in one array",
      async function* (turn) {
        yield [turn.artifact({ parts: [text("A")] }), turn.completed()];
      },
      [{ text: "A" }],
    ],
    [
      "if the end is returned",
      async function* (turn) {
        yield turn.working();
        yield turn.artifact({ parts: [text("A")] });
        return turn.completed();
      },
      [{ text: "A" }],
    ],
    [
      "of the final state of several artifacts, without files",
      async function* (turn) {
        yield turn.artifact({ artifactId: "a", parts: [text("draft")] });
        yield turn.artifact({ artifactId: "b", parts: [file(new Uint8Array(3)), text("B1")], open: true });
        yield turn.artifact({ artifactId: "a", parts: [text("A")] });
        yield turn.append("b", [text("B2")], { last: true });
        yield turn.artifact({ parts: [file(new Uint8Array(3))] });
      },
      [{ text: "A\n\nB1B2" }],
    ],
    [
      "not if the agent ends it with a message",
      async function* (turn) {
        yield turn.artifact({ parts: [text("A")] });
        yield turn.completed("Done");
      },
      [{ text: "Done" }],
    ],
    [
      "not if there is no text",
      async function* (turn) {
        yield turn.artifact({ parts: [file(new Uint8Array(3))] });
      },
      undefined,
    ],
    [
      "up to 256 KiB",
      async function* (turn) {
        yield turn.artifact({ parts: [text("x".repeat((256 << 10) + 1))] });
      },
      undefined,
    ],
    [
      "not if the task ends with its first event",
      async function* (turn) {
        yield turn.completed();
      },
      undefined,
    ],
  ])("does so %s", async (_, onMessage, parts) => {
    expect(await shown({ onMessage })).toEqual(parts);
  });

  it("is off by default", async () => {
    const onMessage: AgentDefinition["onMessage"] = async function* (turn) {
      yield turn.artifact({ parts: [text("A")] });
      yield turn.completed();
    };
    expect(await shown({ onMessage, mirrorArtifactText: false })).toBeUndefined();
    expect(await shown({ onMessage, mirrorArtifactText: undefined as never })).toBeUndefined();
  });

  it("is the same after a crash: the resumed run does not repeat the stored text of the lost run", async () => {
    const attempts: number[] = [];
    const agent = await given({
      resumable: true,
      async *onMessage(turn) {
        attempts.push(turn.attempt);
        const done = (turn.checkpoint as number | undefined) ?? 0;
        for (let page = done; page < 3; page += 1) {
          const parts = [text(`Page ${page + 1}. `)];
          const event =
            page === 0
              ? turn.artifact({ artifactId: "book", parts, open: true })
              : turn.append("book", parts, { last: page === 2 });
          yield [event, turn.saveCheckpoint(page + 1)];
          await new Promise<void>((resolve) => turn.clock.after(60_000, resolve));
        }
      },
    });
    let pages = 0;
    let last: Task["status"] | undefined;
    for await (const { artifactUpdate, statusUpdate } of agent.client.sendStreamingMessage("Go")) {
      last = statusUpdate?.status ?? last;
      if (artifactUpdate === undefined) continue;
      pages += 1;
      if (pages === 2) {
        await agent.crash();
        await agent.restart();
      }
      await agent.clock.advance(60_000);
    }
    expect(attempts).toEqual([1, 2]);
    expect(last?.state).toBe("TASK_STATE_COMPLETED");
    expect(last?.message?.parts).toEqual([{ text: "Page 1. Page 2. Page 3. " }]);
    expect(agent.problems).toEqual([]);
  });

  it("repeats only the artifacts of its own turn, and leaves an earlier question unchanged", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        yield turn.artifact({ parts: [text(`Answer ${turn.number}`)] });
        if (turn.number === 1) yield turn.inputRequired("More?");
      },
    });
    const conversation = client.conversation();
    const { task } = await conversation.send("Go");
    expect(task?.status).toMatchObject({ state: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "More?" }] } });
    const { task: done } = await conversation.send("Yes");
    expect(done?.status.message?.parts).toEqual([{ text: "Answer 2" }]);
  });

  it("appears once in the conversation that a model reads", async () => {
    const read: (readonly HistoryEntry[])[] = [];
    const { client } = await given({
      async *onMessage(turn) {
        read.push(await turn.context.history());
        yield turn.artifact({ parts: [text(`Answer to ${turn.text}`)] });
      },
    });
    const conversation = client.conversation();
    await conversation.send("one");
    await conversation.send("two");
    expect(read[1]?.map(({ role, text: said }) => `${role}: ${said}`)).toEqual([
      "user: one",
      "agent: Answer to one",
      "user: two",
    ]);
  });
});
