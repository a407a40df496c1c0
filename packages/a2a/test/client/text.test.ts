import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GrowingText, readText, type TextPiece } from "../../src/client/index.ts";
import type { Part, StreamResponse, TaskState } from "../../src/model/index.ts";
import { chunkEvent, statusEvent, taskEvent } from "./support.ts";

const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
const ids = { taskId: "t1", contextId: "c1" };
const artifact = (artifactId: string, text: string, append = false): StreamResponse => ({
  artifactUpdate: { ...ids, append, artifact: { artifactId, parts: [{ text }] } },
});
const said = (state: TaskState, text: string, messageId = "m1"): StreamResponse => ({
  statusUpdate: { ...ids, status: { state, message: { messageId, role: "ROLE_AGENT", parts: [{ text }] } } },
});

async function pieces(events: readonly StreamResponse[], known?: boolean): Promise<TextPiece[]> {
  const all: TextPiece[] = [];
  const source = (async function* () {
    yield* events;
  })();
  for await (const piece of readText(source, known)) all.push(piece);
  return all;
}

/** Returns the text on a page that shows one text for each artifact, in order. */
function shownBy(read: readonly TextPiece[]): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const { artifactId, text, reset } of read) {
    if (artifactId !== undefined) shown[artifactId] = reset ? text : (shown[artifactId] ?? "") + text;
  }
  return shown;
}

const printed = (read: readonly TextPiece[]): string =>
  read.map(({ text, reset }) => (reset ? `<${text}` : text)).join("");

describe(`the text of a stream (FUZZ_SEED=${seed})`, () => {
  test("is printed once if a stream continues with the task, which has merged the chunks", async () => {
    const merged = taskEvent("TASK_STATE_WORKING", {
      artifacts: [{ artifactId: "a", parts: [{ text: "It is sunny" }] }],
    });
    const live = [artifact("a", "It "), artifact("a", "is", true)];
    const read = await pieces([taskEvent(), ...live, merged, artifact("a", " today", true), merged]);
    expect(printed(read.slice(0, -1))).toBe("It is sunny today");
    // The last task has less text than the page already shows, so its text replaces that text.
    expect(read.at(-1)).toEqual({ text: "It is sunny", reset: true, artifactId: "a" });
  });

  test("equals the artifacts at the end after appends and replacements, and resets only if texts differ", async () => {
    const update = fc.record({
      id: fc.constantFrom("a", "b"),
      text: fc.stringMatching(/^[xy]{0,3}$/),
      append: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(update, { maxLength: 12 }), async (updates) => {
        const final: Record<string, string> = {};
        const events = updates.map(({ id, text, append }) => {
          final[id] = append ? (final[id] ?? "") + text : text;
          return artifact(id, text, append);
        });
        const read = await pieces([...events, statusEvent("TASK_STATE_COMPLETED")]);
        const shown = shownBy(read);
        for (const [id, text] of Object.entries(final)) expect(shown[id] ?? "").toBe(text);
        const onlyGrew = updates.every(
          ({ append }, at) => append || updates.findIndex(({ id }) => id === updates[at]?.id) === at,
        );
        if (onlyGrew) expect(read.some(({ reset }) => reset)).toBe(false);
      }),
      { seed },
    );
  });

  test("of an artifact that is rewritten in smaller chunks has no repetition", async () => {
    const read = await pieces([
      chunkEvent("It is certain", false),
      chunkEvent("It ", false),
      chunkEvent("is cert"),
      chunkEvent("ain, and so."),
      statusEvent("TASK_STATE_COMPLETED"),
    ]);
    expect(printed(read)).toBe("It is certain, and so.");
  });

  test("of a snapshot after a reconnection has only the new text", async () => {
    const parts: Part[] = [{ text: "It is " }, { text: "so" }];
    const read = await pieces([
      taskEvent(),
      chunkEvent("It is ", false),
      taskEvent("TASK_STATE_COMPLETED", { artifacts: [{ artifactId: "a1", parts }] }),
    ]);
    expect(printed(read)).toBe("It is so");
  });

  test("separates artifacts, and leaves out progress, data and files", async () => {
    const read = await pieces([
      said("TASK_STATE_WORKING", "Thinking"),
      artifact("a", "one"),
      {
        artifactUpdate: {
          ...ids,
          artifact: { artifactId: "d", parts: [{ data: { x: 1 } }, { url: "https://x.example/" }] },
        },
      },
      artifact("b", "two"),
      artifact("b", "\n", true),
      artifact("c", "three"),
      statusEvent("TASK_STATE_COMPLETED"),
    ]);
    expect(printed(read)).toBe("one\ntwo\nthree");
    expect(shownBy(read)).toEqual({ a: "one", b: "two\n", c: "three" });
  });

  test("has a direct reply, and once the message of a status that ends or interrupts the task", async () => {
    expect(await pieces([{ message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Hello" }] } }])).toEqual([
      { text: "Hello", reset: false },
    ]);
    const asks = said("TASK_STATE_INPUT_REQUIRED", "For how many?");
    expect(printed(await pieces([artifact("a", "menu"), asks, asks]))).toBe("menu\nFor how many?");
    expect(printed(await pieces([said("TASK_STATE_FAILED", "Out of eggs")]))).toBe("Out of eggs");
    // A final message may repeat the artifact for clients that show no artifacts.
    expect(printed(await pieces([artifact("a", "menu"), said("TASK_STATE_COMPLETED", "menu")]))).toBe("menu");
  });

  test("of an answer to a question begins after the earlier text of the task", async () => {
    const task = taskEvent("TASK_STATE_INPUT_REQUIRED", {
      artifacts: [{ artifactId: "a", parts: [{ text: "menu" }] }],
      status: {
        state: "TASK_STATE_INPUT_REQUIRED",
        message: { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "?" }] },
      },
    });
    expect(printed(await pieces([task, artifact("a", " for two", true), artifact("b", "bill")], true))).toBe(
      " for two\nbill",
    );
    expect(printed(await pieces([task]))).toBe("menu\n?");
  });

  test("resets at the end if the final text is shorter", () => {
    const text = new GrowingText();
    expect(text.add("It is certain", false)).toEqual({ text: "It is certain", reset: false });
    expect(text.add("It is", false)).toBeUndefined();
    expect(text.end()).toEqual({ text: "It is", reset: true });
    expect(text.end()).toBeUndefined();
  });
});
