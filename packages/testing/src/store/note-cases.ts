import type { StoreNote, StoreNotes } from "@parley/server/internal/store/index";
import { codeOf, type Case, type Cases, type Expectation } from "./given.ts";

/* What processes tell each other. A store without notes passes. */

const now = 1_700_000_000_000;

function noteOf(key: string, value: string, until: number = now + 1_000): StoreNote {
  return { key, value, until };
}

async function read(notes: StoreNotes, keys: readonly string[], at: number = now): Promise<readonly unknown[]> {
  const found = await notes.read(keys, at);
  return keys.map((key) => found.get(key));
}

function withNotes(body: (notes: StoreNotes, expect: (actual: unknown) => Expectation) => Promise<void>): Case {
  return async ({ store, expect }) => {
    if (store.notes !== undefined) await body(store.notes, expect);
  };
}

export const noteCases: Cases = {
  "a note takes the place of the one before it": withNotes(async (notes, expect) => {
    await notes.write([noteOf("a", "1"), noteOf("b", "2")], now);
    await notes.write([noteOf("a", "3")], now);
    expect(await read(notes, ["b", "none", "a"])).toEqual(["2", undefined, "3"]);
    expect((await notes.read(["none"], now)).size).toEqual(0);
  }),

  "a note is gone once it expires, and may be written again": withNotes(async (notes, expect) => {
    await notes.write([noteOf("a", "1", now + 10), noteOf("b", "2", now + 20)], now);
    expect(await read(notes, ["a", "b"], now + 9.5)).toEqual(["1", "2"]);
    expect(await read(notes, ["a", "b"], now + 10)).toEqual([undefined, "2"]);
    await notes.write([noteOf("a", "3", now + 100), noteOf("c", "4", now + 100)], now + 50);
    expect(await read(notes, ["a", "b", "c"], now + 50)).toEqual(["3", undefined, "4"]);
    // What expired was deleted: it is not there for a reader whose clock is behind either.
    expect(await read(notes, ["a", "b"], now)).toEqual(["3", undefined]);
  }),

  "a thousand notes of the largest size in one call, and none": withNotes(async (notes, expect) => {
    const keys = Array.from({ length: 1_000 }, (_, at) => String(at).padEnd(128, "~"));
    const value = "~".repeat(1_024);
    await notes.write(
      keys.map((key) => noteOf(key, value)),
      now,
    );
    expect((await read(notes, keys)).every((found) => found === value)).toEqual(true);
    await notes.write([], now);
    expect((await notes.read([], now)).size).toEqual(0);
  }),

  "notes that are written at once, each call in an order of its own, are all there": withNotes(
    async (notes, expect) => {
      const keys = Array.from({ length: 50 }, (_, at) => `k${at}`);
      await notes.write(
        keys.map((key) => noteOf(key, "old", now + 1)),
        now,
      );
      const calls = Array.from({ length: 12 }, (_, at) =>
        notes.write(
          (at % 2 === 0 ? keys : keys.toReversed()).map((key) => noteOf(key, "new")),
          now + 1,
        ),
      );
      await Promise.all(calls);
      expect(new Set(await read(notes, keys, now + 1))).toEqual(new Set(["new"]));
    },
  ),

  "a store that is closed refuses": async ({ store, expect }) => {
    const { notes } = store;
    if (notes === undefined) return;
    await store.close();
    expect(await codeOf(() => notes.read(["a"], now))).toEqual("Unavailable");
    expect(await codeOf(() => notes.write([noteOf("a", "1")], now))).toEqual("Unavailable");
  },
};

export const sharesNotes: Case = async ({ store, expect, share }) => {
  const other = share === undefined ? store : await share(store);
  if (store.notes !== undefined && other.notes !== undefined) {
    await store.notes.write([noteOf("a", "1")], now);
    expect(await read(other.notes, ["a"])).toEqual(["1"]);
    await other.notes.write([noteOf("a", "2")], now);
    expect(await read(store.notes, ["a"])).toEqual(["2"]);
  }
  if (other !== store) await other.close();
};
