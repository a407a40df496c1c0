import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { ConversationOptions, SaidArtifact, SaidMessage, Store } from "@parley/server/internal/store/index";
import {
  adding,
  agentMessage,
  alice,
  append,
  chunk,
  completed,
  context,
  effects,
  making,
  said,
  userMessage,
  working,
  type Cases,
} from "./given.ts";

/** The entries of a conversation that an agent receives in a turn. */

const here = { ...alice, contextId: context };

function at(time: number, record: NewRecord, more: Partial<NewRecord> = {}): NewRecord {
  return { ...record, time, ...more };
}

/** A short form of an entry for comparisons: the text of a message, or the id and parts of an artifact. */
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
    adding("t", at(11, chunk("t", "a", "one"), {})),
    adding("t", at(12, chunk("t", "a", "two", { append: true }))),
    making("u", { text: "between", time: 13 }),
    adding("u", at(14, chunk("u", "b", "other", { name: "B" })), at(14, completed("u", { time: 14 }))),
    adding("t", at(15, chunk("t", "a", "three", { append: true, lastChunk: true }))),
    { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(userMessage("direct")), time: 16 }] },
    { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(agentMessage("reply")), time: 17 }] },
    adding("t", at(18, said("second", 18), { turn: 2 })),
    adding("t", at(19, working("t", { text: "progress", time: 19 }), { turn: 2 })),
    adding("t", at(20, chunk("t", "c", "four"), { turn: 2 })),
    adding("t", at(21, completed("t", { text: "done", time: 21 }), { turn: 2 })),
  ]);
}

const whole = ["first", "a:one|two|three", "between", "b:other", "direct", "reply", "second", "c:four", "done"];

