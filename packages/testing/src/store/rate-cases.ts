import type { RateTaken, RateUse, StoreRates } from "@parley/server/internal/store/index";
import { codeOf, type Case, type Cases, type Expectation } from "./given.ts";

/* Budgets that processes share. A store without them passes. Budgets come back so slowly here that nothing does while a case runs. */

const week = 7 * 24 * 60 * 60_000;

function using(key: string, use: Partial<RateUse>): RateUse {
  return { key, requests: 10, per: week, used: 0, wanted: 0, ...use };
}

/** How many tenths of a budget of ten are used. Time goes on while a case runs. */
function usedOf({ back }: RateTaken): number {
  return Math.round((back / week) * 10);
}

async function take(rates: StoreRates, key: string, use: Partial<RateUse>): Promise<[taken: number, used: number]> {
  const [answer = { taken: NaN, back: NaN }] = await rates.take([using(key, use)]);
  return [answer.taken, usedOf(answer)];
}

function withRates(body: (rates: StoreRates, expect: (actual: unknown) => Expectation) => Promise<void>): Case {
  return async ({ store, expect }) => {
    if (store.rates !== undefined) await body(store.rates, expect);
  };
}

export const rateCases: Cases = {
  "a budget gives what is left, and no more": withRates(async (rates, expect) => {
    expect(await take(rates, "a", { wanted: 4 })).toEqual([4, 4]);
    expect(await take(rates, "a", { wanted: 4 })).toEqual([4, 8]);
    expect(await take(rates, "a", { wanted: 4 })).toEqual([2, 10]);
    expect(await take(rates, "a", { wanted: 4 })).toEqual([0, 10]);
    expect(await take(rates, "b", { wanted: 20 })).toEqual([10, 10]);
  }),

  "nothing is used by a question": withRates(async (rates, expect) => {
    expect(await take(rates, "a", {})).toEqual([0, 0]);
    expect(await take(rates, "a", { wanted: 1 })).toEqual([1, 1]);
    expect(await take(rates, "a", {})).toEqual([0, 1]);
  }),

  "what was used counts before what is wanted, and as a debt of one budget at most": withRates(
    async (rates, expect) => {
      expect(await take(rates, "a", { used: 7, wanted: 5 })).toEqual([3, 10]);
      expect(await take(rates, "a", { used: 4, wanted: 1 })).toEqual([0, 14]);
      expect(await take(rates, "a", { used: 1_000_000 })).toEqual([0, 20]);
      expect(await take(rates, "b", { used: 12, wanted: 1 })).toEqual([0, 12]);
      expect(await take(rates, "c", { used: 1_000_000, wanted: 1_000_000 })).toEqual([0, 20]);
    },
  ),

  "budgets come back evenly": withRates(async (rates, expect) => {
    const quick = { requests: 100, per: 1_000 };
    // A hundred a second, and however long it takes, no more than that.
    const began = performance.now();
    expect((await rates.take([using("a", { ...quick, wanted: 100 })]))[0]?.taken).toEqual(100);
    let taken = 0;
    while (taken < 5) taken += (await rates.take([using("a", { ...quick, wanted: 1 })]))[0]?.taken ?? NaN;
    expect(performance.now() - began > 30).toEqual(true);
    // A whole budget is no more than whole.
    const small = { requests: 1, per: 1 };
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await rates.take([using("b", { ...small, wanted: 9 })]))[0]?.taken).toEqual(1);
  }),

  "many budgets in one call are answered in their order, whatever their names are": withRates(async (rates, expect) => {
    const names = [
      "",
      "z",
      "a",
      "\0",
      "\ud800",
      "'; DROP TABLE x",
      "é",
      "e\u0301",
      "long ".repeat(2_000),
      "long ".repeat(2_001),
    ];
    const answers = await rates.take(names.map((name, at) => using(name, { wanted: at + 1 })));
    expect(answers.map(({ taken }) => taken)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(answers.map(usedOf)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await take(rates, names.at(-2) ?? "", { wanted: 9 })).toEqual([1, 10]);
    expect(await rates.take([])).toEqual([]);
    const thousand = Array.from({ length: 1_000 }, (_, at) => using(`many ${at}`, { wanted: 1 }));
    expect((await rates.take(thousand)).every((answer) => answer.taken === 1 && usedOf(answer) === 1)).toEqual(true);
  }),

  "a store that is closed refuses": async ({ store, expect }) => {
    if (store.rates === undefined) return;
    const { rates } = store;
    await store.close();
    expect(await codeOf(() => rates.take([using("a", { wanted: 1 })]))).toEqual("Unavailable");
  },
};

export const sharesRates: Case = async ({ store, expect, share }) => {
  const other = share === undefined ? store : await share(store);
  if (store.rates !== undefined && other.rates !== undefined) {
    const [one, two] = [store.rates, other.rates];
    expect(await take(one, "a", { used: 3 })).toEqual([0, 3]);
    expect(await take(two, "a", { wanted: 5 })).toEqual([5, 8]);
    expect(await take(one, "a", { wanted: 5 })).toEqual([2, 10]);
    // At once, each over many budgets in an order of its own: nobody gets too much, and nobody waits for ever.
    const names = Array.from({ length: 50 }, (_, at) => `n${at}`);
    const calls = Array.from({ length: 12 }, (_, at) => {
      const order = at % 2 === 0 ? names : names.toReversed();
      return (at % 3 === 0 ? one : two).take(order.map((name) => using(name, { wanted: 1 })));
    });
    const taken = (await Promise.all(calls)).flat().reduce((sum, answer) => sum + answer.taken, 0);
    expect(taken).toEqual(500);
  }
  if (other !== store) await other.close();
};
