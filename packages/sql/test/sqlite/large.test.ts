import { describe, expect, it } from "vitest";
import { defaultStoreBounds, type Store, type StoreBounds } from "@parley/server/store";
import { storeHistories } from "@parley/testing";
import { driverWriter } from "../../src/sqlite/writer.ts";
import { migrate } from "../../src/sqlite/migrations.ts";
import { driverStore } from "../../src/sqlite/store.ts";
import { largeTasks } from "../../../server/test/store/large.ts";
import { openDriver } from "./drivers.ts";
import { times } from "../../../../test/counts.ts";

async function create(given: StoreBounds, join: number): Promise<Store> {
  const driver = openDriver(":memory:");
  migrate(driver);
  const bounds = { ...given, join };
  const writer = driverWriter(driver, { busyTimeout: 100, bounds });
  return driverStore(driver, writer, { durable: false, busyTimeout: 100, watchInterval: 100, bounds });
}

describe("sqliteStore", () => {
  largeTasks((bounds) => create(bounds, 20_000));

  it("reads the same task row by row and joined (property)", async () => {
    await storeHistories({ create: () => create(defaultStoreBounds, 300), histories: times(25, 150) }, expect);
  });
});
