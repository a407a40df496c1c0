import { describe, it } from "vitest";
import type { Store, StoreBounds } from "@parley/a2a/store";
import { driverWriter } from "../../src/sqlite/writer.ts";
import { migrate } from "../../src/sqlite/migrations.ts";
import { driverStore } from "../../src/sqlite/store.ts";
import { largeTasks } from "../../../a2a/test/store/large.ts";
import { openDriver } from "./drivers.ts";
import { likeTheReference } from "../../../a2a/test/store/properties.ts";

async function create(given: StoreBounds, join: number): Promise<Store> {
  const driver = openDriver(":memory:");
  migrate(driver);
  const bounds = { ...given, join };
  const writer = driverWriter(driver, { busyTimeout: 100, bounds });
  return driverStore(driver, writer, { durable: false, busyTimeout: 100, watchInterval: 100, bounds });
}

describe("sqliteStore", () => {
  largeTasks((bounds) => create(bounds, 20_000));

  it("tells the same of tasks that are read row by row (property)", async () => {
    const bounds = { text: 1 << 20, compaction: 1 << 20 };
    await likeTheReference({ create: () => create(bounds, 300), crash: async (store) => store }, 100);
  });
});
