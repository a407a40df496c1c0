import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Store } from "@parley/server";
import { storeContract, storeHistories, type StoreContractOptions } from "@parley/testing";
import { sqliteStore, type DriverName } from "@parley/sql/sqlite";
import { atLength, times } from "../../../../test/counts.ts";
import { drivers } from "./drivers.ts";

const folder = await mkdtemp(join(tmpdir(), "parley-"));
const fallen: Store[] = [];
afterAll(async () => {
  await Promise.all(fallen.map((store) => store.close()));
  await rm(folder, { recursive: true });
});

let files = 0;

function onFiles(driver: DriverName, thread: boolean, histories: number): StoreContractOptions {
  const paths = new Map<Store, string>();
  const open = async (path: string): Promise<Store> => {
    const store = await sqliteStore({ path, driver, thread });
    paths.set(store, path);
    return store;
  };
  return {
    create: () => open(join(folder, `${(files += 1)}.db`)),
    async reopen(store) {
      await store.close();
      return open(paths.get(store) ?? "");
    },
    share: (store) => open(paths.get(store) ?? ""),
    // The old connection stays open, which leaves the file and its log as after a kill.
    crash(store) {
      fallen.push(store);
      return open(paths.get(store) ?? "");
    },
    histories,
  };
}

const contract = atLength ? storeContract : contractInShort;

describe.each(drivers)("sqliteStore on %s", (driver) => {
  describe("on a file, with a writer thread", () => {
    // Only a few histories: each starts threads, and hundreds would take a minute.
    contract({ describe, it, expect }, onFiles(driver, true, times(6, 3)));
  });

  describe("on a file, without a writer thread", () => {
    storeContract({ describe, it, expect }, onFiles(driver, false, times(20, 150)));
  });

  describe("in memory", () => {
    contract({ describe, it, expect }, { create: () => sqliteStore({ path: ":memory:", driver }), histories: 20 });
  });
});

/**
 * A short run has only the contract's random histories. The whole contract runs on the store without a thread, which executes the same
 * statements, and starting a thread for each case takes longer than everything else.
 */
function contractInShort(_: unknown, options: StoreContractOptions): void {
  it("behaves like the reference, through appends, sweeps, reads and crashes", () => storeHistories(options));
}
