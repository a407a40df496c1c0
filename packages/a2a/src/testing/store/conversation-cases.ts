import {
  userMessage,
  agentMessage,
  alice,
  append,
  chunk,
  completed,
  context,
  key,
  making,
  said,
  working,
} from "./given.ts";
import type { Cases } from "./given.ts";
import type { ConversationOptions, SaidArtifact, SaidMessage, Store } from "../../store/index.ts";
import type { NewRecord } from "../../model/index.ts";

/** What was said in a conversation, the way a turn is told of it. */

const here = { ...alice, contextId: context };

function at(time: number, record: NewRecord, more: Partial<NewRecord> = {}): NewRecord {
  return { ...record, time, ...more };
}

/** An entry, short enough to compare: a message's text, an artifact's id and parts. */
export function gist(entry: SaidMessage | SaidArtifact): string {
  if ("message" in entry) return entry.message.parts.map((part) => part.text).join("|");
  const { artifactId, parts } = entry.artifact;
  return `${entry.cut === true ? "…" : ""}${artifactId}:${parts.map((part) => part.text).join("|")}`;
}

async function told(store: Store, options: ConversationOptions): Promise<readonly string[]> {
  return (await store.conversation(here, options)).entries.map(gist);
}

/** Two turns of one task, with an answer in chunks in each, another task between them, and a direct reply. */
async function talk(store: Store): Promise<void> {
  await store.append([
    making("t", { text: "first", time: 10 }),
    { task: key("t"), records: [at(11, chunk("t", "a", "one"), {})] },
    { task: key("t"), records: [at(12, chunk("t", "a", "two", { append: true }))] },
    making("u", { text: "between", time: 13 }),
    {
      task: key("u"),
      records: [at(14, chunk("u", "b", "other", { name: "B" })), at(14, completed("u", { time: 14 }))],
    },
    { task: key("t"), records: [at(15, chunk("t", "a", "three", { append: true, lastChunk: true }))] },
    { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(userMessage("direct")), time: 16 }] },
    { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(agentMessage("reply")), time: 17 }] },
    { task: key("t"), records: [at(18, said("second", 18), { turn: 2 })] },
    { task: key("t"), records: [at(19, working("t", { text: "progress", time: 19 }), { turn: 2 })] },
    { task: key("t"), records: [at(20, chunk("t", "c", "four"), { turn: 2 })] },
    { task: key("t"), records: [at(21, completed("t", { text: "done", time: 21 }), { turn: 2 })] },
  ]);
}

const whole = ["first", "a:one|two|three", "between", "b:other", "direct", "reply", "second", "c:four", "done"];

