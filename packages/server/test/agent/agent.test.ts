import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import { fakeClock } from "@parley/testing";
import type { AgentEvent } from "@parley/a2a/internal/protocol/index";
import { eventually, harness } from "../engine/support.ts";

describe("defineAgent", () => {
  it("rejects a definition without the required members of a card, and names all of them", () => {
    const wrong = { name: "", description: "d" } as unknown as Parameters<typeof defineAgent>[0];
    expect(() => defineAgent(wrong)).toThrow(
      expect.objectContaining({
        code: "InvalidParams",
        fields: ["name", "version", "skills", "onMessage"].map(
          (field) => expect.objectContaining({ field }) as unknown,
        ),
      }),
    );
  });
});

describe("a writer of artifacts", () => {
  it("groups many tokens into few chunks, by size and by time, and loses none", async () => {
    const clock = fakeClock();
    const chunks: AgentEvent[] = [];
    const { send } = harness(
      async function* (turn) {
        const writer = turn.writer({ name: "answer", maxChars: 100, maxDelay: 50 });
        for (let n = 0; n < 1_000; n += 1) {
          if (n % 250 === 0) clock.advance(60);
          const events = writer.write("token ");
          chunks.push(...events);
          yield* events;
        }
        const events = writer.end();
        chunks.push(...events);
        yield* events;
      },
      { clock },
    );
    const task = await send("Go");
    const [artifact] = task.artifacts ?? [];
    expect(artifact?.name).toBe("answer");
    expect(artifact?.parts.map((part) => part.text).join("")).toBe("token ".repeat(1_000));
    expect(chunks.length).toBeLessThan(80);
    expect(chunks.length).toBeGreaterThan(50);
    expect(chunks.at(-1)).toMatchObject({ append: true, lastChunk: true });
  });

  it("sends pending text while the source pauses, and closes the source when the task is canceled", async () => {
    const clock = fakeClock();
    let released = false;
    async function* tokens(): AsyncGenerator<string> {
      try {
        yield "Hel";
        yield "lo";
        await new Promise<void>((resolve) => clock.after(1_000_000, resolve));
        yield " world";
      } finally {
        released = true;
      }
    }
    const { stream, cancel } = harness(
      async function* (turn) {
        yield* turn.stream(tokens(), { maxDelay: 50 });
      },
      { clock, behaviour: { idleTimeout: false, turnTimeout: false } },
    );
    const reading = await stream("Go");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const first = await reading.until((event) => event.artifactUpdate !== undefined);
    expect(first.payload.value.artifactUpdate?.artifact.parts[0]?.text).toBe("Hel");
    const second = reading.next();
    let came = false;
    void second.then(() => (came = true));
    await eventually(() => {
      clock.advance(10);
      return came;
    });
    expect((await second)?.payload.value.artifactUpdate?.artifact.parts[0]?.text).toBe("lo");
    await cancel(id);
    clock.advance(1_000_000);
    await eventually(() => released);
  });
});
