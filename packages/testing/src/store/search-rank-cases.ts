import type { Owner, Store, TaskSearch } from "@parley/server/internal/store/index";
import { alice, append, bob, chunk, completed, key, making, said, status, working, type Cases } from "./given.ts";
import { find, ids, over, searching } from "./search-cases.ts";

/** The order of the tasks that full text search finds, where a store has it. */

const filler = (words: number): string => "filler ".repeat(words);
const times = (word: string, count: number): string => `${word} `.repeat(count);

/** A task of an owner, with one message. */
async function saying(store: Store, id: string, text: string, owner: Owner = alice): Promise<void> {
  await append(store, making(id, { text, owner }));
}

/** The ids of all pages. */
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
  "puts the tasks first that say more of what is looked for": searching(async ({ store, search, expect }) => {
    const many = " and other things that nobody looks for".repeat(40);
    await over(store, "much", "boat, boat, boat: a boat is a boat");
    await over(store, "little", `boat${many}`);
    await over(store, "none", many);
    expect(await ids(search, "boat")).toEqual(["much", "little"]);
  }),

  "orders by the main words of a text, then by the words it has, then by the time, the same in every store": searching(
    async ({ store, search, expect }) => {
      await saying(store, "long", `boat lake ${filler(1000)}`);
      // Once in a hundred words, and less often.
      await saying(store, "main", `${times("boat", 10)}${filler(990)}`);
      await saying(store, "often", `${times("boat", 9)}${filler(991)}`);
      await saying(store, "short", "boat");
      await saying(store, "twice", "boat boat");
      await saying(store, "again", "a boat");
      await saying(store, "three", "boat boat boat lake");
      expect(await ids(search, "boat")).toEqual(["three", "main", "short", "again", "twice", "often", "long"]);
      expect(await ids(search, "boa*")).toEqual(["three", "main", "short", "again", "twice", "often", "long"]);
      expect(await ids(search, "boat lake")).toEqual(["three", "long"]);
      // Texts add up: two short ones count more than one.
      await append(store, { task: key("long"), records: [said("this boat"), said("that boat"), said("no boat")] });
      expect((await ids(search, "boat"))[0]).toEqual("long");
    },
  ),

  "orders phrases and beginnings as the words in them": searching(async ({ store, search, expect }) => {
    await saying(store, "main", `${times("red boat", 3)}${filler(100)}`);
    await saying(store, "some", `${times("red", 3)} boat`);
    await saying(store, "begin", "boats boating boathouse red boat red boat red");
    expect(await ids(search, '"red boat"')).toEqual(["main", "some", "begin"]);
    expect(await ids(search, "boat*")).toEqual(["main", "some", "begin"]);
    expect(await ids(search, "red")).toEqual(["begin", "some", "main"]);
  }),

  "orders as before whatever others store": searching(async ({ store, search, expect }) => {
    await saying(store, "one", "boat and four other words");
    await saying(store, "three", `${times("boat", 3)}${filler(60)}`);
    await saying(store, "lake", "a boat on the lake, on the lake");
    const queries = ["boat", "boat lake", "boa* lak*"];
    const before = [];
    for (const query of queries) before.push(await ids(search, query));
    // An index that counts over all texts has other averages now.
    for (let n = 0; n < 10; n += 1) await saying(store, `bob-${n}`, `boat ${filler(n * 200)}`, bob);
    await saying(store, "bob-lake", times("lake", 3000), bob);
    const other = { agent: "other", owner: "alice" };
    await saying(store, "other", times("boat", 3000), other);
    const after = [];
    for (const query of queries) after.push(await ids(search, query));
    expect(after).toEqual(before);
    expect(before[0]).toEqual(["three", "one", "lake"]);
  }),

  "keeps the order from page to page, also where tasks are added meanwhile": searching(
    async ({ store, search, expect }) => {
      const texts = [
        "boat",
        "a boat",
        "a boat here",
        times("boat", 3),
        `boat ${filler(500)}`,
        `${filler(90)}boat boat`,
      ];
      for (const [at, text] of [...texts, ...texts].entries()) await saying(store, `t${at}`, text);
      const all = await ids(search, "boat");
      expect(all.length).toEqual(12);
      for (const limit of [1, 5, 12]) expect(await paged(search, "boat", limit)).toEqual(all);
      // It comes last, so no task of the pages before moves.
      let added = 0;
      const add = () => saying(store, `late${(added += 1)}`, `boat ${filler(2000)}`);
      const found = await paged(search, "boat", 6, async () => (added < 2 ? add() : undefined));
      expect(found.slice(0, 12)).toEqual(all);
      expect((await find(search, "boat")).total).toEqual(14);
    },
  ),

  "orders the same whether texts were stored in pieces, in several turns, or before the search was switched on":
    searching(async ({ store, search, expect }) => {
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
      await append(store, { task: key("replaced"), records: first });
      await append(store, {
        task: key("replaced"),
        records: [chunk("replaced", "a", "a boat"), completed("replaced")],
      });
      const order = ["whole", "pieces", "short", "replaced"];
      expect(await ids(search, "boat")).toEqual(order);
      expect(await ids(search, '"boat boat boat lake"')).toEqual(["pieces"]);
      await search.use(false);
      await search.use(true);
      expect(await ids(search, "boat")).toEqual(order);
      await store.sweep({ now: 0, compactBefore: 9000, limit: 9 });
      expect(await ids(search, "boat")).toEqual(order);
    }),
};