export const conversationCases: Cases = {
  async "messages and artifacts are ordered by time; an artifact counts from its first chunk"({ store, expect }) {
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

  async "an answer follows its message, even with the same time"({ store, expect }) {
    await store.append([
      making("t", { text: "one" }),
      adding("t", chunk("t", "a", "x"), chunk("t", "a", "y", { append: true }), completed("t")),
      making("u", { text: "two" }),
      adding("u", chunk("u", "b", "z"), completed("u", { text: "end" })),
    ]);
    expect(await told(store, { limit: 9 })).toEqual(["one", "a:x|y", "two", "b:z", "end"]);
  },

  async "the newest entries are returned, up to the limit"({ store, expect }) {
    await talk(store);
    expect(await told(store, { limit: 0 })).toEqual([]);
    expect(await told(store, { limit: 3 })).toEqual(whole.slice(-3));
    // Only the part of the artifact that is newer than the omitted entries.
    expect(await told(store, { limit: 6 })).toEqual(["…a:three", ...whole.slice(-5)]);
    expect(await told(store, { limit: 7 })).toEqual(["b:other", "…a:three", ...whole.slice(-5)]);
    expect(await told(store, { limit: 8 })).toEqual(whole.slice(-8));
  },

  async "entries stay within the byte limit; of a larger artifact, the newest chunks are returned"({ store, expect }) {
    const text = "x".repeat(1_000);
    await append(store, making("t", { text: "ask" }));
    const chunks = Array.from({ length: 50 }, (_, n) =>
      at(1001 + n, chunk("t", "a", `${n} ${text}`, { append: n > 0, lastChunk: n === 49 })),
    );
    await append(store, adding("t", ...chunks, completed("t", { time: 2000, text: "end" })));
    const { entries } = await store.conversation(here, { limit: 9, bytes: 10_000 });
    const [artifact, end] = entries as readonly [SaidArtifact, SaidMessage];
    expect(entries.length).toEqual(2);
    expect(gist(end)).toEqual("end");
    expect([artifact.cut, artifact.artifact.parts.at(-1)?.text?.slice(0, 2)]).toEqual([true, "49"]);
    expect([artifact.artifact.parts.length > 5, artifact.artifact.parts.length < 10]).toEqual([true, true]);
    expect(artifact.time).toEqual(1051 - artifact.artifact.parts.length);
    // The newest entry is returned even if it is larger.
    expect((await told(store, { limit: 9, bytes: 1 })).length).toEqual(1);
    expect((await told(store, { limit: 9 })).length).toEqual(3);
  },

  async "a replaced artifact has only its new content"({ store, expect }) {
    await append(store, making("t", { text: "ask", time: 1 }));
    const replaced = [at(2, chunk("t", "a", "old")), at(3, chunk("t", "a", "lost", { append: true }))];
    const anew = [at(4, chunk("t", "a", "new")), at(5, chunk("t", "a", "more", { append: true }))];
    await append(store, adding("t", ...replaced, ...anew));
    expect(await told(store, { limit: 9 })).toEqual(["ask", "a:new|more"]);
  },

  async "entries before a turn exclude the turn's own records and waiting messages"({ store, expect }) {
    await talk(store);
    await append(store, making("v", { text: "third", time: 30 }));
    await append(
      store,
      adding(
        "v",
        at(31, chunk("v", "d", "of the turn")),
        at(32, said("waits", 32)),
        at(33, working("v", { text: "asked", time: 33, keep: true })),
        at(34, said("waits too", 34)),
        at(35, chunk("v", "d", "lost", { append: true }), { turn: 2 }),
        at(36, working("v", { text: "lost too", time: 36, keep: true }), { turn: 2 }),
      ),
    );
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

  async "compaction does not change a conversation"({ store, expect }) {
    await talk(store);
    const before = await store.conversation(here, { limit: 99 });
    expect((await store.sweep({ now: 0, compactBefore: 1_000, limit: 100 })).compacted).toEqual(2);
    expect(await store.conversation(here, { limit: 99 })).toEqual(before);
    expect(await told(store, { limit: 4 })).toEqual(whole.slice(-4));
  },
};

/** The state and messages of a conversation (A2A 1.0 §3.4.1). */
export const contextCases: Cases = {
  async "an unknown context is empty"({ store, expect }) {
    expect(await store.conversation({ ...alice, contextId: "nothing" }, { limit: 10 })).toEqual({ entries: [] });
  },

  async "state is set by tasks and by direct replies, and deleted with null"({ store, expect }) {
    const here = { ...alice, contextId: context };
    const state = async (): Promise<unknown> => (await store.conversation(here, { limit: 0 })).state;
    await append(store, { ...making("t"), effects: [{ effect: "contextState", value: '{"n":1}' }] });
    expect(await state()).toEqual('{"n":1}');
    await append(store, { context: here, effects: [{ effect: "contextState", value: '{"n":2}' }] });
    expect(await state()).toEqual('{"n":2}');
    await append(store, effects("t", { effect: "contextState", value: null }));
    expect(await store.conversation(here, { limit: 0 })).toEqual({ entries: [] });
  },

  async "a rejected item does not change the state"({ store, expect }) {
    await append(store, { ...making("t"), effects: [{ effect: "contextState", value: "1" }] });
    await append(store, { ...effects("t", { effect: "contextState", value: "2" }), expect: 9 });
    expect((await store.conversation({ ...alice, contextId: context }, { limit: 0 })).state).toEqual("1");
  },

  async "messages come from histories and direct replies, in order of arrival, the newest up to the limit"({
    store,
    expect,
  }) {
    const here = { ...alice, contextId: context };
    await store.append([
      making("t", { text: "one", time: 1 }),
      { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(userMessage("two")), time: 2 }] },
      { context: here, effects: [{ effect: "contextMessage", json: JSON.stringify(agentMessage("three")), time: 3 }] },
      adding("t", working("t", { text: "progress", time: 4 }), said("four", 4)),
      making("u", { text: "five", time: 5 }),
      adding("t", completed("t", { text: "six", time: 6 })),
      making("v", { text: "elsewhere", contextId: "other" }),
      adding("u", completed("u", { text: "seven", time: 7 })),
    ]);
    const texts = async (limit: number): Promise<unknown> =>
      (await store.conversation(here, { limit })).entries.map((entry) => [entry.time, gist(entry)]);
    const said7 = [
      [1, "one"],
      [2, "two"],
      [3, "three"],
      [4, "four"],
      [5, "five"],
      [6, "six"],
      [7, "seven"],
    ];
    expect(await texts(100)).toEqual(said7);
    expect(await texts(7)).toEqual(said7);
    expect(await texts(3)).toEqual(said7.slice(-3));
    expect(await texts(0)).toEqual([]);
  },
};
