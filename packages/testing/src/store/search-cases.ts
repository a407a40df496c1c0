import { maxSearchTerms, searchBounds, searchTerms } from "@parley/server/internal/store/search";
import type { Owner, SearchPage, SearchQuery, Store, TaskSearch } from "@parley/server/internal/store/index";
import {
  adding,
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
  sharing,
  status,
  working,
  type Case,
  type Cases,
  type Given,
} from "./given.ts";

/** Full text search, which is optional. */

/** A case for stores with full text search. Passes without it. */
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

/** Creates a completed task with these texts. */
async function over(store: Store, id: string, text: string, artifact?: string): Promise<void> {
  await append(store, making(id, { text }));
  const records = artifact === undefined ? [] : [chunk(id, "a", artifact)];
  await append(store, adding(id, ...records, completed(id)));
}

export const searchCases: Cases = {
  "is initially off, and once on, finds texts that were stored while it was off": searching(
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
      await append(store, adding("asked", said("another sailboat")));
      expect(await ids(search, "sailboat")).toEqual(["asked", "after", "between", "before"]);
    },
    false,
  ),

  "finds messages immediately, and artifacts when their task is interrupted or terminal": searching(
    async ({ store, search, expect }) => {
      await append(store, making("t", { text: "paint" }));
      expect(await ids(search, "paint")).toEqual(["t"]);
      const task = key("t");
      // A stream may split a word.
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

  "folds case, accents and letter forms, and finds phrases, prefixes and words without spaces": searching(
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

  "finds texts in data, in names of files and artifacts, and on both sides of joined parts": searching(
    async ({ store, search, expect }) => {
      const parts = [
        { text: "left" },
        { text: "right" },
        { data: { city: ["Basel"] } },
        { raw: "c2VjcmV0", filename: "bill.pdf" },
      ];
      await append(store, making("t"));
      const records = [chunk("t", "a", "", { parts, name: "Invoice", description: "of May" }), completed("t")];
      await append(store, adding("t", ...records));
      for (const words of ["left", "right", "leftright", "basel", "bill", "invoice may"]) {
        expect([words, await ids(search, words)]).toEqual([words, ["t"]]);
      }
      expect(await ids(search, "c2VjcmV0")).toEqual([]);
      expect(await ids(search, "city")).toEqual([]);
    },
  ),

  "finds only tasks of the owner and agent": searching(async ({ store, search, expect }) => {
    await over(store, "t", "sailboat");
    await append(store, making("u", { text: "sailboat", owner: bob }));
    await append(store, making("t", { text: "sailboat", owner: { agent: "other", owner: "alice" } }));
    expect(await ids(search, "sailboat")).toEqual(["t"]);
    expect(await ids(search, "sailboat", {}, bob)).toEqual(["u"]);
    expect(await ids(search, "sailboat", {}, { agent: "agent", owner: "nobody" })).toEqual([]);
    expect((await find(search, "sail*")).total).toEqual(1);
    expect(await ids(search, "sailboat", { contextId: "none" })).toEqual([]);
  }),

  "filters by conversation and current state, and returns pages": searching(async ({ store, search, expect }) => {
    for (const id of ["a", "b", "c"]) await append(store, making(id, { text: "sailboat" }));
    await append(store, making("d", { text: "sailboat", contextId: "its own" }));
    await append(store, adding("b", completed("b")));
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
  }),

  "returns snippets that mark the words": searching(async ({ store, search, expect }) => {
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

  "removes deleted tasks and replaced artifacts from the index, even while off": searching(
    async ({ store, search, expect }) => {
      await over(store, "old", "sailboat");
      await append(store, making("t", { time: 5000, text: "one" }));
      const records = [chunk("t", "a", "submarine"), status("t", "TASK_STATE_INPUT_REQUIRED", { time: 5000 })];
      await append(store, adding("t", ...records));
      expect(await ids(search, "submarine")).toEqual(["t"]);
      const again = [said("two"), chunk("t", "a", "airship"), completed("t", { time: 5000 })];
      await append(store, adding("t", ...again));
      expect([await ids(search, "submarine"), await ids(search, "airship")]).toEqual([[], ["t"]]);
      await search.use(false);
      await store.sweep({ now: 0, deleteBefore: 2000, limit: 9 });
      await search.use(true);
      expect(await ids(search, "sailboat")).toEqual([]);
      await store.sweep({ now: 0, deleteBefore: 9000, limit: 9 });
      expect(await ids(search, "airship")).toEqual([]);
      // A new task may reuse the internal number of a deleted one.
      await over(store, "new", "rowing boat");
      expect([await ids(search, "airship"), await ids(search, "rowing")]).toEqual([[], ["new"]]);
    },
  ),

  "finds the same texts after compaction": searching(async ({ store, search, expect }) => {
    await over(store, "t", "sailboat", "lake");
    await store.sweep({ now: 0, compactBefore: 9000, limit: 9 });
    expect(await ids(search, "sailboat lake")).toEqual(["t"]);
    await search.use(false);
    await search.use(true);
    expect(await ids(search, "sailboat lake")).toEqual(["t"]);
  }),

  "does not find rejected records": searching(async ({ store, search, expect }) => {
    await append(store, making("t"));
    const outcome = await append(store, { task: key("t"), expect: 7, records: [said("sailboat")] });
    expect(outcome.ok).toEqual(false);
    expect(await ids(search, "sailboat")).toEqual([]);
  }),

  "bounds the indexed words of a text and of a task": searching(async ({ store, search, expect }) => {
    const filler = "x ".repeat(searchBounds.text / 2 - 20);
    await append(store, making("long", { text: `early ${filler} ${filler} late` }));
    expect([await ids(search, "early"), await ids(search, "late")]).toEqual([["long"], []]);
    const messages = Array.from({ length: 6 }, (_, at) => ({ ...said(`number${at} ${filler}`) }));
    const records = messages.map((record, at) => ({ ...record, json: record.json.replace(/"m-[^"]*"/, `"m${at}"`) }));
    await append(store, making("many"));
    for (const record of records) await append(store, adding("many", record));
    expect([await ids(search, "number0"), await ids(search, "number5")]).toEqual([["many"], []]);
  }),

  "accepts any text as a query": searching(async ({ store, search, expect }) => {
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
    if (opened.search === undefined) throw new Error("The reopened store has no search");
    expect(await ids(opened.search, "sailboat")).toEqual(["t"]);
    await over(opened, "u", "sailboat");
    expect(await ids(opened.search, "sailboat")).toEqual(["u", "t"]);
  } finally {
    await opened.close();
  }
}

export const sharesSearch: Case = sharing(async ({ store, other, expect }) => {
  const { search } = store;
  if (search === undefined) return;
  await over(other, "first", "sailboat");
  await search.use(true);
  await over(other, "second", "sailboat");
  expect(await ids(search, "sailboat")).toEqual(["second", "first"]);
  await other.search?.use(false);
  expect(await codeOf(() => find(search, "sailboat"))).toEqual("Unavailable");
  await over(store, "third", "sailboat");
  await search.use(true);
  expect(await ids(search, "sailboat")).toEqual(["third", "second", "first"]);
});

/* The order of the tasks that full text search finds. */

const filler = (words: number): string => "filler ".repeat(words);
const times = (word: string, count: number): string => `${word} `.repeat(count);

/** Creates a task with one message. */
async function saying(store: Store, id: string, text: string, owner: Owner = alice): Promise<void> {
  await append(store, making(id, { text, owner }));
}

/** The ids from all pages. */
async function paged(search: TaskSearch, query: string, limit: number, between?: () => Promise<void>) {
  const found: string[] = [];
  for (;;) {
    const page = await ids(search, query, { limit, skip: found.length });
    if (page.length === 0) return found;
    found.push(...page);
    await between?.();
  }
}

export const searchRankCases: Cases = {
  "ranks tasks that repeat the word above tasks that mention it": searching(async ({ store, search, expect }) => {
    const many = " and other things that nobody looks for".repeat(40);
    await over(store, "much", "boat, boat, boat: a boat is a boat");
    await over(store, "little", `boat${many}`);
    await over(store, "none", many);
    expect(await ids(search, "boat")).toEqual(["much", "little"]);
  }),

  "ranks main words (at least 3 times and 1%) highest, then short texts, then new tasks, equally in every store":
    searching(async ({ store, search, expect }) => {
      await saying(store, "long", `boat lake ${filler(1000)}`);
      // 1% of the words is enough for a main word, less is not.
      await saying(store, "main", `${times("boat", 10)}${filler(990)}`);
      await saying(store, "often", `${times("boat", 9)}${filler(991)}`);
      await saying(store, "short", "boat");
      await saying(store, "twice", "boat boat");
      await saying(store, "again", "a boat");
      await saying(store, "three", "boat boat boat lake");
      expect(await ids(search, "boat")).toEqual(["three", "main", "short", "again", "twice", "often", "long"]);
      expect(await ids(search, "boa*")).toEqual(["three", "main", "short", "again", "twice", "often", "long"]);
      expect(await ids(search, "boat lake")).toEqual(["three", "long"]);
      // The points of texts add up: two short texts count more than one.
      await append(store, adding("long", said("this boat"), said("that boat"), said("no boat")));
      expect((await ids(search, "boat"))[0]).toEqual("long");
    }),

  "ranks phrases and prefixes by their words": searching(async ({ store, search, expect }) => {
    await saying(store, "main", `${times("red boat", 3)}${filler(100)}`);
    await saying(store, "some", `${times("red", 3)} boat`);
    await saying(store, "begin", "boats boating boathouse red boat red boat red");
    expect(await ids(search, '"red boat"')).toEqual(["main", "some", "begin"]);
    expect(await ids(search, "boat*")).toEqual(["main", "some", "begin"]);
    expect(await ids(search, "red")).toEqual(["begin", "some", "main"]);
  }),

  "ranks independently of other owners' and agents' tasks": searching(async ({ store, search, expect }) => {
    await saying(store, "one", "boat and four other words");
    await saying(store, "three", `${times("boat", 3)}${filler(60)}`);
    await saying(store, "lake", "a boat on the lake, on the lake");
    const queries = ["boat", "boat lake", "boa* lak*"];
    const before = [];
    for (const query of queries) before.push(await ids(search, query));
    // An index with averages over all texts would now rank differently.
    for (let n = 0; n < 10; n += 1) await saying(store, `bob-${n}`, `boat ${filler(n * 200)}`, bob);
    await saying(store, "bob-lake", times("lake", 3000), bob);
    const other = { agent: "other", owner: "alice" };
    await saying(store, "other", times("boat", 3000), other);
    const after = [];
    for (const query of queries) after.push(await ids(search, query));
    expect(after).toEqual(before);
    expect(before[0]).toEqual(["three", "one", "lake"]);
  }),

  "keeps the order across pages, even if tasks are added between them": searching(async ({ store, search, expect }) => {
    const texts = ["boat", "a boat", "a boat here", times("boat", 3), `boat ${filler(500)}`, `${filler(90)}boat boat`];
    for (const [at, text] of [...texts, ...texts].entries()) await saying(store, `t${at}`, text);
    const all = await ids(search, "boat");
    expect(all.length).toEqual(12);
    for (const limit of [1, 5, 12]) expect(await paged(search, "boat", limit)).toEqual(all);
    // The new task ranks last, so no task of earlier pages moves.
    let added = 0;
    const add = () => saying(store, `late${(added += 1)}`, `boat ${filler(2000)}`);
    const found = await paged(search, "boat", 6, async () => (added < 2 ? add() : undefined));
    expect(found.slice(0, 12)).toEqual(all);
    expect((await find(search, "boat")).total).toEqual(14);
  }),

  "ranks equally if texts were stored in chunks, in several turns, or before the search was on": searching(
    async ({ store, search, expect }) => {
      const paused = (id: string) => status(id, "TASK_STATE_INPUT_REQUIRED");
      const more = { append: true };
      await append(store, making("pieces", { text: "one" }));
      const task = key("pieces");
      await append(store, { task, records: [working("pieces"), chunk("pieces", "a", "boat bo"), paused("pieces")] });
      await append(store, { task, records: [said("two"), working("pieces"), chunk("pieces", "a", "at boat", more)] });
      await append(store, { task, records: [chunk("pieces", "a", " lake", more), completed("pieces")] });
      await over(store, "whole", "two", "boat boat boat");
      await over(store, "short", "boat");
      await append(store, making("replaced", { text: "one" }));
      const first = [chunk("replaced", "a", times("boat", 5)), paused("replaced")];
      await append(store, adding("replaced", ...first));
      await append(store, adding("replaced", chunk("replaced", "a", "a boat"), completed("replaced")));
      const order = ["whole", "pieces", "short", "replaced"];
      expect(await ids(search, "boat")).toEqual(order);
      expect(await ids(search, '"boat boat boat lake"')).toEqual(["pieces"]);
      await search.use(false);
      await search.use(true);
      expect(await ids(search, "boat")).toEqual(order);
      await store.sweep({ now: 0, compactBefore: 9000, limit: 9 });
      expect(await ids(search, "boat")).toEqual(order);
    },
  ),
};
