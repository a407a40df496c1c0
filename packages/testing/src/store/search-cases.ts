import { maxSearchTerms, searchBounds, searchTerms } from "@parley/server/internal/store/search";
import type { Owner, SearchPage, SearchQuery, Store, TaskSearch } from "@parley/server/internal/store/index";
import {
  alice,
  append,
  bob,
  chunk,
  codeOf,
  completed,
  context,
  key,
  making,
  said,
  status,
  working,
  type Case,
  type Cases,
  type Given,
} from "./given.ts";

/** Full text search, where a store has it. */

/** A case for stores with full text search. The others have nothing to prove. */
export function searching(body: (given: Given & { readonly search: TaskSearch }) => Promise<void>, isOn = true): Case {
  return async (given) => {
    const { search } = given.store;
    if (search === undefined) return;
    if (isOn) await search.use(true);
    await body({ ...given, search });
  };
}

export async function find(
  search: TaskSearch,
  query: string,
  more: Partial<SearchQuery> = {},
  owner: Owner = alice,
): Promise<SearchPage> {
  return search.find(owner, { terms: searchTerms(query), limit: 99, ...more });
}

export async function ids(...asked: Parameters<typeof find>): Promise<readonly string[]> {
  return (await find(...asked)).hits.map(({ taskId }) => taskId);
}

/** A task that is over, with these texts. */
export async function over(store: Store, id: string, text: string, artifact?: string): Promise<void> {
  await append(store, making(id, { text }));
  const records = artifact === undefined ? [] : [chunk(id, "a", artifact)];
  await append(store, { task: key(id), records: [...records, completed(id)] });
}