export const conversationCases: Cases = {
  async "messages and artifacts stand in order of their time, an artifact whole where it began"({ store, expect }) {
    await talk(store);
    expect(await told(store, { limit: 99 })).toEqual(whole);
    const { entries } = await store.conversation(here, { limit: 99 });
    expect(entries.map(({ time }) => time)).toEqual([10, 11, 13, 14, 16, 17, 18, 20, 21]);
    expect(entries[3]).toEqual({
      time: 14,
      taskId: "u",
      artifact: { artifactId: "b", name: "B", parts: [{ text: "other" }] },
    });
  },

  async "of one moment, what answers stands after what it answers"({ store, expect }) {
    await store.append([
      making("t", { text: "one" }),
      { task: key("t"), records: [chunk("t", "a", "x"), chunk("t", "a", "y", { append: true }), completed("t")] },
      making("u", { text: "two" }),
      { task: key("u"), records: [chunk("u", "b", "z"), completed("u", { text: "end" })] },
    ]);
    expect(await told(store, { limit: 9 })).toEqual(["one", "a:x|y", "two", "b:z", "end"]);
  },

  async "the newest so many are given"({ store, expect }) {
    await talk(store);
    expect(await told(store, { limit: 0 })).toEqual([]);
    expect(await told(store, { limit: 3 })).toEqual(whole.slice(-3));
    // Of an artifact that others stand between, as much as is newer than what is left out.
    expect(await told(store, { limit: 6 })).toEqual(["…a:three", ...whole.slice(-5)]);
    expect(await told(store, { limit: 7 })).toEqual(["b:other", "…a:three", ...whole.slice(-5)]);
    expect(await told(store, { limit: 8 })).toEqual(whole.slice(-8));
  },

  async "so many bytes are given, and of an artifact that is larger its newest chunks"({ store, expect }) {
    const text = "x".repeat(1_000);
    await append(store, making("t", { text: "ask" }));
    const chunks = Array.from({ length: 50 }, (_, n) =>
      at(1001 + n, chunk("t", "a", `${n} ${text}`, { append: n > 0, lastChunk: n === 49 })),
    );
    await append(store, { task: key("t"), records: [...chunks, completed("t", { time: 2000, text: "end" })] });
    const { entries } = await store.conversation(here, { limit: 9, bytes: 10_000 });
    const [artifact, end] = entries as readonly [SaidArtifact, SaidMessage];
    expect(entries.length).toEqual(2);
    expect(gist(end)).toEqual("end");
    expect([artifact.cut, artifact.artifact.parts.at(-1)?.text?.slice(0, 2)]).toEqual([true, "49"]);
    expect([artifact.artifact.parts.length > 5, artifact.artifact.parts.length < 10]).toEqual([true, true]);
    expect(artifact.time).toEqual(1051 - artifact.artifact.parts.length);
    // What is newest is given although it is larger.
    expect((await told(store, { limit: 9, bytes: 1 })).length).toEqual(1);
    expect((await told(store, { limit: 9 })).length).toEqual(3);
  },

  async "an artifact that was replaced is what it was replaced with"({ store, expect }) {
    await append(store, making("t", { text: "ask", time: 1 }));
    const replaced = [at(2, chunk("t", "a", "old")), at(3, chunk("t", "a", "lost", { append: true }))];
    const anew = [at(4, chunk("t", "a", "new")), at(5, chunk("t", "a", "more", { append: true }))];
    await append(store, { task: key("t"), records: [...replaced, ...anew] });
    expect(await told(store, { limit: 9 })).toEqual(["ask", "a:new|more"]);
  },

  async "a turn is told of what was before it, whatever it has said or a message waits"({ store, expect }) {
    await talk(store);
    await append(store, making("v", { text: "third", time: 30 }));
    await append(store, {
      task: key("v"),
      records: [
        at(31, chunk("v", "d", "of the turn")),
        at(32, said("waits", 32)),
        at(33, working("v", { text: "asked", time: 33, keep: true })),
        at(34, said("waits too", 34)),
        at(35, chunk("v", "d", "lost", { append: true }), { turn: 2 }),
        at(36, working("v", { text: "lost too", time: 36, keep: true }), { turn: 2 }),
      ],
    });
    const first = { taskId: "v", turn: 1, seq: 1 };
    expect(await told(store, { limit: 99, before: first })).toEqual(whole);
    expect(await told(store, { limit: 2, before: first })).toEqual(whole.slice(-2));
    const second = { taskId: "v", turn: 2, seq: 3 };
    expect(await told(store, { limit: 99, before: second })).toEqual([...whole, "third", "d:of the turn", "asked"]);
    expect(await told(store, { limit: 2, before: second })).toEqual(["d:of the turn", "asked"]);
    expect(await told(store, { limit: 99, before: { ...first, taskId: "nobody" } })).toEqual(
      await told(store, { limit: 99 }),
    );
  },

  async "compacting changes nothing of it"({ store, expect }) {
    await talk(store);
    const before = await store.conversation(here, { limit: 99 });
    expect((await store.sweep({ now: 0, compactBefore: 1_000, limit: 100 })).compacted).toEqual(2);
    expect(await store.conversation(here, { limit: 99 })).toEqual(before);
    expect(await told(store, { limit: 4 })).toEqual(whole.slice(-4));
  },
};
