import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@parley/server";
import { storeContract, type Runner } from "@parley/testing";
import { defaultDriver, sqliteStore } from "@parley/sql/sqlite";
import { loadDriver } from "../../packages/sql/src/sqlite/libraries.ts";
import { driverContract, type Runner as DriverRunner } from "../../packages/sql/test/sqlite/driver-contract.ts";

/** Tests Bun's SQLite driver, and the SQLite store on it with and without the store's thread. Run with `bun test ./bun-store.ts`. */

type BunRunner = Required<Runner> & DriverRunner & { afterAll(body: () => Promise<void>): void };
declare const Bun: { jest(file: string): BunRunner };

const runner = Bun.jest(import.meta.filename);
const { describe, it, expect, afterAll } = runner;

const folder = mkdtempSync(join(tmpdir(), "parley-bun-"));
const fallen: Store[] = [];
afterAll(async () => {
  await Promise.all(fallen.map((store) => store.close()));
  rmSync(folder, { recursive: true });
});

it("uses bun:sqlite by default", async () => {
  expect(defaultDriver()).toEqual("bun:sqlite");
});

const open = await loadDriver("bun:sqlite");
describe("the driver bun:sqlite", () => driverContract(runner, open));

let files = 0;
for (const thread of [false, true]) {
  describe(`sqliteStore on a file, ${thread ? "with a thread that writes" : "in one thread"}`, () => {
    const paths = new Map<Store, string>();
    const openAt = async (path: string): Promise<Store> => {
      const store = await sqliteStore({ path, thread });
      paths.set(store, path);
      return store;
    };
    storeContract(runner, {
      create: () => openAt(join(folder, `${(files += 1)}.db`)),
      async reopen(store) {
        await store.close();
        return openAt(paths.get(store) ?? "");
      },
      share: (store) => openAt(paths.get(store) ?? ""),
      crash(store) {
        fallen.push(store);
        return openAt(paths.get(store) ?? "");
      },
      histories: thread ? 3 : 30,
    });
  });
}
