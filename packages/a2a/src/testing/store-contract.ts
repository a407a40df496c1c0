import type { Store } from "../store/index.ts";
import { appendCases } from "./store/append-cases.ts";
import { boundsCases } from "./store/bounds-cases.ts";
import { conversationCases } from "./store/conversation-cases.ts";
import { contextCases, leaseCases, onceCases } from "./store/effect-cases.ts";
import type { Case, Cases, Expectation } from "./store/given.ts";
import { closingLosesNothing, everythingStays, lifeCases } from "./store/life-cases.ts";
import { listCases } from "./store/list-cases.ts";
import { ownerCases } from "./store/owner-cases.ts";
import { readCases } from "./store/read-cases.ts";
import { sharesTasks, totalsByTime } from "./store/share-cases.ts";
import { retentionCases } from "./store/sweep-cases.ts";

export type { Expectation } from "./store/given.ts";

/** What a suite needs of a test runner: vitest and jest have it as it is, for `node:test` give an `expect` of your own. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
  expect(actual: unknown): Expectation;
}

export interface StoreContractOptions {
  /** A new store with nothing in it. Each case gets its own, and closes it. */
  readonly create: () => Store | Promise<Store>;
  /** For stores that keep what they have: closes one, as gently or not as you like, and opens what it had stored. */
  readonly reopen?: (store: Store) => Promise<Store>;
  /** For stores that several processes can have open: opens what one has a second time, beside it. */
  readonly share?: (store: Store) => Promise<Store>;
}

const chapters: Readonly<Record<string, Cases>> = {
  append: appendCases,
  "load and read": readCases,
  owners: ownerCases,
  "leases and runs": leaseCases,
  "idempotency keys": onceCases,
  contexts: contextCases,
  conversations: conversationCases,
  list: listCases,
  bounds: boundsCases,
  sweep: retentionCases,
  life: lifeCases,
};

/**
 * Every rule of the `Store` port as a test. A store is done when it passes.
 *
 * ```ts
 * storeContract({ describe, it, expect }, { create: () => myStore() });
 * ```
 */
export function storeContract(runner: Runner, { create, reopen, share }: StoreContractOptions): void {
  const declare = (name: string, body: Case, more: Pick<StoreContractOptions, "reopen" | "share"> = {}): void => {
    runner.it(name, async () => {
      const store = await create();
      try {
        await body({ store, expect: (actual) => runner.expect(actual), ...more });
      } finally {
        await store.close();
      }
    });
  };
  for (const [chapter, cases] of Object.entries(chapters)) {
    runner.describe(chapter, () => {
      for (const [name, body] of Object.entries(cases)) declare(name, body);
    });
  }
  if (reopen !== undefined) {
    runner.describe("durability", () => {
      declare("everything is there after closing and opening again", everythingStays, { reopen });
      declare("closing waits for what is under way and keeps it", closingLosesNothing, { reopen });
    });
  }
  if (share !== undefined) {
    runner.describe("sharing", () => {
      declare("a task is told as another process left it, though it was read before", sharesTasks, { share });
      declare("totals by time are exact while another process writes", totalsByTime, { share });
    });
  }
}