export const searchCases: Cases = {
  "is off at first, finds what was stored before it was switched on, and what was stored while it was off": searching(
    async ({ store, search, expect }) => {
      await over(store, "before", "a red sailboat", "sails");
      expect(await codeOf(() => find(search, "sailboat"))).toEqual("Unavailable");
      await search.use(true);
      await search.use(true);
      expect(await ids(search, "sailboat sails")).toEqual(["before"]);
      await search.use(false);
      expect(await codeOf(() => find(search, "sailboat"))).toEqual("Unavailable");
      await append(store, making("between", { text: "a blue sailboat" }));
      await append(store, making("asked", { text: "one" }));
      await search.use(true);
      await append(store, making("after", { text: "a green sailboat" }));
      await append(store, { task: key("asked"), records: [said("another sailboat")] });
      expect(await ids(search, "sailboat")).toEqual(["asked", "after", "between", "before"]);
    },
    false,
  ),

  "finds messages at once, and artifacts when their task is interrupted or over": searching(
    async ({ store, search, expect }) => {
      await append(store, making("t", { text: "paint" }));
      expect(await ids(search, "paint")).toEqual(["t"]);
      const task = key("t");
      // A stream is cut anywhere.
      await append(store, {
        task,
        records: [working("t"), chunk("t", "a", "A sailb"), chunk("t", "a", "oat on", { append: true })],
      });
      await append(store, { task, records: [chunk("t", "a", " the lake", { append: true, lastChunk: true })] });
      await append(store, { task, records: [status("t", "TASK_STATE_INPUT_REQUIRED", { text: "Which lake?" })] });
      for (const words of ["sailboat", '"sailboat on the lake"', "which", "paint which sailboat"]) {
        expect(await ids(search, words)).toEqual(["t"]);
      }
      await append(store, {
        task,
        records: [said("Geneva"), working("t"), chunk("t", "b", "Done", { name: "Report" })],
      });
      await append(store, { task, records: [completed("t", { text: "Bye" })] });
      for (const words of ["geneva", "report", "done bye sailboat"]) expect(await ids(search, words)).toEqual(["t"]);
      expect(await ids(search, "sailboat nothing")).toEqual([]);
    },
  ),

  "folds case, accents and forms of letters, and finds phrases, beginnings and words without spaces": searching(
    async ({ store, search, expect }) => {
      await over(store, "t", "Der Zürcher Strauß, ＦＵＬＬ width; São Paulo's e-mail 東京都に行く", "x");
      const found = [
        "zurcher",
        "ZÜRCHER",
        '"der zürcher"',
        "full",
        "sao paulo",
        "e-mail",
        "zur*",
        '"東京"',
        "東京",
        "行く",
      ];
      for (const words of found) expect([words, await ids(search, words)]).toEqual([words, ["t"]]);
      const missing = ["zur", '"zürcher der"', "京東", '"paulo full"', "mai"];
      for (const words of missing) expect([words, await ids(search, words)]).toEqual([words, []]);
    },
  ),

  "finds texts in data, names of files and artifacts, and both sides of parts that were joined": searching(
    async ({ store, search, expect }) => {
      const parts = [
        { text: "left" },
        { text: "right" },
        { data: { city: ["Basel"] } },
        { raw: "c2VjcmV0", filename: "bill.pdf" },
      ];
      await append(store, making("t"));
      const records = [chunk("t", "a", "", { parts, name: "Invoice", description: "of May" }), completed("t")];
      await append(store, { task: key("t"), records });
      for (const words of ["left", "right", "leftright", "basel", "bill", "invoice may"]) {
        expect([words, await ids(search, words)]).toEqual([words, ["t"]]);
      }
      expect(await ids(search, "c2VjcmV0")).toEqual([]);
      expect(await ids(search, "city")).toEqual([]);
    },
  ),

  "finds the tasks of one owner of one agent alone": searching(async ({ store, search, expect }) => {
    await over(store, "t", "sailboat");
    await append(store, making("u", { text: "sailboat", owner: bob }));
    await append(store, making("t", { text: "sailboat", owner: { agent: "other", owner: "alice" } }));
    expect(await ids(search, "sailboat")).toEqual(["t"]);
    expect(await ids(search, "sailboat", {}, bob)).toEqual(["u"]);
    expect(await ids(search, "sailboat", {}, { agent: "agent", owner: "nobody" })).toEqual([]);
    expect((await find(search, "sail*")).total).toEqual(1);
    expect(await ids(search, "sailboat", { contextId: "none" })).toEqual([]);
  }),

  "filters by conversation and by the state that a task has now, and gives pages": searching(
    async ({ store, search, expect }) => {
      for (const id of ["a", "b", "c"]) await append(store, making(id, { text: "sailboat" }));
      await append(store, making("d", { text: "sailboat", contextId: "its own" }));
      await append(store, { task: key("b"), records: [completed("b")] });
      expect(await ids(search, "sailboat", { contextId: context })).toEqual(["c", "b", "a"]);
      expect(await ids(search, "sailboat", { contextId: "its own" })).toEqual(["d"]);
      expect(await ids(search, "sailboat", { state: "TASK_STATE_COMPLETED" })).toEqual(["b"]);
      const pages = [0, 2, 4].map((skip) => find(search, "sailboat", { limit: 2, skip }));
      const [first, second, third] = await Promise.all(pages);
      expect([first, second, third].map((page) => [page?.total, page?.hits.map(({ taskId }) => taskId)])).toEqual([
        [4, ["d", "c"]],
        [4, ["b", "a"]],
        [4, []],
      ]);
    },
  ),

  "shows where the words are": searching(async ({ store, search, expect }) => {
    const filler = "word ".repeat(100);
    await over(store, "t", `${filler}a Red Sailboat in the harbour ${filler}`, "another sailboat");
    const [hit] = (await find(search, '"red sailboat" sailboat')).hits;
    const snippet = hit?.snippets.find(({ messageId }) => messageId === "m-t");
    const { text = "", marks = [] } = snippet ?? {};
    expect(marks.map(({ start, end }) => text.slice(start, end))).toEqual(["Red Sailboat"]);
    expect(text.length < 260).toEqual(true);
    const other = hit?.snippets.find(({ artifactId }) => artifactId === "a");
    expect(other).toEqual({ artifactId: "a", text: "another sailboat", marks: [{ start: 8, end: 16 }] });
  }),

  "forgets deleted tasks and replaced artifacts, also while it is off": searching(async ({ store, search, expect }) => {
    await over(store, "old", "sailboat");
    await append(store, making("t", { time: 5000, text: "one" }));
    const records = [chunk("t", "a", "submarine"), status("t", "TASK_STATE_INPUT_REQUIRED", { time: 5000 })];
    await append(store, { task: key("t"), records });
    expect(await ids(search, "submarine")).toEqual(["t"]);
    const again = [said("two"), chunk("t", "a", "airship"), completed("t", { time: 5000 })];
    await append(store, { task: key("t"), records: again });
    expect([await ids(search, "submarine"), await ids(search, "airship")]).toEqual([[], ["t"]]);
    await search.use(false);
    await store.sweep({ now: 0, deleteBefore: 2000, limit: 9 });
    await search.use(true);
    expect(await ids(search, "sailboat")).toEqual([]);
    await store.sweep({ now: 0, deleteBefore: 9000, limit: 9 });
    expect(await ids(search, "airship")).toEqual([]);
    // A new task may get the number of a deleted one.
    await over(store, "new", "rowing boat");
    expect([await ids(search, "airship"), await ids(search, "rowing")]).toEqual([[], ["new"]]);
  }),

  "keeps what was found when logs are compacted": searching(async ({ store, search, expect }) => {
    await over(store, "t", "sailboat", "lake");
    await store.sweep({ now: 0, compactBefore: 9000, limit: 9 });
    expect(await ids(search, "sailboat lake")).toEqual(["t"]);
    await search.use(false);
    await search.use(true);
    expect(await ids(search, "sailboat lake")).toEqual(["t"]);
  }),

  "does not find what was refused": searching(async ({ store, search, expect }) => {
    await append(store, making("t"));
    const outcome = await append(store, { task: key("t"), expect: 7, records: [said("sailboat")] });
    expect(outcome.ok).toEqual(false);
    expect(await ids(search, "sailboat")).toEqual([]);
  }),

  "is bounded for a text and for a task": searching(async ({ store, search, expect }) => {
    const filler = "x ".repeat(searchBounds.text / 2 - 20);
    await append(store, making("long", { text: `early ${filler} ${filler} late` }));
    expect([await ids(search, "early"), await ids(search, "late")]).toEqual([["long"], []]);
    const messages = Array.from({ length: 6 }, (_, at) => ({ ...said(`number${at} ${filler}`) }));
    const records = messages.map((record, at) => ({ ...record, json: record.json.replace(/"m-[^"]*"/, `"m${at}"`) }));
    await append(store, making("many"));
    for (const record of records) await append(store, { task: key("many"), records: [record] });
    expect([await ids(search, "number0"), await ids(search, "number5")]).toEqual([["many"], []]);
  }),

  "takes any text as a query": searching(async ({ store, search, expect }) => {
    await over(store, "t", "sailboat words near and or not 1 text");
    const texts = [
      "sailboat'; DROP TABLE tasks; --",
      '"sailboat',
      "sailboat AND",
      "sailboat OR nothing",
      "NOT sailboat",
      "words: sailboat",
      "sailboat NEAR(1)",
      "{words} : sailboat",
      "^sailboat",
      "sailboat + words",
      "-sailboat",
      "*",
      '""',
      "sail\u0000boat",
      "\uD800 sailboat",
      "1\u00b7sailboat",
      "(((",
      "a".repeat(5000),
    ];
    for (const text of texts) {
      const terms = searchTerms(text).slice(0, maxSearchTerms);
      if (terms.length === 0) continue;
      const { total } = await search.find(alice, { terms, limit: 9 });
      expect([text, total <= 1]).toEqual([text, true]);
    }
    expect(await ids(search, "NOT sailboat")).toEqual(["t"]);
    expect((await store.list(alice, { limit: 9, artifacts: false })).total).toEqual(1);
  }),
};

export async function searchStays({ store, expect, reopen }: Given): Promise<void> {
  if (reopen === undefined || store.search === undefined) return;
  await store.search.use(true);
  await over(store, "t", "sailboat");
  const opened = await reopen(store);
  try {
    if (opened.search === undefined) throw new Error("The store has lost its search");
    expect(await ids(opened.search, "sailboat")).toEqual(["t"]);
    await over(opened, "u", "sailboat");
    expect(await ids(opened.search, "sailboat")).toEqual(["u", "t"]);
  } finally {
    await opened.close();
  }
}

export async function sharesSearch({ store, expect, share }: Given): Promise<void> {
  if (share === undefined || store.search === undefined) return;
  const other = await share(store);
  try {
    await over(other, "first", "sailboat");
    await store.search.use(true);
    await over(other, "second", "sailboat");
    expect(await ids(store.search, "sailboat")).toEqual(["second", "first"]);
    await other.search?.use(false);
    expect(await codeOf(() => find(store.search as TaskSearch, "sailboat"))).toEqual("Unavailable");
    await over(store, "third", "sailboat");
    await store.search.use(true);
    expect(await ids(store.search, "sailboat")).toEqual(["third", "second", "first"]);
  } finally {
    await other.close();
  }
}
