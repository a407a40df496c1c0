import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Store } from "@parley/a2a/store";
import { storeContract } from "@parley/a2a/testing";
import { sqliteStore } from "@parley/sql/sqlite";

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

describe.each([
  ["with a thread that writes", true],
  ["in one thread", false],
])("sqliteStore on a file, %s", (_, thread) => {
  const paths = new Map<Store, string>();
  let files = 0;
  const open = async (path: string): Promise<Store> => {
    const store = await sqliteStore({ path, thread });
    paths.set(store, path);
    return store;
  };
  storeContract(
    { describe, it, expect },
    {
      create: () => open(join(folder, `${thread}-${(files += 1)}.db`)),
      async reopen(store) {
        await store.close();
        return open(paths.get(store) ?? "");
      },
      share: (store) => open(paths.get(store) ?? ""),
    },
  );
});

describe("sqliteStore in memory", () => {
  storeContract({ describe, it, expect }, { create: () => sqliteStore({ path: ":memory:" }) });
});
