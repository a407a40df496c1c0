import type { Store } from "@parley/server/internal/store/index";
import { appendCases } from "./store/append-cases.ts";
import { boundsCases } from "./store/bounds-cases.ts";
import { contextCases, conversationCases } from "./store/conversation-cases.ts";
import { leaseCases, onceCases } from "./store/effect-cases.ts";
import { declareCases, expectOf, plainExpect, type Expect, type Runner } from "./runner.ts";
import type { Cases } from "./store/given.ts";
import { featureCases, sharesFeatures } from "./store/feature-cases.ts";
import { closingLosesNothing, everythingStays, lifeCases } from "./store/life-cases.ts";
import { listCases, ownerCases } from "./store/list-cases.ts";
import {
  countsProcesses,
  noteCases,
  rateCases,
  sharesNotes,
  sharesRates,
  sharesTasks,
  totalsByTime,
} from "./store/share-cases.ts";
import { operatorCases, ordersStay, sharesOrders } from "./store/operator-cases.ts";
import { Comparison, withoutSizes } from "./store/comparison.ts";
import type { History } from "./store/histories.ts";
import { Reference } from "./store/reference.ts";
import { readCases } from "./store/read-cases.ts";
import { searchCases, searchRankCases, searchStays, sharesSearch } from "./store/search-cases.ts";
import { retentionCases } from "./store/sweep-cases.ts";
import { sharesDeletedOwners, upkeepCases } from "./store/upkeep-cases.ts";

/** Options of `storeContract()`: how to create stores. */
export interface StoreContractOptions {
  /** Creates an empty store. Each case gets its own, and closes it. */
  readonly create: () => Store | Promise<Store>;
  /** For persistent stores: closes a store, and opens its data again. */
  readonly reopen?: (store: Store) => Promise<Store>;
  /** For stores that several processes can open: opens the data of a store a second time, while the store is open. */
  readonly share?: (store: Store) => Promise<Store>;
  /**
   * For stores that survive crashes: abandons a store like a killed process, and opens its data again. Default:
   * `reopen`. If both are absent, the suite simulates no crashes.
   */
  readonly crash?: (store: Store) => Store | Promise<Store>;
  /** Number of random histories to replay. Requires the package `fast-check`. Default 100. */
  readonly histories?: number;
}

const chapters: Readonly<Record<string, Cases>> = {
  append: appendCases,
  "load and read": readCases,
  owners: ownerCases,
  "leases and runs": leaseCases,
  "idempotency keys": onceCases,
  features: featureCases,
  contexts: contextCases,
  conversations: conversationCases,
  list: listCases,
  "full text search": searchCases,
  "ranking of full text search": searchRankCases,
  bounds: boundsCases,
  sweep: retentionCases,
  upkeep: upkeepCases,
  operators: operatorCases,
  rates: rateCases,
  notes: noteCases,
  life: lifeCases,
};

const durabilityCases: Cases = {
  "all data survives closing and reopening": everythingStays,
  "search finds texts after closing and reopening": searchStays,
  "operators' orders and acts survive closing and reopening": ordersStay,
  "close waits for running calls and keeps their data": closingLosesNothing,
};

const sharingCases: Cases = {
  "a process sees another process's changes to a task that it has read before": sharesTasks,
  "every process sees the rows of features, and only one claims each": sharesFeatures,
  "search finds texts of every process, and any process can switch it": sharesSearch,
  "the store counts the processes that use it": countsProcesses,
  "other processes read a process's notes": sharesNotes,
  "other processes read an order, and only one of concurrent changes succeeds": sharesOrders,
  "all processes share the same budgets": sharesRates,
  "an owner that another process deleted is not confused with later owners": sharesDeletedOwners,
  "totals by time are exact while another process writes": totalsByTime,
};

/**
 * Tests every rule of the `Store` port, and compares the store with a reference in random histories. A store is complete when
 * it passes.
 *
 * ```ts
 * import { describe, it } from "node:test";
 * import { storeContract } from "@parley/testing";
 *
 * storeContract({ describe, it }, { create: () => myStore() });
 * ```
 */
export function storeContract(runner: Runner, options: StoreContractOptions): void {
  const { create, reopen, share } = options;
  const opening =
    (more: Pick<StoreContractOptions, "reopen" | "share"> = {}) =>
    async (expect: Expect) => {
      const store = await create();
      return { given: { store, expect, ...more }, close: () => store.close() };
    };
  for (const [chapter, cases] of Object.entries(chapters)) declareCases(runner, chapter, cases, opening());
  if (reopen !== undefined) declareCases(runner, "durability", durabilityCases, opening({ reopen }));
  if (share !== undefined) declareCases(runner, "sharing", sharingCases, opening({ share }));
  runner.describe("random histories", () => {
    runner.it("the store behaves like the reference through appends, sweeps, reads and crashes", () =>
      storeHistories(options, expectOf(runner)),
    );
  });
}

/**
 * Replays only the random histories of `storeContract`, for a longer run. Rejects with the shortest history in which the store and
 * the reference differ, and with its seed. Needs the package `fast-check`.
 */
export async function storeHistories(
  options: Pick<StoreContractOptions, "create" | "reopen" | "crash" | "histories">,
  expect: Expect = plainExpect,
): Promise<void> {
  const { create, reopen, crash = reopen ?? ((store: Store) => store), histories = 100 } = options;
  const { forHistories } = await loadHistories();
  await forHistories(histories, (history) => replay({ expect, create, crash }, history));
}

/** Loaded on demand, because it needs fast-check. */
async function loadHistories(): Promise<typeof import("./store/histories.ts")> {
  try {
    return await import("./store/histories.ts");
  } catch (cause) {
    const message = "Random histories need the package fast-check: npm install --save-dev fast-check";
    throw cause instanceof Error && cause.message.includes("fast-check") ? new Error(message, { cause }) : cause;
  }
}

interface Subject {
  readonly expect: Expect;
  readonly create: () => Store | Promise<Store>;
  readonly crash: (store: Store) => Store | Promise<Store>;
}

/** Replays a random history. Fails if the store differs from the reference. */
async function replay({ expect, create, crash }: Subject, { steps, history }: History): Promise<void> {
  let store = await create();
  const reference = new Reference();
  try {
    for (const step of steps) {
      switch (step.step) {
        case "append":
          expect(withoutSizes(await store.append(step.items))).toEqual(withoutSizes(reference.append(step.items)));
          // At the end of a history, few rows are left to compare.
          for (const now of [2, 6]) await new Comparison(expect, store, reference).due({ now, limit: 100 });
          break;
        case "sweep":
          await store.sweep({ ...step, limit: 100 });
          reference.sweep({ ...step, limit: 100 });
          break;
        case "list":
          await new Comparison(expect, store, reference).lists(step.scope, step.query);
          break;
        case "crash":
          store = await crash(store);
      }
    }
    await new Comparison(expect, store, reference).everything(history);
  } finally {
    await store.close();
  }
}
